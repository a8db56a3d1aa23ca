/* replica_state.c: a replica's own state as bytes.
 *
 *   u64 magic "RVREPLIC", u32 version, u32 kept (vectors), u64 n_params, u32 shard, u32 n_shards,
 *   u64 global_step, u64 adam_steps, u64 cursor, u32 moments (0: fp32, 1: 8 bits), u32 0,
 *   f32 theta[n], m, v (f32[n] each, or as kernels/moments.h lays them out),
 *   kept vectors, f32 [n] each: residual of error feedback, start and momentum of eager updates,
 *   u8 hash[32]: BLAKE2b-256 over "rivulet replica" and all bytes before it. Little-endian.
 *
 * replica_stream.c brings the vectors to the host. */
#include "train/replica.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "train/replica_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vectors are stored as they lie in memory");

#define STATE_MAGIC UINT64_C(0x43494c5045525652) /* "RVREPLIC" */
enum { STATE_VERSION = 1, STATE_HEADER_BYTES = REPLICA_HEAD_BYTES };

void replica_keep(struct replica *r, float *vector) {
	RV_ASSERT(!vector || r->n_kept < REPLICA_MAX_KEPT);
	if (vector)
		r->kept[r->n_kept++] = vector;
}

/* Returns the size of a state with moments of that kind. */
static size_t state_bytes_of(const struct replica *r, enum moments kind) {
	return STATE_HEADER_BYTES + (1 + (size_t)r->n_kept) * r->n * sizeof(float) + 2 * moments_bytes(kind, r->n) +
		   RV_HASH_BYTES;
}

size_t replica_state_bytes(const struct replica *r) {
	return state_bytes_of(r, r->moments);
}

static struct rv_hash hash_state(const uint8_t *state, size_t n) {
	struct rv_hasher h = rv_hasher_of(REPLICA_STATE_DOMAIN);
	rv_hash_update(&h, state, n);
	return rv_hash_final(&h);
}

void replica_copy_head(const struct replica *r, uint8_t *out) {
	struct rv_writer w = rv_writer_of(out, STATE_HEADER_BYTES);
	rv_write_u64(&w, STATE_MAGIC);
	rv_write_u32(&w, STATE_VERSION);
	rv_write_u32(&w, (uint32_t)r->n_kept);
	rv_write_u64(&w, r->n);
	rv_write_u32(&w, r->shard);
	rv_write_u32(&w, r->n_shards);
	rv_write_u64(&w, r->global_step);
	rv_write_u64(&w, r->adam_steps);
	rv_write_u64(&w, r->cursor);
	rv_write_u32(&w, (uint32_t)r->moments);
	rv_write_u32(&w, 0);
	RV_ASSERT(!w.failed && rv_writer_len(&w) == STATE_HEADER_BYTES);
}

/* Returns how many parts make up the whole m and v: one if each has all. */
static int parts_with_state(const struct replica *r) {
	return r->inner->whole_matrices ? 1 : r->n_parts;
}

/* Bytes of a part's slice of a moment that are contiguous there and in the file's vector: its
 * floats, or its codes and its tops. */
enum { MOMENTS_PIECES = 2 };
struct moments_piece {
	size_t in_file, in_part, bytes;
};

static int moments_pieces(const struct replica *r, const struct replica_part *p,
						  struct moments_piece out[MOMENTS_PIECES]) {
	const size_t begin = p->updated.begin, n = replica_part_updated(p);
	if (r->moments == MOMENTS_FP32) {
		out[0] = (struct moments_piece){begin * sizeof(float), 0, n * sizeof(float)};
		return 1;
	}
	out[0] = (struct moments_piece){begin, 0, moments_code_bytes(n)};
	out[1] = (struct moments_piece){moments_code_bytes(r->n) + moments_blocks(begin) * sizeof(float),
									moments_code_bytes(n), moments_blocks(n) * sizeof(float)};
	return MOMENTS_PIECES;
}

/* Lists the parts of theta that make up the whole. Returns how many. */
static int list_theta(const struct replica *r, struct replica_vector *list, struct backend **on) {
	const int parts = r->zero == ZERO_WEIGHTS ? r->n_parts : 1;
	for (int i = 0; i < parts; i++) {
		const struct replica_part *p = &r->parts[i];
		const struct comm_slice held = replica_part_held(r, p);
		on[i] = p->be;
		list[i] = (struct replica_vector){STATE_HEADER_BYTES + held.begin * sizeof(float), p->theta,
										  (held.end - held.begin) * sizeof(float)};
	}
	return parts;
}

int replica_list_vectors(const struct replica *r, struct replica_vector *list,
						 struct backend *on[REPLICA_MAX_VECTORS]) {
	_Static_assert(REPLICA_MAX_VECTORS >= (1 + 2 * 2) * COMM_MAX_MEMBERS + REPLICA_MAX_KEPT,
				   "theta, m and v of each part (codes and tops), kept vectors");
	const size_t vector = r->n * sizeof(float), moments = moments_bytes(r->moments, r->n);
	const size_t m = STATE_HEADER_BYTES + vector;
	int n = list_theta(r, list, on);
	for (int i = 0; i < parts_with_state(r); i++) {
		const struct replica_part *p = &r->parts[i];
		struct moments_piece pieces[MOMENTS_PIECES];
		const int count = moments_pieces(r, p, pieces);
		for (int k = 0; k < count; k++) {
			const size_t at = m + pieces[k].in_file;
			on[n] = on[n + 1] = p->host ? NULL : p->be;
			list[n++] = (struct replica_vector){at, (char *)p->m + pieces[k].in_part, pieces[k].bytes};
			list[n++] = (struct replica_vector){at + moments, (char *)p->v + pieces[k].in_part, pieces[k].bytes};
		}
	}
	for (int i = 0; i < r->n_kept; i++) {
		on[n] = NULL;
		list[n++] = (struct replica_vector){m + 2 * moments + (size_t)i * vector, r->kept[i], vector};
	}
	return n;
}

int replica_vectors(struct replica *r, struct replica_vector list[REPLICA_MAX_VECTORS]) {
	struct backend *on[REPLICA_MAX_VECTORS];
	RV_ASSERT(!r->on_device);
	replica_end_update(r);
	return replica_list_vectors(r, list, on);
}

void replica_seal(uint8_t *copy, size_t n) {
	RV_ASSERT(n > STATE_HEADER_BYTES + RV_HASH_BYTES);
	struct rv_hash hash = hash_state(copy, n - RV_HASH_BYTES);
	memcpy(copy + n - RV_HASH_BYTES, hash.b, RV_HASH_BYTES);
}

void replica_save(struct replica *r, uint8_t *out) {
	replica_copy_head(r, out);
	(void)replica_copy_vectors(r, out, INT64_MAX);
	replica_seal(out, replica_state_bytes(r));
}

/* ---- loading ---- */

struct state_header {
	uint64_t magic, n, global_step, adam_steps, cursor;
	uint32_t version, kept, shard, n_shards, moments, zero;
};

static struct state_header read_header(const uint8_t *in) {
	struct rv_reader rd = rv_reader_of(in, STATE_HEADER_BYTES);
	struct state_header h = {0};
	h.magic = rv_read_u64(&rd);
	h.version = rv_read_u32(&rd);
	h.kept = rv_read_u32(&rd);
	h.n = rv_read_u64(&rd);
	h.shard = rv_read_u32(&rd);
	h.n_shards = rv_read_u32(&rd);
	h.global_step = rv_read_u64(&rd);
	h.adam_steps = rv_read_u64(&rd);
	h.cursor = rv_read_u64(&rd);
	h.moments = rv_read_u32(&rd);
	h.zero = rv_read_u32(&rd);
	RV_ASSERT(rv_reader_done(&rd));
	return h;
}

static enum rv_err check_header(const struct replica *r, const struct state_header *h, struct rv_errtext *et) {
	if (h->magic != STATE_MAGIC)
		return rv_fail(et, RV_E_CORRUPT, "replica state: magic is %016" PRIx64 ", must be %016" PRIx64, h->magic,
					   STATE_MAGIC);
	if (h->version != STATE_VERSION)
		return rv_fail(et, RV_E_CORRUPT, "replica state: version is %" PRIu32 ", this build reads %d", h->version,
					   STATE_VERSION);
	if (h->kept != (uint32_t)r->n_kept)
		return rv_fail(et, RV_E_CORRUPT,
					   "replica state: %" PRIu32 " vectors of error feedback and eager updates, must be %d", h->kept,
					   r->n_kept);
	if (h->n != r->n)
		return rv_fail(et, RV_E_CORRUPT, "replica state: %" PRIu64 " parameters, this model has %zu", h->n, r->n);
	if (h->shard != r->shard || h->n_shards != r->n_shards)
		return rv_fail(et, RV_E_CORRUPT,
					   "replica state: reads data shard %" PRIu32 " of %" PRIu32 ", this replica %" PRIu32
					   " of %" PRIu32,
					   h->shard, h->n_shards, r->shard, r->n_shards);
	if (h->moments > MOMENTS_INT8 || h->zero != 0)
		return rv_fail(et, RV_E_CORRUPT, "replica state: moments are of kind %" PRIu32 " (%" PRIu32 "), must be 0 or 1",
					   h->moments, h->zero);
	if (h->adam_steps >= INT64_MAX)
		return rv_fail(et, RV_E_CORRUPT, "replica state: adam_steps is %" PRIu64, h->adam_steps);
	return RV_OK;
}

/* A state that is being read, and memory for a piece of it. */
struct state_reading {
	const struct byte_source *from;
	size_t n;          /* bytes of the state */
	uint8_t *in, *out; /* REPLICA_PIECE_BYTES each: as read, and converted */
};

static enum rv_err begin_reading(struct state_reading *s, const struct byte_source *from, size_t n,
								 struct rv_errtext *et) {
	*s = (struct state_reading){.from = from, .n = n};
	if (n < STATE_HEADER_BYTES + RV_HASH_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "replica state: cut short: size is %zu bytes, the header alone has %d", n,
					   STATE_HEADER_BYTES + RV_HASH_BYTES);
	s->in = malloc(REPLICA_PIECE_BYTES);
	s->out = malloc(REPLICA_PIECE_BYTES);
	if (s->in && s->out)
		return RV_OK;
	return rv_fail(et, RV_E_NOMEM, "replica state: no memory to read it (%d bytes)", 2 * REPLICA_PIECE_BYTES);
}

static void end_reading(struct state_reading *s) {
	free(s->in);
	free(s->out);
}

static enum rv_err read_some(const struct state_reading *s, uint64_t at, void *out, size_t n, struct rv_errtext *et) {
	RV_ASSERT(at <= s->n && n <= s->n - at);
	return s->from->read(s->from->ctx, at, out, n, et);
}

static size_t piece_of(size_t left) {
	return left < REPLICA_PIECE_BYTES ? left : REPLICA_PIECE_BYTES;
}

/* Compares the hash at its end. */
static enum rv_err check_hash(const struct state_reading *s, struct rv_errtext *et) {
	const size_t hashed = s->n - RV_HASH_BYTES;
	struct rv_hasher h = rv_hasher_of(REPLICA_STATE_DOMAIN);
	struct rv_hash stored;
	for (size_t at = 0, n; at < hashed; at += n) {
		n = piece_of(hashed - at);
		RV_TRY(read_some(s, at, s->in, n, et));
		rv_hash_update(&h, s->in, n);
	}
	RV_TRY(read_some(s, hashed, stored.b, RV_HASH_BYTES, et));
	const struct rv_hash found = rv_hash_final(&h);
	if (!rv_hash_equal(&found, &stored))
		return rv_fail(et, RV_E_CORRUPT, "replica state: hash does not match: the file was damaged");
	return RV_OK;
}

enum rv_err replica_check(const struct byte_source *from, size_t n, struct rv_errtext *et) {
	struct state_reading s;
	enum rv_err e = begin_reading(&s, from, n, et);
	if (e == RV_OK)
		e = check_hash(&s, et);
	end_reading(&s);
	return e;
}

/* Checks everything before any change. */
static enum rv_err check_state(const struct replica *r, const struct state_reading *s, struct state_header *h,
							   struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	RV_TRY(read_some(s, 0, header, sizeof header, et));
	*h = read_header(header);
	RV_TRY(check_header(r, h, et));
	const size_t want = state_bytes_of(r, (enum moments)h->moments);
	if (s->n != want)
		return rv_fail(et, RV_E_CORRUPT, "replica state: size is %zu bytes, must be %zu", s->n, want);
	return check_hash(s, et);
}

/* Writes k moments of the other kind: 8 bits as floats, or floats in 8 bits. They begin with block
 * `first` of all. */
static void convert_moments(enum moment which, enum moments to, size_t k, size_t first, const uint8_t *in,
							uint8_t *out) {
	float values[MOMENTS_BLOCK];
	for (size_t block = 0; block < moments_blocks(k); block++) {
		const size_t at = block * MOMENTS_BLOCK * sizeof(float), left = k * sizeof(float) - at;
		const size_t bytes = left < sizeof values ? left : sizeof values;
		if (to == MOMENTS_FP32) {
			(void)moments_decode_block(which, in, k, block, values);
			memcpy(out + at, values, bytes);
		} else {
			memcpy(values, in + at, bytes);
			moments_encode_block(which, out, k, block, values, moments_seed(0, first + block));
		}
	}
}

/* A vector of moments in a state, and the same one of a part. */
struct moment_load {
	enum moment which;
	enum moments kind; /* in the state */
	size_t at;         /* there */
	uint8_t *to;       /* the part's, of the replica's kind */
};

/* Reads moments [i, i + k) of a vector of n as a vector of k. */
static enum rv_err read_moments(const struct state_reading *s, const struct moment_load *m, size_t n, size_t i,
								size_t k, struct rv_errtext *et) {
	if (m->kind == MOMENTS_FP32)
		return read_some(s, m->at + i * sizeof(float), s->in, k * sizeof(float), et);
	RV_TRY(read_some(s, m->at + i, s->in, moments_code_bytes(k), et));
	return read_some(s, m->at + moments_code_bytes(n) + moments_blocks(i) * sizeof(float),
					 s->in + moments_code_bytes(k), moments_blocks(k) * sizeof(float), et);
}

/* Uploads a vector of k moments to places [i, i + k) of the part's. */
static void put_moments(const struct replica *r, const struct replica_part *p, uint8_t *to, size_t i, size_t k,
						const uint8_t *from) {
	struct backend *be = replica_part_updater(p);
	if (r->moments == MOMENTS_FP32) {
		be->ops->upload(be, to + i * sizeof(float), from, k * sizeof(float));
		return;
	}
	const size_t tops = moments_code_bytes(replica_part_updated(p)) + moments_blocks(i) * sizeof(float);
	be->ops->upload(be, to + i, from, moments_code_bytes(k));
	be->ops->upload(be, to + tops, from + moments_code_bytes(k), moments_blocks(k) * sizeof(float));
}

static enum rv_err load_moment(const struct replica *r, const struct replica_part *p, const struct state_reading *s,
							   const struct moment_load *m, struct rv_errtext *et) {
	enum { AT_ONCE = REPLICA_PIECE_BYTES / (int)sizeof(float) };
	_Static_assert(AT_ONCE % MOMENTS_BLOCK == 0, "whole blocks");
	const size_t begin = p->updated.begin, n = replica_part_updated(p);
	for (size_t i = 0, k; i < n; i += k) {
		k = n - i < AT_ONCE ? n - i : AT_ONCE;
		RV_TRY(read_moments(s, m, r->n, begin + i, k, et));
		if (m->kind != r->moments)
			convert_moments(m->which, r->moments, k, (begin + i) / MOMENTS_BLOCK, s->in, s->out);
		put_moments(r, p, m->to, i, k, m->kind != r->moments ? s->out : s->in);
	}
	return RV_OK;
}

static enum rv_err load_theta(struct replica *r, const struct state_reading *s, struct rv_errtext *et) {
	const size_t bytes = r->n * sizeof(float);
	for (size_t at = 0, n; at < bytes; at += n) {
		n = piece_of(bytes - at);
		RV_TRY(read_some(s, STATE_HEADER_BYTES + at, s->in, n, et));
		replica_set_part(r, at / sizeof(float), n / sizeof(float), (const float *)(const void *)s->in);
	}
	return RV_OK;
}

static enum rv_err load_vectors(struct replica *r, const struct state_reading *s, enum moments kind,
								struct rv_errtext *et) {
	const size_t vector = r->n * sizeof(float), moments = moments_bytes(kind, r->n), m = STATE_HEADER_BYTES + vector;
	RV_TRY(load_theta(r, s, et));
	for (int i = 0; i < r->n_parts; i++) {
		struct replica_part *p = &r->parts[i];
		RV_TRY(load_moment(r, p, s, &(struct moment_load){MOMENT_FIRST, kind, m, p->m}, et));
		RV_TRY(load_moment(r, p, s, &(struct moment_load){MOMENT_SECOND, kind, m + moments, p->v}, et));
	}
	for (int i = 0; i < r->n_kept; i++)
		RV_TRY(read_some(s, m + 2 * moments + (size_t)i * vector, r->kept[i], vector, et));
	return RV_OK;
}

static void reset_moments(struct replica *r) {
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		const size_t bytes = moments_bytes(r->moments, replica_part_updated(p));
		struct backend *be = replica_part_updater(p);
		be->ops->zero(be, p->m, bytes);
		be->ops->zero(be, p->v, bytes);
	}
	r->adam_steps = 0;
}

static enum rv_err load(struct replica *r, const struct state_reading *s, struct rv_errtext *et) {
	struct state_header h = {0};
	RV_TRY(check_state(r, s, &h, et));
	replica_end_update(r);
	const enum rv_err e = load_vectors(r, s, (enum moments)h.moments, et);
	if (e != RV_OK) {
		reset_moments(r);
		return e;
	}
	r->global_step = h.global_step;
	r->adam_steps = h.adam_steps;
	r->cursor = h.cursor;
	return RV_OK;
}

enum rv_err replica_load_from(struct replica *r, const struct byte_source *from, size_t n, struct rv_errtext *et) {
	struct state_reading s;
	enum rv_err e = begin_reading(&s, from, n, et);
	if (e == RV_OK)
		e = load(r, &s, et);
	end_reading(&s);
	return e;
}

enum rv_err replica_load(struct replica *r, const uint8_t *in, size_t n, struct rv_errtext *et) {
	const struct byte_source from = byte_source_of(in);
	return replica_load_from(r, &from, n, et);
}

/* ---- moments ---- */

static bool is_finite_vector(const struct replica_part *p, const float *v, size_t n) {
	enum { AT_ONCE = 4096 };
	float some[AT_ONCE];
	struct backend *be = replica_part_updater(p);
	for (size_t at = 0; at < n; at += AT_ONCE) {
		size_t k = n - at < AT_ONCE ? n - at : AT_ONCE;
		be->ops->download(be, some, v + at, k * sizeof *some);
		for (size_t i = 0; i < k; i++)
			if (!isfinite(some[i]))
				return false;
	}
	return true;
}

/* Reports whether a part's moment is finite: of 8 bits, its tops. */
static bool is_finite_moment(const struct replica *r, const struct replica_part *p, void *moment) {
	const size_t n = replica_part_updated(p);
	if (r->moments == MOMENTS_FP32)
		return is_finite_vector(p, moment, n);
	return is_finite_vector(p, moments_tops(moment, n), moments_blocks(n));
}

bool replica_heal(struct replica *r) {
	bool finite = true;
	replica_end_update(r);
	for (int i = 0; i < r->n_parts && finite; i++) {
		const struct replica_part *p = &r->parts[i];
		finite = is_finite_moment(r, p, p->m) && is_finite_moment(r, p, p->v);
	}
	if (!finite)
		reset_moments(r);
	return !finite;
}
