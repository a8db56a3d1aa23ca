/* sums_image.c: see sums_image.h. */
#include "worker/audit/sums_image.h"

#include "base/assert.h"
#include "base/merkle.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[8] = {'r', 'v', 's', 'u', 'm', 's', 0, 1};

/* The list of one column: trees over the leaves of each row's sums. */
struct column_trees {
	const struct grid *g;
	int column;
	struct grid_sums sums;
	uint32_t n;            /* chunks of the list */
	struct rv_hash *nodes; /* of n_rows trees, `each` apart */
	size_t each;
};

static uint32_t count_final(const struct grid *g, int column, const struct grid_sums *s) {
	uint32_t n = 0;
	for (uint32_t c = s->first; c < s->first + s->count; c++)
		n += grid_is_final(g, column, c);
	return n;
}

/* Returns false if there is no memory. */
static bool grow_trees(struct column_trees *t) {
	t->each = merkle_nodes(t->n);
	t->nodes = calloc(t->each * (size_t)t->sums.n_rows, sizeof *t->nodes);
	for (int row = 0; t->nodes && row < t->sums.n_rows; row++) {
		struct rv_hash *nodes = t->nodes + t->each * (size_t)row;
		uint32_t at = 0;
		for (uint32_t c = t->sums.first; c < t->sums.first + t->sums.count; c++)
			if (grid_is_final(t->g, t->column, c))
				nodes[at++] = grid_sum_leaf(t->g, t->column, row, c);
		merkle_build(nodes, t->n);
	}
	return t->nodes != NULL;
}

static void show(const struct column_trees *t, uint32_t chunk, uint32_t at, struct shown_sums *out) {
	const struct merkle_range range = {t->n, at, 1};
	out->chunk = chunk;
	out->n_rows = (uint8_t)t->sums.n_rows;
	out->n_path = (uint8_t)merkle_proof_hashes(&range);
	RV_ASSERT(out->n_path <= SHOWN_PATH_MAX);
	for (int row = 0; row < t->sums.n_rows; row++) {
		const struct rv_hash *nodes = t->nodes + t->each * (size_t)row;
		struct rv_hash path[MERKLE_MAX_PROOF];
		(void)merkle_prove(nodes, &range, path);
		out->rows[row].leaf = nodes[at];
		out->rows[row].seal = *t->sums.seals[row];
		memcpy(out->rows[row].path, path, out->n_path * sizeof path[0]);
	}
}

/* What is written so far. */
struct image {
	size_t begin; /* of `data` in it */
	struct rv_writer index, data;
};

static void put_chunk(struct image *m, const struct column_trees *t, const struct shown_sums *shown) {
	const size_t at = m->begin + rv_writer_len(&m->data);
	size_t bytes = 0;
	shown_sums_write(shown, &m->data);
	const size_t shown_bytes = m->begin + rv_writer_len(&m->data) - at;
	for (int row = 0; row < t->sums.n_rows; row++) {
		const uint8_t *sum = grid_sum_data(t->g, t->column, row, shown->chunk, &bytes);
		rv_write_bytes(&m->data, sum, bytes);
	}
	rv_write_u32(&m->index, shown->chunk);
	rv_write_u32(&m->index, (uint32_t)shown_bytes);
	rv_write_u64(&m->index, at);
	rv_write_u32(&m->index, (uint32_t)bytes);
	rv_write_u32(&m->index, 0);
}

static void put_column(struct image *m, const struct column_trees *t, struct shown_sums *shown) {
	uint32_t at = 0;
	for (uint32_t c = t->sums.first; c < t->sums.first + t->sums.count; c++) {
		if (!grid_is_final(t->g, t->column, c))
			continue;
		show(t, c, at++, shown);
		put_chunk(m, t, shown);
	}
}

/* Returns the bytes that the image has at most; sets *n to its chunks. */
static size_t count_all(const struct grid *g, uint32_t *n, uint32_t *n_rows) {
	struct grid_sums s;
	size_t bytes = 0;
	*n = 0;
	for (int j = 0; j < NET_MAX_ROW; j++) {
		if (!grid_sums(g, j, &s))
			continue;
		for (uint32_t c = s.first; c < s.first + s.count; c++) {
			size_t sum = 0;
			if (!grid_is_final(g, j, c))
				continue;
			(void)grid_sum_data(g, j, 0, c, &sum);
			bytes += SHOWN_SUMS_MAX_BYTES + (size_t)s.n_rows * sum;
			(*n)++;
		}
		*n_rows = (uint32_t)s.n_rows;
	}
	return SUMS_HEAD_BYTES + (size_t)*n * SUMS_ENTRY_BYTES + bytes;
}

static void put_head(struct rv_writer *w, const struct sums_head *h) {
	rv_write_bytes(w, magic, sizeof magic);
	rv_write_u64(w, h->round);
	rv_write_u32(w, h->attempt);
	rv_write_u32(w, h->n);
	rv_write_u32(w, h->n_rows);
	rv_write_u32(w, 0);
}

/* Returns false if there is no memory. */
static bool put_columns(struct image *m, const struct grid *g, struct shown_sums *shown) {
	bool whole = true;
	for (int j = 0; j < NET_MAX_ROW && whole; j++) {
		struct column_trees t = {.g = g, .column = j};
		if (!grid_sums(g, j, &t.sums))
			continue;
		t.n = count_final(g, j, &t.sums);
		whole = grow_trees(&t);
		if (whole)
			put_column(m, &t, shown);
		free(t.nodes);
	}
	return whole;
}

struct blob *sums_image_new(const struct grid *g, uint64_t round, uint32_t attempt) {
	struct sums_head head = {.round = round, .attempt = attempt};
	const size_t most = count_all(g, &head.n, &head.n_rows);
	struct blob *b = head.n > 0 ? blob_new(most) : NULL;
	struct shown_sums *shown = b ? calloc(1, sizeof *shown) : NULL;
	if (!shown) {
		blob_unref(b);
		return NULL;
	}
	shown->round = round;
	shown->attempt = attempt;
	struct image m = {.begin = SUMS_HEAD_BYTES + (size_t)head.n * SUMS_ENTRY_BYTES};
	m.index = rv_writer_of(b->data, m.begin);
	m.data = rv_writer_of(b->data + m.begin, most - m.begin);
	put_head(&m.index, &head);
	const bool whole = put_columns(&m, g, shown);
	free(shown);
	RV_ASSERT(!m.index.failed && !m.data.failed);
	b->bytes = m.begin + rv_writer_len(&m.data);
	if (whole)
		return b;
	blob_unref(b);
	return NULL;
}

enum rv_err sums_head_read(const uint8_t in[SUMS_HEAD_BYTES], struct sums_head *out) {
	struct rv_reader r = rv_reader_of(in, SUMS_HEAD_BYTES);
	const uint8_t *begin = rv_read_span(&r, sizeof magic);
	out->round = rv_read_u64(&r);
	out->attempt = rv_read_u32(&r);
	out->n = rv_read_u32(&r);
	out->n_rows = rv_read_u32(&r);
	const bool fits =
		memcmp(begin, magic, sizeof magic) == 0 && out->n <= NET_MAX_CHUNKS && out->n_rows <= NET_MAX_ROWS;
	return fits ? RV_OK : RV_E_CORRUPT;
}

bool sums_index_find(const uint8_t *index, uint32_t n, uint32_t chunk, struct sums_entry *out) {
	for (uint32_t i = 0; i < n; i++) {
		struct rv_reader r = rv_reader_of(index + (size_t)i * SUMS_ENTRY_BYTES, SUMS_ENTRY_BYTES);
		out->chunk = rv_read_u32(&r);
		out->shown_bytes = rv_read_u32(&r);
		out->at = rv_read_u64(&r);
		out->sum_bytes = rv_read_u32(&r);
		if (out->chunk == chunk)
			return out->shown_bytes <= SHOWN_SUMS_MAX_BYTES && out->sum_bytes <= NET_MAX_CHUNK_BYTES;
	}
	return false;
}

bool sums_image_shown(const struct blob *image, uint32_t chunk, struct shown_sums *out) {
	struct sums_head head;
	struct sums_entry e;
	if (sums_head_read(image->data, &head) != RV_OK ||
		!sums_index_find(image->data + SUMS_HEAD_BYTES, head.n, chunk, &e))
		return false;
	struct rv_reader r = rv_reader_of(image->data + e.at, e.shown_bytes);
	return shown_sums_read(&r, out, NULL) == RV_OK && rv_reader_done(&r);
}
