/* kept_sums.c: see kept_sums.h. */
#include "worker/audit/kept_sums.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/merkle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0644 };

struct kept_sums {
	const struct statestore *store;
	uint32_t rounds;
	uint8_t *piece; /* sum `at` of that round, of `bytes`; 0: of none */
	uint64_t at_round;
	uint32_t at;
	size_t bytes;
};

static void path_of(const char *dir, uint64_t slot, char out[STATESTORE_PATH_BYTES]) {
	(void)snprintf(out, STATESTORE_PATH_BYTES, "%s/sums-%" PRIu64 ".rvs", dir, slot);
}

uint64_t kept_sums_there(const char *dir, uint32_t rounds) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	uint64_t bytes = 0;
	for (uint32_t slot = 0; slot < rounds; slot++) {
		path_of(dir, slot, path);
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
	return bytes;
}

enum rv_err kept_sums_new(const struct statestore *store, uint32_t rounds, struct kept_sums **out,
						  struct rv_errtext *et) {
	struct kept_sums *k = calloc(1, sizeof *k);
	RV_ASSERT(rounds > 0);
	if (!k)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep partial sums");
	*k = (struct kept_sums){.store = store, .rounds = rounds};
	*out = k;
	return RV_OK;
}

void kept_sums_forget(struct kept_sums *k) {
	free(k->piece);
	k->piece = NULL;
	k->bytes = 0;
}

void kept_sums_free(struct kept_sums *k) {
	if (!k)
		return;
	kept_sums_forget(k);
	free(k);
}

enum rv_err kept_sums_write(const struct kept_sums *k, uint64_t round, const struct blob *image,
							struct rv_errtext *et) {
	char path[STATESTORE_PATH_BYTES];
	path_of(k->store->dir, round % k->rounds, path);
	return rv_file_write_atomic(path, image->data, image->bytes, FILE_MODE, et);
}

/* A file that is open, and the entry of a chunk in it. */
struct found {
	int fd;
	struct sums_head head;
	struct sums_entry entry;
	struct shown_sums shown;
};

/* Reads n bytes into fresh memory; NULL: they are not there, or there is no memory. */
static uint8_t *read_some(int fd, size_t n, uint64_t at) {
	uint8_t *bytes = malloc(n);
	if (bytes && rv_read_at(fd, bytes, n, at) == (ssize_t)n)
		return bytes;
	free(bytes);
	return NULL;
}

static bool read_entry(struct found *f, uint64_t round, uint32_t chunk) {
	uint8_t head[SUMS_HEAD_BYTES];
	if (rv_read_at(f->fd, head, sizeof head, 0) != (ssize_t)sizeof head || sums_head_read(head, &f->head) != RV_OK ||
		f->head.round != round || f->head.n == 0)
		return false;
	uint8_t *index = read_some(f->fd, (size_t)f->head.n * SUMS_ENTRY_BYTES, SUMS_HEAD_BYTES);
	const bool there = index && sums_index_find(index, f->head.n, chunk, &f->entry) && f->entry.shown_bytes > 0;
	free(index);
	return there;
}

static bool read_shown(struct found *f, uint32_t chunk) {
	uint8_t *bytes = read_some(f->fd, f->entry.shown_bytes, f->entry.at);
	struct rv_reader r = rv_reader_of(bytes, bytes ? f->entry.shown_bytes : 0);
	const bool whole = shown_sums_read(&r, &f->shown, NULL) == RV_OK && rv_reader_done(&r) && f->shown.chunk == chunk &&
					   f->shown.round == f->head.round;
	free(bytes);
	return whole;
}

/* Opens the file of the round, and reads what is shown of the chunk; f->fd is the caller's to
 * close. Returns false if it is not there. */
static bool find(const struct kept_sums *k, uint64_t round, uint32_t chunk, struct found *f) {
	char path[STATESTORE_PATH_BYTES];
	path_of(k->store->dir, round % k->rounds, path);
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return false;
	if (read_entry(f, round, chunk) && read_shown(f, chunk))
		return true;
	(void)close(f->fd);
	return false;
}

bool kept_sums_shown(const struct kept_sums *k, uint64_t round, uint32_t attempt, uint32_t chunk,
					 struct shown_sums *out) {
	struct found *f = malloc(sizeof *f);
	const bool there = f && find(k, round, chunk, f);
	if (there) {
		(void)close(f->fd);
		*out = f->shown;
	}
	free(f);
	return there && out->attempt == attempt;
}

/* Reads the sum, and checks that it is what its row has signed. */
static void read_piece(struct kept_sums *k, const struct found *f, uint32_t row) {
	const uint32_t chunk = f->entry.chunk;
	const size_t n = f->entry.sum_bytes;
	kept_sums_forget(k);
	if (row >= f->shown.n_rows || n == 0)
		return;
	k->piece = read_some(f->fd, n, f->entry.at + f->entry.shown_bytes + (uint64_t)row * n);
	const struct rv_hash leaf = k->piece ? merkle_leaf(chunk, k->piece, n) : (struct rv_hash){{0}};
	k->bytes = k->piece && rv_hash_equal(&leaf, &f->shown.rows[row].leaf) ? n : 0;
}

const uint8_t *kept_sums_piece(struct kept_sums *k, uint64_t round, uint32_t index, size_t *bytes) {
	if (k->bytes == 0 || k->at_round != round || k->at != index) {
		struct found *f = malloc(sizeof *f);
		kept_sums_forget(k);
		if (f && find(k, round, index % NET_MAX_CHUNKS, f)) {
			read_piece(k, f, index / NET_MAX_CHUNKS);
			(void)close(f->fd);
		}
		free(f);
		k->at_round = round;
		k->at = index;
	}
	*bytes = k->bytes;
	return k->bytes > 0 ? k->piece : NULL;
}
