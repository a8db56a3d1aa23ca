/* kept_contributions.c: see kept_contributions.h. */
#include "worker/audit/kept_contributions.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/merkle.h"
#include "base/round_number.h"
#include "net/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0644 };

struct kept_contributions {
	const struct statestore *store;
	uint32_t rounds;
	/* The file that is open for reading; `nodes` NULL: none. */
	int fd;
	uint64_t round;
	uint8_t codec; /* global_sent_as(codec) is `sent` */
	const struct codec *sent;
	struct chunking chunks;
	struct rv_hash *nodes; /* the tree over its leaves */
	uint8_t *piece;        /* NET_MAX_PIECE_BYTES; NULL: none was read */
	uint64_t at_round;     /* it is chunk `at` of that round, with `bytes`; 0: of none */
	uint32_t at;
	size_t bytes;
};

static void path_of(const char *dir, uint64_t slot, char out[STATESTORE_PATH_BYTES]) {
	(void)snprintf(out, STATESTORE_PATH_BYTES, "%s/contribution-%" PRIu64 ".rvc", dir, slot);
}

uint64_t kept_contributions_there(const char *dir, uint32_t rounds) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	uint64_t bytes = 0;
	for (uint32_t slot = 0; slot < rounds; slot++) {
		path_of(dir, slot, path);
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
	return bytes;
}

enum rv_err kept_contributions_new(const struct statestore *store, uint32_t rounds, struct kept_contributions **out,
								   struct rv_errtext *et) {
	struct kept_contributions *k = calloc(1, sizeof *k);
	RV_ASSERT(rounds > 0);
	if (!k)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep contributions");
	*k = (struct kept_contributions){.store = store, .rounds = rounds, .fd = -1};
	*out = k;
	return RV_OK;
}

static void close_file(struct kept_contributions *k) {
	free(k->nodes);
	k->nodes = NULL;
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
}

void kept_contributions_forget(struct kept_contributions *k) {
	close_file(k);
	free(k->piece);
	k->piece = NULL;
	k->bytes = 0;
}

void kept_contributions_free(struct kept_contributions *k) {
	if (!k)
		return;
	kept_contributions_forget(k);
	free(k);
}

/* ---- writing ---- */

static size_t chunk_bytes_of(const struct chunking *chunks, const struct codec *sent, uint32_t chunk) {
	return sent->encoded_bytes(sent, chunking_len(chunks, chunk));
}

static enum rv_err write_file(const struct kept_contributions *k, uint64_t round, uint8_t codec,
							  const struct rv_hash *leaves, const uint8_t *encoded, struct rv_errtext *et) {
	const struct global_config *g = &k->store->cfg;
	const struct chunking chunks = global_round_chunks(g, round);
	const size_t bytes = chunking_total_bytes(&chunks, global_sent_as(g, codec));
	uint8_t header[STATE_HEADER_BYTES];
	char path[STATESTORE_PATH_BYTES];
	struct rv_file_writer w;
	state_contribution_header(g, round, codec, leaves, chunks.n_chunks, header);
	path_of(k->store->dir, round % k->rounds, path);
	RV_TRY(rv_file_writer_begin(&w, path, FILE_MODE, et));
	enum rv_err e = rv_file_writer_write(&w, header, sizeof header, et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, leaves, chunks.n_chunks * sizeof leaves[0], et);
	if (e == RV_OK)
		e = rv_file_writer_write(&w, encoded, bytes, et);
	return rv_file_writer_end(&w, e, et);
}

enum rv_err kept_contributions_write(const struct kept_contributions *k, uint64_t round, uint8_t codec,
									 const uint8_t *encoded, struct rv_errtext *et) {
	const struct global_config *g = &k->store->cfg;
	const struct codec *sent = global_sent_as(g, codec);
	const struct chunking chunks = global_round_chunks(g, round);
	struct rv_hash *leaves = malloc(chunks.n_chunks * sizeof *leaves);
	if (!leaves)
		return rv_fail(et, RV_E_NOMEM, "no memory for the hashes of %u chunks", chunks.n_chunks);
	for (uint32_t i = 0; i < chunks.n_chunks; i++)
		leaves[i] = merkle_leaf(i, encoded + chunking_offset_bytes(&chunks, sent, i), chunk_bytes_of(&chunks, sent, i));
	const enum rv_err e = write_file(k, round, codec, leaves, encoded, et);
	free(leaves);
	return e;
}

/* ---- reading ---- */

/* Reads header and leaves of the open file into k->nodes, and makes the tree. */
static enum rv_err read_leaves(struct kept_contributions *k, uint64_t round) {
	const struct global_config *g = &k->store->cfg;
	uint8_t header[STATE_HEADER_BYTES];
	uint64_t found;
	struct rv_hash leaves_hash;
	k->chunks = global_round_chunks(g, round);
	const size_t bytes = k->chunks.n_chunks * sizeof(struct rv_hash);
	if (rv_read_at(k->fd, header, sizeof header, 0) != (ssize_t)sizeof header)
		return RV_E_IO;
	RV_TRY(state_contribution_header_load(g, header, &found, &k->codec, &leaves_hash, NULL));
	if (found != round)
		return RV_E_NOTFOUND;
	k->sent = global_sent_as(g, k->codec);
	k->nodes = malloc(merkle_nodes(k->chunks.n_chunks) * sizeof(struct rv_hash));
	if (!k->nodes)
		return RV_E_NOMEM;
	if (rv_read_at(k->fd, k->nodes, bytes, sizeof header) != (ssize_t)bytes)
		return RV_E_IO;
	const struct rv_hash hash = rv_hash_of(k->nodes, bytes);
	if (!rv_hash_equal(&hash, &leaves_hash))
		return RV_E_CORRUPT;
	merkle_build(k->nodes, k->chunks.n_chunks);
	return RV_OK;
}

static bool open_file(struct kept_contributions *k, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	if (k->nodes && k->round == round)
		return true;
	close_file(k);
	path_of(k->store->dir, round % k->rounds, path);
	k->fd = open(path, O_RDONLY | O_CLOEXEC);
	k->round = round;
	if (k->fd >= 0 && read_leaves(k, round) == RV_OK)
		return true;
	close_file(k);
	return false;
}

/* Reads the chunk of the open file, checks it, and puts its proof behind it. Returns their bytes;
 * 0: it cannot be read. */
static size_t read_piece(struct kept_contributions *k, uint32_t chunk) {
	const struct merkle_range range = {k->chunks.n_chunks, chunk, 1};
	const size_t chunk_bytes = chunk_bytes_of(&k->chunks, k->sent, chunk);
	const uint64_t at = STATE_HEADER_BYTES + (uint64_t)k->chunks.n_chunks * sizeof(struct rv_hash) +
						chunking_offset_bytes(&k->chunks, k->sent, chunk);
	if (!k->piece)
		k->piece = malloc(NET_MAX_PIECE_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash));
	if (!k->piece || rv_read_at(k->fd, k->piece, chunk_bytes, at) != (ssize_t)chunk_bytes)
		return 0;
	const struct rv_hash leaf = merkle_leaf(chunk, k->piece, chunk_bytes);
	if (!rv_hash_equal(&leaf, &k->nodes[chunk]))
		return 0;
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const uint32_t n = merkle_prove(k->nodes, &range, proof);
	memcpy(k->piece + chunk_bytes, proof, n * sizeof proof[0]);
	return chunk_bytes + n * sizeof proof[0];
}

const uint8_t *kept_contributions_piece(struct kept_contributions *k, uint64_t round, uint32_t chunk, size_t *bytes) {
	if (k->bytes == 0 || k->at_round != round || k->at != chunk) {
		k->bytes = open_file(k, round) && chunk < k->chunks.n_chunks ? read_piece(k, chunk) : 0;
		k->at_round = round;
		k->at = chunk;
	}
	*bytes = k->bytes;
	return k->bytes > 0 ? k->piece : NULL;
}

/* Returns true if the chunks are those that were written. */
static bool is_whole(const struct kept_contributions *k, const uint8_t *encoded) {
	for (uint32_t i = 0; i < k->chunks.n_chunks; i++) {
		const uint8_t *at = encoded + chunking_offset_bytes(&k->chunks, k->sent, i);
		const struct rv_hash leaf = merkle_leaf(i, at, chunk_bytes_of(&k->chunks, k->sent, i));
		if (!rv_hash_equal(&leaf, &k->nodes[i]))
			return false;
	}
	return true;
}

static enum rv_err read_whole(const struct kept_contributions *k, uint8_t *encoded, struct rv_errtext *et) {
	const uint64_t at = STATE_HEADER_BYTES + (uint64_t)k->chunks.n_chunks * sizeof(struct rv_hash);
	const size_t bytes = chunking_total_bytes(&k->chunks, k->sent);
	if (rv_read_at(k->fd, encoded, bytes, at) != (ssize_t)bytes)
		return rv_fail(et, RV_E_IO, "this worker's contribution to round %" PRIu64 " cannot be read",
					   round_number(k->round));
	if (!is_whole(k, encoded))
		return rv_fail(et, RV_E_CORRUPT, "this worker's contribution to round %" PRIu64 " is damaged on disk",
					   round_number(k->round));
	return RV_OK;
}

enum rv_err kept_contributions_whole(const struct kept_contributions *k, uint64_t round, uint8_t *codec,
									 uint8_t **encoded, struct rv_errtext *et) {
	struct kept_contributions mine = {.store = k->store, .rounds = k->rounds, .fd = -1};
	if (!open_file(&mine, round))
		return rv_fail(et, RV_E_NOTFOUND, "this worker's contribution to round %" PRIu64 " is not kept",
					   round_number(round));
	uint8_t *bytes = malloc(chunking_total_bytes(&mine.chunks, mine.sent));
	enum rv_err e = bytes ? read_whole(&mine, bytes, et) : rv_fail(et, RV_E_NOMEM, "no memory for a contribution");
	if (e == RV_OK) {
		*codec = mine.codec;
		*encoded = bytes;
	} else {
		free(bytes);
	}
	close_file(&mine);
	return e;
}
