/* grid_column.c: the columns of a grid: their cores, and what passes between row and column. */
#include "net/reduce/grid_state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

/* ---- the codec of a column: contributions are partial sums ---- */

static size_t sum_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct grid_column *k = ctx;
	RV_ASSERT(codec == 0); /* all partial sums are alike */
	return k->g->cfg.codec.sum_bytes(k->g->cfg.codec.row.ctx, k->first + chunk);
}

static size_t sum_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct grid_column *k = ctx;
	RV_ASSERT(codec == 0); /* all partial sums are alike */
	return k->g->cfg.codec.sum_offset(k->g->cfg.codec.row.ctx, k->first + chunk);
}

static enum rv_err join(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
						struct rv_errtext *et) {
	const struct grid_column *k = ctx;
	return k->g->cfg.codec.join(k->g->cfg.codec.row.ctx, k->first + chunk, in, out, bad, et);
}

static enum rv_err check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	const struct grid_column *k = ctx;
	return k->g->cfg.codec.row.check(k->g->cfg.codec.row.ctx, k->first + chunk, data, et);
}

static size_t mean_bytes(void *ctx, uint32_t chunk) {
	const struct grid_column *k = ctx;
	const struct reduce_codec *row = &k->g->cfg.codec.row;
	return row->mean_bytes ? row->mean_bytes(row->ctx, k->first + chunk)
						   : row->chunk_bytes(row->ctx, 0, k->first + chunk);
}

static size_t mean_offset(void *ctx, uint32_t chunk) {
	const struct grid_column *k = ctx;
	const struct reduce_codec *row = &k->g->cfg.codec.row;
	return row->mean_offset ? row->mean_offset(row->ctx, k->first + chunk)
							: row->chunk_offset(row->ctx, 0, k->first + chunk);
}

/* ---- rosters ---- */

/* The final owners of a column's chunks. */
static void own_by_rows(const void *ctx, uint8_t *owner) {
	const struct grid_column *k = ctx;
	const struct grid *g = k->g;
	for (uint32_t i = 0; i < k->count; i++) {
		const uint32_t c = k->first + i;
		const uint32_t other = RV_BUG("two-final-owners") ? g->cfg.self_member % 2 : 0;
		const int index = g->alive_index[(c + other) % g->n_rows];
		owner[i] = (uint8_t)(index >= 0 ? index : (int)(c / g->n_rows % g->n_alive));
	}
}

static uint8_t peer_in(const struct grid *g, const struct document *d, const struct section *s, int row) {
	if (row == d->row)
		return (uint8_t)document_find(d, g->cfg.self_member);
	RV_ASSERT(s->owner[row] < d->n_column && d->column[s->owner[row]].row == row);
	return (uint8_t)(g->n_members + s->owner[row]);
}

/* One participant for each row in the mean, which stands for the row: its weight is the row's, and
 * its contribution is another one when the row's roster is. */
static struct reduce_roster roster_of(struct grid_column *k, const struct document *d, const struct section *s) {
	const struct grid *g = k->g;
	struct reduce_roster ro = {.round = d->round,
							   .attempt = d->attempt,
							   .deadline_ms = d->deadline_ms,
							   .scope = {.roster = d->roster_hash,
										 .term = d->term,
										 .round = d->round,
										 .attempt = d->attempt,
										 .kind = SEAL_COLUMN,
										 .first = k->first},
							   .self = -1,
							   .own = own_by_rows,
							   .ctx = k};
	memset(k->index_of, -1, sizeof k->index_of);
	memcpy(ro.scope.run_id, d->run_id, sizeof ro.scope.run_id);
	for (int row = 0; row < d->n_rows; row++) {
		if (d->row_weights[row] == 0)
			continue;
		const uint8_t peer = peer_in(g, d, s, row);
		const uint32_t since = RV_BUG("keep-void-sums") ? 1 : d->row_since[row];
		ro.places[ro.n] =
			(struct reduce_place){.member = g->peers[peer].member, .weight = d->row_weights[row], .boot = since};
		memcpy(ro.places[ro.n].key, g->peers[peer].key, NET_KEY_BYTES);
		if (RV_BUG("divide-by-the-rows"))
			ro.places[ro.n].weight = 1;
		ro.self = row == d->row ? ro.n : ro.self;
		k->index_of[peer] = (int8_t)ro.n;
		k->peer[ro.n++] = peer;
	}
	RV_ASSERT(ro.self >= 0); /* the own row is in the mean */
	k->n = (uint8_t)ro.n;
	return ro;
}

static struct reduce *new_core(struct grid *g, int j, const struct reduce_roster *ro, int64_t now_us) {
	struct grid_column *k = &g->columns[j];
	const struct reduce_config cfg = {.n_chunks = k->count,
									  .codec = {.ctx = k,
												.chunk_bytes = sum_bytes,
												.chunk_offset = sum_offset,
												.reduce = join,
												.check = check,
												.mean_bytes = mean_bytes,
												.mean_offset = mean_offset},
									  .silence_us = g->cfg.silence_us,
									  .stall_us = g->cfg.stall_us,
									  .ping_interval_us = g->cfg.ping_interval_us,
									  .patience_scatter = 1,
									  .patience_gather = 2,
									  .later_own = true,
									  .seals = g->cfg.seals,
									  .first_chunk = k->first};
	struct reduce_memory mem = {.own = g->mem.sum,
								.reduced = g->mem.reduced,
								.flags = grid_column_flags(g, j),
								.means = g->mem.means ? g->mem.means + k->first : NULL};
	for (int i = 0; i < NET_MAX_ROWS; i++) {
		mem.held[i] = g->mem.row_sums[i];
		mem.leaves[i] = g->mem.sum_leaves[i] ? g->mem.sum_leaves[i] + k->first : NULL;
	}
	return reduce_init(grid_column_memory(g, j), &cfg, &mem, ro, now_us);
}

void grid_column_begin(struct grid *g, int j, const struct document *d, const struct section *s, int64_t now_us) {
	struct grid_column *k = &g->columns[j];
	RV_ASSERT(s->first == k->first && s->count == k->count);
	const struct reduce_roster ro = roster_of(k, d, s);
	if (k->core)
		reduce_restart(k->core, &ro, now_us);
	else
		k->core = new_core(g, j, &ro, now_us);
}

/* Returns the own column of a chunk. */
static struct grid_column *grid_column_of(struct grid *g, uint32_t chunk) {
	for (int j = 0; j < g->n_columns; j++) {
		struct grid_column *k = &g->columns[j];
		if (k->core && chunk - k->first < k->count)
			return k;
	}
	return NULL;
}

/* ---- messages: partial sums are packed on the way ---- */

/* A sum that cannot be unpacked stays as it is: of this attempt the core refuses its size. */
enum rv_err grid_column_receive(struct grid_column *k, int64_t now_us, int index, const struct reduce_msg *m,
								struct rv_errtext *et) {
	struct grid *g = k->g;
	const struct grid_codec *codec = &g->cfg.codec;
	struct reduce_msg local = *m;
	struct rv_errtext why = {0};
	if (m->type == REDUCE_SCATTER || m->type == REDUCE_GATHER)
		local.chunk = m->chunk - m->section; /* one before the column becomes one far behind it */
	const bool packed = m->type == REDUCE_SCATTER && codec->pack != NULL && local.chunk < k->count;
	if (packed && codec->unpack(codec->row.ctx, m->chunk, m->data, m->data_bytes, g->mem.unpacked, &why) == RV_OK) {
		local.data = g->mem.unpacked;
		local.data_bytes = (uint32_t)codec->sum_bytes(codec->row.ctx, m->chunk);
	} else if (packed) {
		local.data_bytes = 0;
	}
	const uint64_t before = reduce_info(k->core).rx_bytes;
	const enum rv_err e = reduce_receive(k->core, now_us, index, &local, et);
	if (packed && reduce_info(k->core).rx_bytes > before)
		g->rx_saved += local.data_bytes - m->data_bytes;
	return e != RV_OK && why.text[0] != 0 ? rv_fail(et, e, "scatter: chunk %u: %s", m->chunk, why.text) : e;
}

static void pack(struct grid_column *k, uint64_t resent_before, struct reduce_msg *out) {
	struct grid *g = k->g;
	const struct grid_codec *codec = &g->cfg.codec;
	const size_t bytes = codec->pack(codec->row.ctx, out->chunk, out->data, g->mem.packed);
	RV_ASSERT(bytes > 0 && bytes <= out->data_bytes);
	const uint64_t saved = out->data_bytes - bytes;
	g->tx_saved += saved;
	g->resent_saved += reduce_info(k->core).resent_bytes > resent_before ? saved : 0;
	out->data = g->mem.packed;
	out->data_bytes = (uint32_t)bytes;
}

bool grid_column_send(struct grid_column *k, int64_t now_us, int index, grid_send_fn *send, struct reduce_msg *out) {
	const uint64_t resent = reduce_info(k->core).resent_bytes;
	if (!send(k->core, now_us, index, out))
		return false;
	out->column = true;
	out->section = k->first;
	if (out->type == REDUCE_SCATTER || out->type == REDUCE_GATHER)
		out->chunk += out->section;
	if (out->type == REDUCE_SCATTER && k->g->cfg.codec.pack != NULL)
		pack(k, resent, out);
	return true;
}

/* ---- between row and column ---- */

/* The mean of a chunk is here, and the row has made its sum: both are needed, because a column may
 * be done before the row is where its owner is new. */
static void finish(struct grid *g, int64_t now_us, uint32_t chunk) {
	if (reduce_is_ready(g->row, chunk) && !reduce_is_reduced(g->row, chunk))
		reduce_finish(g->row, now_us, chunk);
}

static void take_sums(struct grid *g, int64_t now_us) {
	uint32_t chunk;
	while (reduce_take(g->row, &chunk)) {
		struct grid_column *k = grid_column_of(g, chunk);
		RV_ASSERT(k != NULL);
		reduce_offer(k->core, now_us, chunk - k->first);
		if (reduce_is_reduced(k->core, chunk - k->first))
			finish(g, now_us, chunk);
	}
}

/* The row's means may be sealed when those that they came from are, in every own column. */
static void seal_row(struct grid *g) {
	bool sealed = true;
	for (int j = 0; j < g->n_columns && sealed; j++)
		sealed = !g->columns[j].core || reduce_done(g->columns[j].core);
	if (sealed || RV_BUG("seal-before-the-column"))
		reduce_may_seal(g->row);
}

void grid_pump(struct grid *g, int64_t now_us) {
	uint32_t i;
	if (g->n_rows == 1)
		return;
	take_sums(g, now_us);
	for (int j = 0; j < g->n_columns; j++)
		while (g->columns[j].core && reduce_take(g->columns[j].core, &i))
			finish(g, now_us, g->columns[j].first + i);
	seal_row(g);
}
