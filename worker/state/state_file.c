/* state_file.c: see state_file.h. */
#include "worker/state/state_file.h"

#include "base/assert.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct state_file {
	const struct global_config *cfg;
	int fd;              /* or -1 and: */
	struct blob *memory; /* all of the file */
	struct state_id id;
	uint32_t attempt, n_pieces;
	struct contribution_form form;
	uint64_t bytes;
	struct rv_hash *manifest;
	/* LOG: */
	struct state_stored *pieces;
	uint64_t *piece_at; /* in the file */
	struct state_packer *packer;
	uint8_t *stored; /* one piece */
};

/* ---- opening ---- */

static enum rv_err read_memory(const struct blob *b, void *out, size_t n, uint64_t at, struct rv_errtext *et) {
	if (at > b->bytes || n > b->bytes - at)
		return rv_fail(et, RV_E_CORRUPT, "cut short: it ends at byte %zu", b->bytes);
	memcpy(out, b->data + at, n);
	return RV_OK;
}

static enum rv_err read_at(const struct state_file *f, void *out, size_t n, uint64_t at, struct rv_errtext *et) {
	if (f->memory)
		return read_memory(f->memory, out, n, at, et);
	const ssize_t got = rv_read_at(f->fd, out, n, at);
	if (got < 0)
		return rv_fail_errno(et, errno, "cannot read at byte %llu", (unsigned long long)at);
	return (size_t)got == n
			   ? RV_OK
			   : rv_fail(et, RV_E_CORRUPT, "cut short: it ends at byte %llu", (unsigned long long)(at + (uint64_t)got));
}

static enum rv_err no_memory(struct rv_errtext *et) {
	return rv_fail(et, RV_E_NOMEM, "no memory for the list of its pieces");
}

static enum rv_err check_size(uint64_t bytes, uint64_t want, struct rv_errtext *et) {
	if (bytes == want)
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "%llu bytes, must be %llu: cut short, or something follows",
				   (unsigned long long)bytes, (unsigned long long)want);
}

static enum rv_err read_snapshot_header(struct state_file *f, const uint8_t *header, struct rv_errtext *et) {
	struct state_snapshot_info info;
	RV_TRY(state_snapshot_header_load(f->cfg, header, &info, et));
	f->id.round = info.round;
	f->id.chain = info.chain;
	f->id.expect = info.full_hash;
	f->n_pieces = state_pieces(f->cfg, STATE_KIND_SNAPSHOT, info.round);
	return check_size(f->bytes, state_file_max_bytes(f->cfg, STATE_KIND_SNAPSHOT, f->id.round), et);
}

static void place_pieces(struct state_file *f) {
	uint64_t at = state_prefix_bytes(f->cfg, STATE_KIND_LOG, f->id.round);
	for (uint32_t i = 0; i < f->n_pieces; i++) {
		f->piece_at[i] = at;
		at += f->pieces[i].bytes;
	}
	RV_ASSERT(at == f->bytes);
}

static enum rv_err read_index(struct state_file *f, const struct rv_hash *hash, struct rv_errtext *et) {
	size_t bytes = state_index_bytes(f->cfg, STATE_KIND_LOG, f->id.round);
	uint64_t stored_bytes;
	uint8_t *index = malloc(bytes);
	f->pieces = calloc(f->n_pieces, sizeof *f->pieces);
	f->piece_at = calloc(f->n_pieces, sizeof *f->piece_at);
	f->packer = state_packer_new();
	f->stored = malloc(STATE_PIECE_MAX_BYTES);
	bool ok = index && f->pieces && f->piece_at && f->packer && f->stored;
	enum rv_err e = ok ? read_at(f, index, bytes, STATE_HEADER_BYTES, et) : no_memory(et);
	if (e == RV_OK)
		e = state_index_load(f->cfg, f->id.round, hash, index, f->pieces, &stored_bytes, et);
	free(index);
	RV_TRY(e);
	RV_TRY(check_size(f->bytes, state_prefix_bytes(f->cfg, STATE_KIND_LOG, f->id.round) + stored_bytes, et));
	place_pieces(f);
	return RV_OK;
}

static enum rv_err read_log_header(struct state_file *f, const uint8_t *header, struct rv_errtext *et) {
	struct state_log_info info;
	struct rv_hash index_hash;
	RV_TRY(state_log_header_load(f->cfg, header, &info, &index_hash, et));
	f->id.round = info.round;
	f->id.expect = info.digest;
	f->attempt = info.attempt;
	f->form = info.form;
	f->n_pieces = state_pieces(f->cfg, STATE_KIND_LOG, info.round);
	return read_index(f, &index_hash, et);
}

static enum rv_err read_manifest(struct state_file *f, struct rv_errtext *et) {
	const struct state_id *id = &f->id;
	size_t bytes = (size_t)state_manifest_hashes(f->cfg, id->kind, id->round) * RV_HASH_BYTES;
	uint64_t at = STATE_HEADER_BYTES + state_index_bytes(f->cfg, id->kind, id->round);
	f->manifest = malloc(bytes);
	if (!f->manifest)
		return no_memory(et);
	RV_TRY(read_at(f, f->manifest, bytes, at, et));
	return state_manifest_check(f->cfg, id, f->manifest, et);
}

static enum rv_err measure(struct state_file *f, struct rv_errtext *et) {
	struct stat st;
	if (f->memory) {
		f->bytes = f->memory->bytes;
		return RV_OK;
	}
	if (fstat(f->fd, &st) != 0)
		return rv_fail_errno(et, errno, "cannot stat");
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "not a regular file");
	f->bytes = (uint64_t)st.st_size;
	return RV_OK;
}

static enum rv_err read_prefix(struct state_file *f, struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	RV_TRY(measure(f, et));
	RV_TRY(read_at(f, header, sizeof header, 0, et));
	RV_TRY(f->id.kind == STATE_KIND_SNAPSHOT ? read_snapshot_header(f, header, et) : read_log_header(f, header, et));
	return read_manifest(f, et);
}

static enum rv_err open_source(const struct global_config *c, enum state_kind kind, int fd, struct blob *memory,
							   struct state_file **out, struct rv_errtext *et) {
	struct state_file *f = calloc(1, sizeof *f);
	if (!f) {
		if (fd >= 0)
			(void)close(fd);
		blob_unref(memory);
		return no_memory(et);
	}
	*f = (struct state_file){.cfg = c, .fd = fd, .memory = memory, .id.kind = kind};
	enum rv_err e = read_prefix(f, et);
	if (e != RV_OK) {
		state_file_free(f);
		return e;
	}
	*out = f;
	return RV_OK;
}

enum rv_err state_file_of(const struct global_config *c, enum state_kind kind, int fd, struct state_file **out,
						  struct rv_errtext *et) {
	return open_source(c, kind, fd, NULL, out, et);
}

enum rv_err state_file_in_memory(const struct global_config *c, struct blob *bytes, struct state_file **out,
								 struct rv_errtext *et) {
	return open_source(c, STATE_KIND_SNAPSHOT, -1, bytes, out, et);
}

enum rv_err state_file_open(const struct global_config *c, enum state_kind kind, const char *path,
							struct state_file **out, struct rv_errtext *et) {
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "cannot open for reading");
	return state_file_of(c, kind, fd, out, et);
}

void state_file_free(struct state_file *f) {
	if (!f)
		return;
	if (f->fd >= 0)
		(void)close(f->fd);
	blob_unref(f->memory);
	free(f->manifest);
	free(f->pieces);
	free(f->piece_at);
	state_packer_free(f->packer);
	free(f->stored);
	free(f);
}

/* ---- what it is ---- */

const struct state_id *state_file_id(const struct state_file *f) {
	return &f->id;
}

struct contribution_form state_file_form(const struct state_file *f) {
	return f->form;
}

uint32_t state_file_attempt(const struct state_file *f) {
	return f->attempt;
}

uint64_t state_file_bytes(const struct state_file *f) {
	return f->bytes;
}

const struct rv_hash *state_file_manifest(const struct state_file *f) {
	return f->manifest;
}

/* ---- pieces ---- */

struct state_stored state_file_stored(const struct state_file *f, uint32_t i) {
	size_t bytes;
	RV_ASSERT(i < f->n_pieces);
	if (f->pieces)
		return f->pieces[i];
	(void)state_piece_at(f->cfg, f->id.kind, f->id.round, i, &bytes);
	return (struct state_stored){STATE_RAW, (uint32_t)bytes};
}

enum rv_err state_file_read_stored(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et) {
	size_t bytes;
	RV_ASSERT(i < f->n_pieces);
	RV_ASSERT(!f->pieces || f->piece_at[i] + f->pieces[i].bytes <= f->bytes);
	if (f->pieces)
		return read_at(f, out, f->pieces[i].bytes, f->piece_at[i], et);
	const struct state_id *id = &f->id;
	uint64_t at = state_prefix_bytes(f->cfg, id->kind, id->round);
	at += state_piece_at(f->cfg, id->kind, id->round, i, &bytes);
	RV_ASSERT(at + bytes <= f->bytes);
	return read_at(f, out, bytes, at, et);
}

/* Reads piece i (state_piece_at() bytes), unpacked and checked against the manifest. */
static enum rv_err read_piece(struct state_file *f, uint32_t i, void *out, struct rv_errtext *et) {
	size_t bytes;
	(void)state_piece_at(f->cfg, f->id.kind, f->id.round, i, &bytes);
	struct state_stored what = state_file_stored(f, i);
	RV_TRY(state_file_read_stored(f, i, what.encoding == STATE_RAW ? out : f->stored, et));
	if (what.encoding != STATE_RAW) {
		enum rv_err e = state_unpack(f->packer, &what, f->stored, out, bytes, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "piece %u of %u", i, f->n_pieces);
	}
	return state_piece_check(f->cfg, &f->id, f->manifest, i, out, bytes, et);
}

enum rv_err state_file_read_chunk(struct state_file *f, uint32_t number, uint8_t *out, const uint8_t **chunk,
								  struct rv_errtext *et) {
	size_t at;
	RV_ASSERT(f->id.kind == STATE_KIND_LOG);
	RV_TRY(read_piece(f, state_piece_of_chunk(f->cfg, f->id.round, number, &at), out, et));
	*chunk = out + at;
	return RV_OK;
}

/* ---- all of it ---- */

enum rv_err state_file_each(struct state_file *f, state_piece_fn *fn, void *ctx, struct rv_errtext *et) {
	uint8_t *piece = malloc(STATE_PIECE_MAX_BYTES);
	enum rv_err e = piece ? RV_OK : no_memory(et);
	for (uint32_t i = 0; e == RV_OK && i < f->n_pieces; i++) {
		size_t bytes;
		(void)state_piece_at(f->cfg, f->id.kind, f->id.round, i, &bytes);
		e = read_piece(f, i, piece, et);
		if (e == RV_OK && fn)
			e = fn(ctx, i, piece, bytes, et);
	}
	free(piece);
	return e;
}

enum rv_err state_file_verify(struct state_file *f, struct rv_errtext *et) {
	return state_file_each(f, NULL, NULL, et);
}

enum rv_err state_file_load_snapshot(struct state_file *f, struct global_state *into, struct rv_errtext *et) {
	RV_ASSERT(f->id.kind == STATE_KIND_SNAPSHOT && into->cfg.n == f->cfg->n && !rv_hash_is_zero(&f->id.chain));
	for (uint32_t i = 0; i < f->n_pieces; i++) {
		size_t n;
		float *piece = (float *)(uintptr_t)global_piece(into, i, &n); /* *into is ours to change */
		RV_TRY(read_piece(f, i, piece, et));
	}
	into->round = f->id.round;
	into->chain = f->id.chain;
	return RV_OK;
}

enum rv_err state_file_load_log(struct state_file *f, struct blob **payload, struct rv_errtext *et) {
	RV_ASSERT(f->id.kind == STATE_KIND_LOG);
	struct blob *b = blob_new(state_payload_bytes(f->cfg, STATE_KIND_LOG, f->id.round));
	if (!b)
		return rv_fail(et, RV_E_NOMEM, "no memory for the reduced bytes of a round");
	for (uint32_t i = 0; i < f->n_pieces; i++) {
		size_t bytes, at = state_piece_at(f->cfg, STATE_KIND_LOG, f->id.round, i, &bytes);
		enum rv_err e = read_piece(f, i, b->data + at, et);
		if (e != RV_OK) {
			blob_unref(b);
			return e;
		}
	}
	*payload = b;
	return RV_OK;
}
