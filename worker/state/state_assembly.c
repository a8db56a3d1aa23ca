/* state_assembly.c: see state_assembly.h. A snapshot is put together in a file of its final layout,
 * so that finishing it is a rename; a log entry as the bare reduced bytes, which are packed when it
 * is finished. */
#include "worker/state/state_assembly.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/os_file.h"
#include "worker/state/statestore_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART_MODE = 0644 };

struct state_assembly {
	const struct statestore *store;
	struct state_id id;
	uint32_t n_pieces, left;
	bool has_manifest;
	struct rv_hash *manifest;
	bool *held; /* (n_pieces) */
	struct state_packer *packer;
	uint8_t *piece; /* the one at hand */
	/* SNAPSHOT, the file in its final layout: */
	int fd;
	struct blob *memory; /* the file, when the disk did not take it, for this reason: */
	struct rv_errtext why;
	/* LOG: */
	struct blob *payload;
};

/* Each piece is counted once; the file lies in one place. */
static void check_invariants(const struct state_assembly *a) {
	uint32_t held = 0;
	for (uint32_t i = 0; i < a->n_pieces; i++)
		held += a->held[i];
	RV_ASSERT(held + a->left == a->n_pieces);
	RV_ASSERT(a->has_manifest || held == 0);
	RV_ASSERT(!a->memory || (a->fd < 0 && a->why.text[0] != '\0'));
	RV_ASSERT(a->id.kind == STATE_KIND_SNAPSHOT ? !a->payload : a->payload && a->fd < 0 && !a->memory);
}

static void part_path(const struct state_assembly *a, char out[STATESTORE_PATH_BYTES]) {
	statestore_path(a->store, STATE_FILE_PART, a->id.round, out);
}

/* ---- the file of a snapshot ---- */

static enum rv_err write_at(const struct state_assembly *a, const void *data, size_t n, uint64_t at,
							struct rv_errtext *et) {
	RV_ASSERT(at + n <= state_file_max_bytes(&a->store->cfg, STATE_KIND_SNAPSHOT, a->id.round));
	RV_ASSERT((a->memory != NULL) != (a->fd >= 0));
	if (a->memory) {
		memcpy(a->memory->data + at, data, n);
		return RV_OK;
	}
	return rv_write_at(a->fd, data, n, at)
			   ? RV_OK
			   : rv_fail_errno(et, errno, "%s/snapshot-%" PRIu64 ".part: cannot write", a->store->dir, a->id.round);
}

static bool read_at(const struct state_assembly *a, void *out, size_t n, uint64_t at) {
	return rv_read_at(a->fd, out, n, at) == (ssize_t)n;
}

static uint64_t place_of(const struct state_assembly *a, uint32_t i, size_t *bytes) {
	const struct global_config *c = &a->store->cfg;
	RV_ASSERT(a->id.kind == STATE_KIND_SNAPSHOT && i < a->n_pieces);
	return state_prefix_bytes(c, STATE_KIND_SNAPSHOT, a->id.round) +
		   state_piece_at(c, STATE_KIND_SNAPSHOT, a->id.round, i, bytes);
}

static enum rv_err write_prefix(const struct state_assembly *a, struct rv_errtext *et) {
	const struct global_config *c = &a->store->cfg;
	uint8_t header[STATE_HEADER_BYTES];
	const struct state_snapshot_info info = {.round = a->id.round,
											 .chain = a->id.chain,
											 .full_hash =
												 global_full_hash_of(c, a->id.round, &a->id.chain, a->manifest)};
	state_snapshot_header(c, &info, header);
	RV_TRY(write_at(a, header, sizeof header, 0, et));
	return write_at(a, a->manifest, (size_t)a->n_pieces * sizeof *a->manifest, sizeof header, et);
}

/* From the disk into memory, with what is there: `why` the disk is left. */
static enum rv_err move_to_memory(struct state_assembly *a, const struct rv_errtext *why, struct rv_errtext *et) {
	RV_ASSERT(!a->memory && why->text[0] != '\0');
	struct blob *memory = blob_new(state_file_max_bytes(&a->store->cfg, STATE_KIND_SNAPSHOT, a->id.round));
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "%s; and there is no memory for it", why->text);
	for (uint32_t i = 0; i < a->n_pieces; i++) {
		size_t bytes;
		uint64_t at = place_of(a, i, &bytes);
		if (a->held[i] && !read_at(a, memory->data + at, bytes, at)) {
			a->held[i] = false;
			a->left++;
		}
	}
	if (a->fd >= 0)
		(void)close(a->fd);
	(void)statestore_remove(a->store, STATE_FILE_PART, a->id.round, NULL);
	a->fd = -1;
	a->memory = memory;
	a->why = *why;
	return a->has_manifest ? write_prefix(a, et) : RV_OK;
}

/* Takes up what an earlier process left, when it is of the same state. */
static void resume(struct state_assembly *a) {
	const struct global_config *c = &a->store->cfg;
	uint8_t header[STATE_HEADER_BYTES];
	struct state_snapshot_info info;
	if (!read_at(a, header, sizeof header, 0) || state_snapshot_header_load(c, header, &info, NULL) != RV_OK ||
		!read_at(a, a->manifest, (size_t)a->n_pieces * sizeof *a->manifest, sizeof header))
		return;
	bool vouched = !rv_hash_is_zero(&a->id.expect);
	const struct state_id found = {.kind = STATE_KIND_SNAPSHOT,
								   .round = info.round,
								   .chain = info.chain,
								   .expect = vouched ? a->id.expect : info.full_hash};
	if (info.round != a->id.round || !rv_hash_equal(&info.chain, &a->id.chain) ||
		state_manifest_check(c, &found, a->manifest, NULL) != RV_OK)
		return;
	a->has_manifest = true;
	for (uint32_t i = 0; i < a->n_pieces; i++) {
		size_t bytes;
		uint64_t at = place_of(a, i, &bytes);
		a->held[i] = read_at(a, a->piece, bytes, at) &&
					 state_piece_check(c, &a->id, a->manifest, i, a->piece, bytes, NULL) == RV_OK;
		a->left -= a->held[i];
	}
}

/* Those of other rounds. */
static void remove_other_parts(const struct state_assembly *a) {
	DIR *d = opendir(a->store->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		enum statestore_file kind;
		uint64_t round;
		if (statestore_parse_name(e->d_name, &kind, &round) && kind == STATE_FILE_PART && round != a->id.round)
			(void)statestore_remove(a->store, kind, round, NULL);
	}
	closedir(d);
}

/* Room is taken first: that there is none shows before anything has been fetched. */
static enum rv_err open_part(struct state_assembly *a, struct rv_errtext *et) {
	struct rv_errtext why;
	char path[STATESTORE_PATH_BYTES];
	remove_other_parts(a);
	part_path(a, path);
	a->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PART_MODE);
	if (a->fd < 0) {
		(void)rv_fail_errno(&why, errno, "%s: cannot open for writing", path);
		return move_to_memory(a, &why, et);
	}
	int full = os_file_take_room(a->fd, state_file_max_bytes(&a->store->cfg, STATE_KIND_SNAPSHOT, a->id.round));
	if (full != 0) {
		(void)rv_fail_errno(&why, full, "%s: no room for it", path);
		return move_to_memory(a, &why, et);
	}
	resume(a);
	return RV_OK;
}

/* ---- the assembly ---- */

static enum rv_err build(struct state_assembly *a, struct rv_errtext *et) {
	const struct global_config *c = &a->store->cfg;
	a->manifest = calloc(state_manifest_hashes(c, a->id.kind, a->id.round), sizeof *a->manifest);
	a->held = calloc(a->n_pieces, sizeof *a->held);
	a->packer = state_packer_new();
	a->piece = malloc(STATE_PIECE_MAX_BYTES);
	bool ok = a->manifest && a->held && a->packer && a->piece;
	if (ok && a->id.kind == STATE_KIND_SNAPSHOT)
		return open_part(a, et);
	if (ok)
		ok = (a->payload = blob_new(state_payload_bytes(c, STATE_KIND_LOG, a->id.round))) != NULL;
	return ok ? RV_OK
			  : rv_fail(et, RV_E_NOMEM, "no memory to put the state of round %" PRIu64 " together", a->id.round);
}

enum rv_err state_assembly_new(const struct statestore *s, const struct state_id *id, struct state_assembly **out,
							   struct rv_errtext *et) {
	struct state_assembly *a = calloc(1, sizeof *a);
	if (!a)
		return rv_fail(et, RV_E_NOMEM, "no memory to put a state together");
	uint32_t n = state_pieces(&s->cfg, id->kind, id->round);
	*a = (struct state_assembly){.store = s, .id = *id, .n_pieces = n, .left = n, .fd = -1};
	enum rv_err e = build(a, et);
	if (e != RV_OK) {
		state_assembly_free(a);
		return e;
	}
	check_invariants(a);
	*out = a;
	return RV_OK;
}

void state_assembly_free(struct state_assembly *a) {
	if (!a)
		return;
	if (a->fd >= 0)
		(void)close(a->fd);
	blob_unref(a->memory);
	blob_unref(a->payload);
	free(a->manifest);
	free(a->held);
	state_packer_free(a->packer);
	free(a->piece);
	free(a);
}

const struct rv_hash *state_assembly_manifest(const struct state_assembly *a) {
	return a->has_manifest ? a->manifest : NULL;
}

bool state_assembly_has(const struct state_assembly *a, uint32_t i) {
	RV_ASSERT(i < a->n_pieces);
	return a->held[i];
}

uint32_t state_assembly_left(const struct state_assembly *a) {
	return a->left;
}

enum rv_err state_assembly_set_manifest(struct state_assembly *a, const struct rv_hash *manifest,
										struct rv_errtext *et) {
	const struct global_config *c = &a->store->cfg;
	struct rv_errtext why = {0};
	RV_ASSERT(!a->has_manifest);
	check_invariants(a);
	if (!rv_hash_is_zero(&a->id.expect))
		RV_TRY(state_manifest_check(c, &a->id, manifest, et));
	memcpy(a->manifest, manifest, state_manifest_hashes(c, a->id.kind, a->id.round) * sizeof *manifest);
	a->has_manifest = true;
	bool refused = a->id.kind == STATE_KIND_SNAPSHOT && write_prefix(a, &why) != RV_OK;
	enum rv_err e = refused ? move_to_memory(a, &why, et) : RV_OK;
	a->has_manifest = e == RV_OK;
	return e;
}

static enum rv_err keep_piece(struct state_assembly *a, uint32_t i, size_t bytes, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	size_t n;
	if (a->id.kind == STATE_KIND_LOG) {
		size_t at = state_piece_at(&a->store->cfg, STATE_KIND_LOG, a->id.round, i, &n);
		memcpy(a->payload->data + at, a->piece, bytes);
		return RV_OK;
	}
	uint64_t at = place_of(a, i, &n);
	if (write_at(a, a->piece, bytes, at, &why) == RV_OK)
		return RV_OK;
	RV_TRY(move_to_memory(a, &why, et));
	return write_at(a, a->piece, bytes, at, et);
}

enum rv_err state_assembly_put(struct state_assembly *a, uint32_t i, const struct state_stored *what,
							   const void *stored, struct rv_errtext *et) {
	const struct global_config *c = &a->store->cfg;
	size_t bytes;
	RV_ASSERT(a->has_manifest && i < a->n_pieces);
	check_invariants(a);
	if (a->held[i])
		return RV_OK;
	(void)state_piece_at(c, a->id.kind, a->id.round, i, &bytes);
	RV_TRY(state_unpack(a->packer, what, stored, a->piece, bytes, et));
	RV_TRY(state_piece_check(c, &a->id, a->manifest, i, a->piece, bytes, et));
	RV_TRY(keep_piece(a, i, bytes, et));
	RV_ASSERT(a->left > 0);
	a->held[i] = true;
	a->left--;
	return RV_OK;
}

/* ---- finishing ---- */

static enum rv_err finish_snapshot(struct state_assembly *a, struct state_file **out, struct rv_errtext *warning,
								   struct rv_errtext *et) {
	if (a->memory) {
		*warning = a->why;
		return state_file_in_memory(&a->store->cfg, blob_ref(a->memory), out, et);
	}
	if (fsync(a->fd) != 0)
		(void)rv_fail_errno(warning, errno, "%s/snapshot-%" PRIu64 ".part: cannot fsync", a->store->dir, a->id.round);
	int fd = a->fd;
	a->fd = -1;
	return state_file_of(&a->store->cfg, STATE_KIND_SNAPSHOT, fd, out, et);
}

/* Writes the entry; without the disk it stays in memory. */
static void finish_log(const struct state_assembly *a, struct blob **out, struct rv_errtext *warning) {
	struct state_log_info info = {.round = a->id.round, .attempt = 0};
	(void)statestore_write_log(a->store, &info, a->payload->data, warning);
	RV_ASSERT(rv_hash_equal(&info.digest, &a->id.expect));
	*out = blob_ref(a->payload);
}

enum rv_err state_assembly_finish(struct state_assembly *a, struct state_file **snapshot, struct blob **log,
								  struct rv_errtext *warning, struct rv_errtext *et) {
	RV_ASSERT(a->has_manifest && a->left == 0);
	check_invariants(a);
	*warning = (struct rv_errtext){0};
	*snapshot = NULL;
	*log = NULL;
	if (a->id.kind == STATE_KIND_SNAPSHOT)
		return finish_snapshot(a, snapshot, warning, et);
	finish_log(a, log, warning);
	return RV_OK;
}
