/* statestore.c: the files in --dir: their names, how they are written and opened. */
#include "worker/state/statestore_internal.h"

#include "base/assert.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0644 };

/* ---- names ---- */

static const struct {
	enum statestore_file kind;
	const char *before, *after; /* the round */
} names[] = {
	{STATE_FILE_SNAPSHOT, "snapshot-", ".rvs"},
	{STATE_FILE_LOG, "log-", ".rvl"},
	{STATE_FILE_PART, "snapshot-", ".part"},
	{STATE_FILE_MEANS, "means-", ".rvm"},
};

void statestore_path(const struct statestore *s, enum statestore_file kind, uint64_t round,
					 char out[STATESTORE_PATH_BYTES]) {
	if (kind == STATE_FILE_REPLICA)
		snprintf(out, STATESTORE_PATH_BYTES, "%s/replica.rvp", s->dir);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].kind == kind)
			snprintf(out, STATESTORE_PATH_BYTES, "%s/%s%" PRIu64 "%s", s->dir, names[i].before, round, names[i].after);
}

/* Decimal, as statestore_path writes it; returns what follows, or NULL. */
static const char *parse_round(const char *text, uint64_t *round) {
	enum { MAX_DIGITS = 18 };
	size_t n = strspn(text, "0123456789");
	if (n == 0 || n > MAX_DIGITS || (text[0] == '0' && n > 1))
		return NULL;
	*round = strtoull(text, NULL, 10);
	return text + n;
}

bool statestore_parse_name(const char *name, enum statestore_file *kind, uint64_t *round) {
	*kind = STATE_FILE_REPLICA;
	*round = 0;
	if (strcmp(name, "replica.rvp") == 0)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		size_t n = strlen(names[i].before);
		const char *after = strncmp(name, names[i].before, n) == 0 ? parse_round(name + n, round) : NULL;
		*kind = names[i].kind;
		if (after && strcmp(after, names[i].after) == 0)
			return true;
	}
	return false;
}

enum rv_err statestore_remove(const struct statestore *s, enum statestore_file kind, uint64_t round,
							  struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	if (unlink(path) == 0 || errno == ENOENT)
		return RV_OK;
	return rv_fail_errno(et, errno, "%s: cannot be removed", path);
}

/* ---- writing ---- */

static enum rv_err begin(const struct statestore *s, enum statestore_file kind, uint64_t round,
						 struct rv_file_writer *w, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind, round, path);
	return rv_file_writer_begin(w, path, FILE_MODE, et);
}

static enum rv_err write_snapshot(const struct statestore *s, const struct global_state *g, const uint8_t *header,
								  const struct rv_hash *manifest, struct rv_errtext *et) {
	struct rv_file_writer w;
	size_t vector = g->cfg.n * sizeof(float);
	RV_TRY(begin(s, STATE_FILE_SNAPSHOT, g->round, &w, et));
	enum rv_err e = rv_file_writer_write(&w, header, STATE_HEADER_BYTES, et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, manifest, (size_t)global_pieces(&g->cfg) * sizeof *manifest, et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, g->theta, vector, et);
	for (int k = 0; e == RV_OK && k < global_states(&g->cfg); k++)
		e = rv_file_writer_write(&w, g->state[k], vector, et);
	return rv_file_writer_end(&w, e, et);
}

enum rv_err statestore_write_snapshot(const struct statestore *s, const struct global_state *g,
									  struct rv_hash *full_hash, struct rv_errtext *et) {
	uint8_t header[STATE_HEADER_BYTES];
	struct state_snapshot_info info = {.round = g->round, .chain = g->chain};
	struct rv_hash *manifest = calloc(global_pieces(&g->cfg), sizeof *manifest);
	for (uint32_t i = 0; manifest && i < global_pieces(&g->cfg); i++) {
		size_t n;
		const float *piece = global_piece(g, i, &n);
		manifest[i] = rv_hash_of(piece, n * sizeof *piece);
	}
	info.full_hash = manifest ? global_full_hash_of(&g->cfg, g->round, &g->chain, manifest) : global_full_hash(g);
	if (full_hash)
		*full_hash = info.full_hash;
	if (!manifest)
		return rv_fail(et, RV_E_NOMEM, "no memory for the hashes of a snapshot");
	state_snapshot_header(&g->cfg, &info, header);
	enum rv_err e = write_snapshot(s, g, header, manifest, et);
	free(manifest);
	return e;
}

/* A log entry on its way to the disk. */
struct log_writer {
	const struct global_config *cfg;
	uint64_t round;
	struct rv_file_writer file;
	struct state_packer *packer;
	struct state_stored *pieces;
	uint8_t *prefix, *packed;
};

static enum rv_err write_pieces(struct log_writer *l, const uint8_t *payload, struct rv_errtext *et) {
	for (uint32_t i = 0; i < state_pieces(l->cfg, STATE_KIND_LOG, l->round); i++) {
		size_t bytes, at = state_piece_at(l->cfg, STATE_KIND_LOG, l->round, i, &bytes);
		l->pieces[i] = state_pack(l->packer, payload + at, bytes, l->packed);
		RV_ASSERT(l->pieces[i].bytes <= bytes);
		const uint8_t *stored = l->pieces[i].encoding == STATE_RAW ? payload + at : l->packed;
		RV_TRY(rv_file_writer_write(&l->file, stored, l->pieces[i].bytes, et));
	}
	return RV_OK;
}

/* The prefix has its place first, and its contents when the sizes of the pieces are known. */
static enum rv_err write_log(struct log_writer *l, const struct state_log_info *info, const uint8_t *payload,
							 struct rv_errtext *et) {
	size_t prefix_bytes = state_prefix_bytes(l->cfg, STATE_KIND_LOG, l->round);
	RV_TRY(rv_file_writer_write(&l->file, l->prefix, prefix_bytes, et));
	RV_TRY(write_pieces(l, payload, et));
	uint8_t *index = l->prefix + STATE_HEADER_BYTES;
	RV_ASSERT(info->round == l->round && !rv_hash_is_zero(&info->digest));
	state_index_write(l->pieces, state_pieces(l->cfg, STATE_KIND_LOG, l->round), index);
	state_log_header(l->cfg, info, index, l->prefix);
	return rv_file_writer_patch(&l->file, l->prefix, prefix_bytes, 0, et);
}

enum rv_err statestore_probe(const struct statestore *s, struct rv_errtext *et) {
	struct rv_file_writer w;
	char path[STATESTORE_PATH_BYTES + 16];
	size_t bytes = global_max_payload_bytes(&s->cfg) + s->means_bytes;
	uint8_t *zeros = calloc(1, bytes);
	if (!zeros)
		return rv_fail(et, RV_E_NOMEM, "no memory to try the disk with %zu bytes", bytes);
	(void)snprintf(path, sizeof path, "%s/probe", s->dir);
	enum rv_err e = rv_file_writer_begin(&w, path, FILE_MODE, et);
	if (e == RV_OK)
		e = rv_file_writer_end(&w, rv_file_writer_write(&w, zeros, bytes, et), et);
	free(zeros);
	(void)unlink(path);
	return e;
}

enum rv_err statestore_write_log(const struct statestore *s, struct state_log_info *info, const uint8_t *payload,
								 struct rv_errtext *et) {
	const struct global_config *c = &s->cfg;
	const struct global_state names_only = {.cfg = *c};
	const uint64_t round = info->round;
	struct log_writer l = {.cfg = c,
						   .round = round,
						   .packer = state_packer_new(),
						   .pieces = calloc(state_pieces(c, STATE_KIND_LOG, round), sizeof *l.pieces),
						   .prefix = calloc(1, state_prefix_bytes(c, STATE_KIND_LOG, round)),
						   .packed = malloc(STATE_PIECE_MAX_BYTES)};
	enum rv_err e = RV_OK;
	if (!l.packer || !l.pieces || !l.prefix || !l.packed) {
		info->digest = global_digest(&names_only, round, payload);
		e = rv_fail(et, RV_E_NOMEM, "no memory to write the log of round %" PRIu64, round);
	} else {
		uint8_t *manifest = l.prefix + STATE_HEADER_BYTES + state_index_bytes(c, STATE_KIND_LOG, round);
		state_manifest_of(c, STATE_KIND_LOG, round, payload, (struct rv_hash *)(void *)manifest);
		info->digest = global_digest_of(c, round, (const struct rv_hash *)(const void *)manifest);
		e = begin(s, STATE_FILE_LOG, round, &l.file, et);
		if (e == RV_OK)
			e = rv_file_writer_end(&l.file, write_log(&l, info, payload, et), et);
	}
	state_packer_free(l.packer);
	free(l.pieces);
	free(l.prefix);
	free(l.packed);
	return e;
}

static const void *next_of_whole(void *ctx, size_t *n) {
	struct state_whole *w = ctx;
	*n = w->n;
	w->n = 0;
	return *n > 0 ? w->bytes : NULL;
}

struct state_pieces_of state_pieces_of_whole(struct state_whole *w) {
	return (struct state_pieces_of){w, next_of_whole};
}

static enum rv_err write_replica(const struct statestore *s, const struct state_replica_info *info,
								 const struct state_pieces_of *payload, struct rv_errtext *et) {
	struct rv_file_writer w;
	uint8_t header[STATE_HEADER_BYTES];
	const void *piece;
	uint64_t written = 0;
	state_replica_header(&s->cfg, info, header);
	RV_TRY(begin(s, STATE_FILE_REPLICA, 0, &w, et));
	enum rv_err e = rv_file_writer_write(&w, header, sizeof header, et);
	for (size_t n = 0; e == RV_OK && (piece = payload->next(payload->ctx, &n)) != NULL; written += n)
		e = rv_file_writer_write(&w, piece, n, et);
	if (e == RV_OK && written != info->payload_bytes)
		e = rv_fail(et, RV_E_CANCELLED, "the state's memory was given back before all of it was written");
	return rv_file_writer_end(&w, e, et);
}

enum rv_err statestore_write_replica(const struct statestore *s, const struct state_replica_info *info,
									 const struct state_pieces_of *payload, struct rv_errtext *et) {
	struct state_replica_info old;
	enum rv_err e = write_replica(s, info, payload, et);
	if (e != RV_OK && statestore_replica_header(s, &old, NULL) == RV_OK && old.round > info->round)
		(void)statestore_remove(s, STATE_FILE_REPLICA, 0, NULL); /* of a round that was taken back: it proves nothing */
	return e;
}

enum rv_err statestore_adopt(const struct statestore *s, uint64_t round, struct rv_errtext *et) {
	char part[STATESTORE_PATH_BYTES], path[STATESTORE_PATH_BYTES];
	statestore_path(s, STATE_FILE_PART, round, part);
	statestore_path(s, STATE_FILE_SNAPSHOT, round, path);
	if (rename(part, path) != 0)
		return rv_fail_errno(et, errno, "%s: cannot rename to %s", part, path);
	return rv_file_sync_parent(path, et);
}

/* ---- reading ---- */

enum rv_err statestore_open(const struct statestore *s, enum state_kind kind, uint64_t round, struct state_file **out,
							struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, kind == STATE_KIND_SNAPSHOT ? STATE_FILE_SNAPSHOT : STATE_FILE_LOG, round, path);
	enum rv_err e = state_file_open(&s->cfg, kind, path, out, et);
	if (e == RV_OK && state_file_id(*out)->round != round) {
		e = rv_fail(et, RV_E_CORRUPT, "it holds round %" PRIu64, state_file_id(*out)->round);
		state_file_free(*out);
	}
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

enum rv_err statestore_open_replica(const struct statestore *s, struct replica_file **out, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(s, STATE_FILE_REPLICA, 0, path);
	const enum rv_err e = replica_file_open(&s->cfg, path, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}
