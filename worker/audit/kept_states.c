/* kept_states.c: see kept_states.h. */
#include "worker/audit/kept_states.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/round_number.h"
#include "train/inner_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Auditors ask side by side, of different rounds: so many files stay open, and so many pieces in
 * memory. */
enum { FILE_MODE = 0644, OPEN = 4 };

/* A file that is open for reading. */
struct open_file {
	int fd; /* -1: none */
	uint64_t round;
	struct rv_hash *leaves; /* of the inner state, the tree over them behind these; then of theta */
	uint64_t used;          /* `turn` when it was last used */
};

/* A piece that was read, with its proof. */
struct read_piece {
	uint8_t *data; /* INNER_PIECE_BYTES and a proof; NULL: no memory was needed yet */
	uint64_t round;
	uint32_t index;
	size_t bytes; /* 0: none */
	uint64_t used;
};

struct kept_states {
	const struct statestore *store;
	uint32_t rounds;
	struct open_file files[OPEN];
	struct read_piece pieces[OPEN];
	uint64_t turn;
};

static void path_of(const char *dir, uint64_t slot, char out[STATESTORE_PATH_BYTES]) {
	(void)snprintf(out, STATESTORE_PATH_BYTES, "%s/inner-%" PRIu64 ".rvi", dir, slot);
}

static size_t n_of(const struct kept_states *k) {
	return k->store->cfg.n;
}

static uint32_t theta_pieces(size_t n) {
	return (uint32_t)((n * sizeof(float) + INNER_PIECE_BYTES - 1) / INNER_PIECE_BYTES);
}

static size_t theta_piece_bytes(size_t n, uint32_t i) {
	const size_t left = n * sizeof(float) - (size_t)i * INNER_PIECE_BYTES;
	return left < INNER_PIECE_BYTES ? left : INNER_PIECE_BYTES;
}

/* Returns where the leaves lie in the file. */
static uint64_t leaves_at(size_t n) {
	return STATE_HEADER_BYTES + inner_state_bytes(n) + (uint64_t)n * sizeof(float);
}

uint64_t kept_states_bytes(size_t n) {
	return leaves_at(n) + (uint64_t)(inner_state_pieces(n) + theta_pieces(n)) * sizeof(struct rv_hash);
}

uint64_t kept_states_there(const char *dir, uint32_t rounds) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	uint64_t bytes = 0;
	for (uint32_t slot = 0; slot < rounds; slot++) {
		path_of(dir, slot, path);
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
	return bytes;
}

static void close_file(struct open_file *f) {
	free(f->leaves);
	if (f->fd >= 0)
		(void)close(f->fd);
	*f = (struct open_file){.fd = -1};
}

/* ---- life ---- */

enum rv_err kept_states_new(const struct statestore *store, uint32_t rounds, struct kept_states **out,
							struct rv_errtext *et) {
	struct kept_states *k = calloc(1, sizeof *k);
	RV_ASSERT(rounds > 0);
	if (!k)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep inner states");
	*k = (struct kept_states){.store = store, .rounds = rounds};
	for (int i = 0; i < OPEN; i++)
		k->files[i].fd = -1;
	*out = k;
	return RV_OK;
}

void kept_states_forget(struct kept_states *k) {
	for (int i = 0; i < OPEN; i++) {
		close_file(&k->files[i]);
		free(k->pieces[i].data);
		k->pieces[i] = (struct read_piece){.bytes = 0};
	}
}

void kept_states_free(struct kept_states *k) {
	if (!k)
		return;
	kept_states_forget(k);
	free(k);
}

enum rv_err kept_states_drop(const struct statestore *store, uint32_t rounds, struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES] = "";
	for (uint32_t slot = 0; slot < rounds; slot++) {
		path_of(store->dir, slot, path);
		if (unlink(path) != 0 && errno != ENOENT)
			return rv_fail_errno(et, errno, "cannot remove %s", path);
	}
	return rv_file_sync_parent(path, et);
}

/* ---- writing ---- */

static enum rv_err write_inner(struct rv_file_writer *w, const struct replica *r, size_t n, uint8_t *room,
							   struct rv_hash *leaves, struct rv_errtext *et) {
	for (uint32_t i = 0; i < inner_state_pieces(n); i++) {
		const size_t bytes = inner_piece_bytes(n, i);
		inner_state_read(r, (size_t)i * INNER_PIECE_BYTES, bytes, room);
		leaves[i] = merkle_leaf(i, room, bytes);
		RV_TRY(rv_file_writer_write(w, room, bytes, et));
	}
	return RV_OK;
}

static enum rv_err write_theta(struct rv_file_writer *w, const float *theta, size_t n, struct rv_hash *leaves,
							   struct rv_errtext *et) {
	for (uint32_t i = 0; i < theta_pieces(n); i++)
		leaves[i] = merkle_leaf(i, (const uint8_t *)theta + (size_t)i * INNER_PIECE_BYTES, theta_piece_bytes(n, i));
	return rv_file_writer_write(w, theta, n * sizeof *theta, et);
}

/* Writes the file through `room`; the header, which has the hash of the leaves, is written last. */
static enum rv_err write_file(const struct kept_states *k, uint64_t round, const struct replica *r, const float *theta,
							  uint8_t *room, struct rv_hash *leaves, struct rv_errtext *et) {
	const size_t n = n_of(k);
	const uint32_t pieces = inner_state_pieces(n), all = pieces + theta_pieces(n);
	uint8_t header[STATE_HEADER_BYTES] = {0};
	char path[STATESTORE_PATH_BYTES];
	struct rv_file_writer w;
	path_of(k->store->dir, round % k->rounds, path);
	RV_TRY(rv_file_writer_begin(&w, path, FILE_MODE, et));
	enum rv_err e = rv_file_writer_write(&w, header, sizeof header, et);
	if (e == RV_OK)
		e = write_inner(&w, r, n, room, leaves, et);
	if (e == RV_OK)
		e = write_theta(&w, theta, n, leaves + pieces, et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, leaves, all * sizeof leaves[0], et);
	state_inner_header(&k->store->cfg, round, leaves, all, header);
	if (e == RV_OK)
		e = rv_file_writer_patch(&w, header, sizeof header, 0, et);
	return rv_file_writer_end(&w, e, et);
}

enum rv_err kept_states_write(const struct kept_states *k, uint64_t round, const struct replica *r, const float *theta,
							  struct rv_hash *root, struct rv_errtext *et) {
	const uint32_t pieces = inner_state_pieces(n_of(k));
	if (!inner_state_is_there(r))
		return rv_fail(et, RV_E_UNSUPPORTED, "moments of 8 bits have no inner state that others can begin from");
	struct rv_hash *leaves = malloc((pieces + theta_pieces(n_of(k))) * sizeof *leaves);
	uint8_t *room = malloc(INNER_PIECE_BYTES);
	struct merkle_sum sum = {.n = 0};
	enum rv_err e = leaves && room ? write_file(k, round, r, theta, room, leaves, et)
								   : rv_fail(et, RV_E_NOMEM, "no memory for the hashes of an inner state");
	for (uint32_t i = 0; i < pieces && e == RV_OK; i++)
		merkle_add(&sum, &leaves[i]);
	if (e == RV_OK)
		*root = merkle_sum_root(&sum);
	free(room);
	free(leaves);
	return e;
}

/* ---- reading ---- */

/* Reads header and leaves into f->leaves, and makes the tree over those of the inner state. */
static enum rv_err read_leaves(const struct kept_states *k, struct open_file *f, uint64_t round) {
	const size_t n = n_of(k);
	const uint32_t pieces = inner_state_pieces(n), of_theta = theta_pieces(n);
	const size_t bytes = (pieces + of_theta) * sizeof(struct rv_hash), tree = merkle_nodes(pieces);
	uint8_t header[STATE_HEADER_BYTES];
	uint64_t found;
	struct rv_hash leaves_hash;
	if (rv_read_at(f->fd, header, sizeof header, 0) != (ssize_t)sizeof header)
		return RV_E_IO;
	RV_TRY(state_inner_header_load(&k->store->cfg, header, pieces + of_theta, &found, &leaves_hash, NULL));
	if (found != round)
		return RV_E_NOTFOUND;
	f->leaves = malloc((tree + of_theta) * sizeof *f->leaves);
	if (!f->leaves)
		return RV_E_NOMEM;
	if (rv_read_at(f->fd, f->leaves, bytes, leaves_at(n)) != (ssize_t)bytes)
		return RV_E_IO;
	const struct rv_hash hash = rv_hash_of(f->leaves, bytes);
	if (!rv_hash_equal(&hash, &leaves_hash))
		return RV_E_CORRUPT;
	memmove(f->leaves + tree, f->leaves + pieces, of_theta * sizeof *f->leaves);
	merkle_build(f->leaves, pieces);
	return RV_OK;
}

static enum rv_err open_round(const struct kept_states *k, struct open_file *f, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	if (f->fd >= 0 && f->round == round)
		return RV_OK;
	close_file(f);
	path_of(k->store->dir, round % k->rounds, path);
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return errno == ENOENT ? RV_E_NOTFOUND : RV_E_IO;
	f->round = round;
	const enum rv_err e = read_leaves(k, f, round);
	if (e != RV_OK)
		close_file(f);
	return e;
}

/* Returns the open file of the round, or in the place of the one that was used before all others
 * the one that is now opened; NULL: it cannot be. */
static struct open_file *file_of(struct kept_states *k, uint64_t round) {
	struct open_file *f = &k->files[0];
	for (int i = 0; i < OPEN; i++) {
		if (k->files[i].fd >= 0 && k->files[i].round == round) {
			f = &k->files[i];
			break;
		}
		if (k->files[i].used < f->used)
			f = &k->files[i];
	}
	if (open_round(k, f, round) != RV_OK)
		return NULL;
	f->used = ++k->turn;
	return f;
}

/* Reads piece `at` of the file, checks it, and puts its proof behind it. Returns their bytes; 0: it
 * cannot be read. */
static size_t read_piece(const struct kept_states *k, const struct open_file *f, uint32_t at, uint8_t *out) {
	const size_t n = n_of(k), of_piece = inner_piece_bytes(n, at);
	const struct merkle_range range = {inner_state_pieces(n), at, 1};
	if (rv_read_at(f->fd, out, of_piece, STATE_HEADER_BYTES + (uint64_t)at * INNER_PIECE_BYTES) != (ssize_t)of_piece)
		return 0;
	const struct rv_hash leaf = merkle_leaf(at, out, of_piece);
	if (!rv_hash_equal(&leaf, &f->leaves[at]))
		return 0;
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const uint32_t hashes = merkle_prove(f->leaves, &range, proof);
	memcpy(out + of_piece, proof, hashes * sizeof proof[0]);
	return of_piece + hashes * sizeof proof[0];
}

/* Returns the piece's place in memory: where it is, or that which was used before all others. */
static struct read_piece *place_of(struct kept_states *k, uint64_t round, uint32_t index) {
	struct read_piece *p = &k->pieces[0];
	for (int i = 0; i < OPEN; i++) {
		if (k->pieces[i].bytes > 0 && k->pieces[i].round == round && k->pieces[i].index == index)
			return &k->pieces[i];
		if (k->pieces[i].used < p->used)
			p = &k->pieces[i];
	}
	p->bytes = 0;
	return p;
}

const uint8_t *kept_states_piece(struct kept_states *k, uint64_t round, uint32_t index, size_t *bytes) {
	if (index >= inner_state_pieces(n_of(k)))
		return NULL;
	struct read_piece *p = place_of(k, round, index);
	p->used = ++k->turn;
	if (p->bytes == 0) {
		const struct open_file *f = file_of(k, round);
		if (!p->data)
			p->data = malloc(INNER_PIECE_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash));
		p->bytes = f && p->data ? read_piece(k, f, index, p->data) : 0;
		p->round = round;
		p->index = index;
	}
	*bytes = p->bytes;
	return p->bytes > 0 ? p->data : NULL;
}

bool kept_states_has(const struct kept_states *k, uint64_t round) {
	struct open_file f = {.fd = -1};
	const bool has = open_round(k, &f, round) == RV_OK;
	close_file(&f);
	return has;
}

static enum rv_err read_theta(const struct kept_states *k, const struct open_file *f, float *theta,
							  struct rv_errtext *et) {
	const size_t n = n_of(k), bytes = n * sizeof *theta;
	const uint64_t at = STATE_HEADER_BYTES + inner_state_bytes(n);
	const struct rv_hash *leaves = f->leaves + merkle_nodes(inner_state_pieces(n));
	if (rv_read_at(f->fd, theta, bytes, at) != (ssize_t)bytes)
		return rv_fail(et, RV_E_IO, "the weights at the begin of round %" PRIu64 " cannot be read",
					   round_number(f->round));
	for (uint32_t i = 0; i < theta_pieces(n); i++) {
		const uint8_t *piece = (const uint8_t *)theta + (size_t)i * INNER_PIECE_BYTES;
		const struct rv_hash leaf = merkle_leaf(i, piece, theta_piece_bytes(n, i));
		if (!rv_hash_equal(&leaf, &leaves[i]))
			return rv_fail(et, RV_E_CORRUPT, "the weights at the begin of round %" PRIu64 " are damaged on disk",
						   round_number(f->round));
	}
	return RV_OK;
}

enum rv_err kept_states_theta(const struct kept_states *k, uint64_t round, float *theta, struct rv_errtext *et) {
	struct open_file f = {.fd = -1};
	enum rv_err e = open_round(k, &f, round);
	if (e != RV_OK)
		return rv_fail(et, e, "the weights at the begin of round %" PRIu64 " are not kept", round_number(round));
	e = read_theta(k, &f, theta, et);
	close_file(&f);
	return e;
}
