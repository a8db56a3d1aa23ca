/* replica_state.c: a replica's own state as bytes.
 *
 *   u64 magic "RVREPLIC", u32 version, u32 kept (vectors), u64 n_params, u32 shard, u32 n_shards,
 *   u64 global_step, u64 adam_steps, u64 cursor, u32 moments (0: fp32, 1: 8 bits), u32 0,
 *   f32 theta[n], m, v (f32[n] each, or as kernels/moments.h lays them out),
 *   kept vectors, f32 [n] each: residual of error feedback, start and momentum of eager updates,
 *   u8 hash[32]: BLAKE2b-256 over "rivulet replica" and all bytes before it. Little-endian. */
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
enum { STATE_VERSION = 1, STATE_HEADER_BYTES = 64 };

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
	struct rv_hasher h = rv_hasher_of("rivulet replica");
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

/* Lists theta, then each part's slices of m and v on its device (`on`), or in host memory (NULL)
 * as the kept vectors, which come last. */
static int list_vectors(const struct replica *r, uint8_t *out, struct replica_vector *list,
						struct backend *on[REPLICA_MAX_VECTORS]) {
	_Static_assert(REPLICA_MAX_VECTORS >= 1 + 2 * 2 * COMM_MAX_MEMBERS + REPLICA_MAX_KEPT,
				   "theta, m and v of each part (codes and tops), kept vectors");
	const size_t vector = r->n * sizeof(float), moments = moments_bytes(r->moments, r->n);
	uint8_t *theta = out + STATE_HEADER_BYTES, *m = theta + vector;
	int n = 0;
	on[n] = r->parts[0].be;
	list[n++] = (struct replica_vector){theta, r->parts[0].theta, vector};
	for (int i = 0; i < parts_with_state(r); i++) {
		const struct replica_part *p = &r->parts[i];
		struct moments_piece pieces[MOMENTS_PIECES];
		const int count = moments_pieces(r, p, pieces);
		for (int k = 0; k < count; k++) {
			on[n] = on[n + 1] = p->host ? NULL : p->be;
			list[n++] =
				(struct replica_vector){m + pieces[k].in_file, (char *)p->m + pieces[k].in_part, pieces[k].bytes};
			list[n++] = (struct replica_vector){m + moments + pieces[k].in_file, (char *)p->v + pieces[k].in_part,
												pieces[k].bytes};
		}
	}
	for (int i = 0; i < r->n_kept; i++) {
		on[n] = NULL;
		list[n++] = (struct replica_vector){m + 2 * moments + (size_t)i * vector, r->kept[i], vector};
	}
	return n;
}

int replica_vectors(const struct replica *r, uint8_t *out, struct replica_vector list[REPLICA_MAX_VECTORS]) {
	struct backend *on[REPLICA_MAX_VECTORS];
	RV_ASSERT(r->mirror == NULL);
	return list_vectors(r, out, list, on);
}

void replica_copy_vectors(const struct replica *r, uint8_t *out) {
	struct replica_vector list[REPLICA_MAX_VECTORS];
	struct backend *on[REPLICA_MAX_VECTORS];
	int n = list_vectors(r, out, list, on);
	for (int i = 0; i < n; i++)
		if (on[i])
			on[i]->ops->download(on[i], list[i].to, list[i].from, list[i].bytes);
		else
			memcpy(list[i].to, list[i].from, list[i].bytes);
}

void replica_seal(uint8_t *copy, size_t n) {
	RV_ASSERT(n > STATE_HEADER_BYTES + RV_HASH_BYTES);
	struct rv_hash hash = hash_state(copy, n - RV_HASH_BYTES);
	memcpy(copy + n - RV_HASH_BYTES, hash.b, RV_HASH_BYTES);
}

void replica_save(struct replica *r, uint8_t *out) {
	replica_copy_head(r, out);
	replica_copy_vectors(r, out);
	replica_seal(out, replica_state_bytes(r));
}

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

static enum rv_err check_length(size_t n, struct rv_errtext *et) {
	if (n < STATE_HEADER_BYTES + RV_HASH_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "replica state: cut short: size is %zu bytes, the header alone has %d", n,
					   STATE_HEADER_BYTES + RV_HASH_BYTES);
	return RV_OK;
}

enum rv_err replica_check(const uint8_t *in, size_t n, struct rv_errtext *et) {
	RV_TRY(check_length(n, et));
	struct rv_hash hash = hash_state(in, n - RV_HASH_BYTES);
	if (memcmp(hash.b, in + n - RV_HASH_BYTES, RV_HASH_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "replica state: hash does not match: the file was damaged");
	return RV_OK;
}

/* Checks everything before any change. */
static enum rv_err check_state(const struct replica *r, const uint8_t *in, size_t n, struct state_header *h,
							   struct rv_errtext *et) {
	RV_TRY(check_length(n, et));
	*h = read_header(in);
	RV_TRY(check_header(r, h, et));
	const size_t want = state_bytes_of(r, (enum moments)h->moments);
	if (n != want)
		return rv_fail(et, RV_E_CORRUPT, "replica state: size is %zu bytes, must be %zu", n, want);
	return replica_check(in, n, et);
}

/* Uploads a part's slice of both moments from a state of the replica's own kind. */
static void load_moments(const struct replica *r, const struct replica_part *p, const uint8_t *m) {
	struct moments_piece pieces[MOMENTS_PIECES];
	const int count = moments_pieces(r, p, pieces);
	const size_t vector = moments_bytes(r->moments, r->n);
	struct backend *be = replica_part_updater(p);
	for (int k = 0; k < count; k++) {
		be->ops->upload(be, (char *)p->m + pieces[k].in_part, m + pieces[k].in_file, pieces[k].bytes);
		be->ops->upload(be, (char *)p->v + pieces[k].in_part, m + vector + pieces[k].in_file, pieces[k].bytes);
	}
}

/* Writes a vector of n moments of the other kind: 8 bits as floats, or floats in 8 bits. */
static void convert_moments(enum moment which, enum moments to, size_t n, const uint8_t *in, uint8_t *out) {
	float values[MOMENTS_BLOCK];
	for (size_t block = 0; block < moments_blocks(n); block++) {
		const size_t at = block * MOMENTS_BLOCK * sizeof(float), left = n * sizeof(float) - at;
		const size_t bytes = left < sizeof values ? left : sizeof values;
		if (to == MOMENTS_FP32) {
			(void)moments_decode_block(which, in, n, block, values);
			memcpy(out + at, values, bytes);
		} else {
			memcpy(values, in + at, bytes);
			moments_encode_block(which, out, n, block, values, moments_seed(0, block));
		}
	}
}

/* Makes both moments of the replica's kind from those of the other one: its owner chose another
 * kind since. Returns RV_E_NOMEM. */
static enum rv_err converted_moments(const struct replica *r, const uint8_t *in, uint8_t **out, struct rv_errtext *et) {
	const enum moments from = r->moments == MOMENTS_FP32 ? MOMENTS_INT8 : MOMENTS_FP32;
	const size_t bytes = moments_bytes(r->moments, r->n);
	*out = calloc(2, bytes);
	if (!*out)
		return rv_fail(et, RV_E_NOMEM, "replica state: no memory to convert its moments (%zu bytes)", 2 * bytes);
	convert_moments(MOMENT_FIRST, r->moments, r->n, in, *out);
	convert_moments(MOMENT_SECOND, r->moments, r->n, in + moments_bytes(from, r->n), *out + bytes);
	return RV_OK;
}

enum rv_err replica_load(struct replica *r, const uint8_t *in, size_t n, struct rv_errtext *et) {
	struct state_header h = {0};
	uint8_t *converted = NULL;
	RV_TRY(check_state(r, in, n, &h, et));
	const enum moments kind = (enum moments)h.moments;
	const size_t vector = r->n * sizeof(float);
	const uint8_t *theta = in + STATE_HEADER_BYTES, *m = theta + vector, *kept = m + 2 * moments_bytes(kind, r->n);
	if (kind != r->moments)
		RV_TRY(converted_moments(r, m, &converted, et));
	replica_set_theta(r, (const float *)(const void *)theta);
	for (int i = 0; i < r->n_parts; i++)
		load_moments(r, &r->parts[i], converted ? converted : m);
	free(converted);
	for (int i = 0; i < r->n_kept; i++)
		memcpy(r->kept[i], kept + (size_t)i * vector, vector);
	r->global_step = h.global_step;
	r->adam_steps = h.adam_steps;
	r->cursor = h.cursor;
	return RV_OK;
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
	for (int i = 0; i < r->n_parts && finite; i++) {
		const struct replica_part *p = &r->parts[i];
		finite = is_finite_moment(r, p, p->m) && is_finite_moment(r, p, p->v);
	}
	for (int i = 0; i < r->n_parts && !finite; i++) {
		const struct replica_part *p = &r->parts[i];
		const size_t bytes = moments_bytes(r->moments, replica_part_updated(p));
		struct backend *be = replica_part_updater(p);
		be->ops->zero(be, p->m, bytes);
		be->ops->zero(be, p->v, bytes);
	}
	r->adam_steps = finite ? r->adam_steps : 0;
	return !finite;
}
