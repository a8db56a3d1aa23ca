/* grid.c: the life of a grid, and what comes from and goes to its peers (net/reduce/grid.h). The
 * columns: grid_column.c. */
#include "net/reduce/grid_state.h"

#include "base/assert.h"

#include <stdalign.h>
#include <string.h>

/* ---- memory ---- */

static size_t aligned(size_t bytes) {
	return (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

size_t grid_size(void) {
	return aligned(sizeof(struct grid)) + (1 + NET_MAX_ROW) * aligned(reduce_size());
}

static void *core_memory(struct grid *g, int i) {
	return (uint8_t *)g + aligned(sizeof *g) + (size_t)i * aligned(reduce_size());
}

void *grid_column_memory(struct grid *g, int j) {
	return core_memory(g, 1 + j);
}

/* The flags of n chunks take at most PER_CHUNK n + MORE bytes. */
enum { PER_CHUNK = 42, MORE = 260 };

/* A column's are where its first chunk says, since columns are frozen for a round. */
static size_t column_flags_at(uint32_t first, int j) {
	return aligned((size_t)first * PER_CHUNK) + (size_t)j * aligned(MORE + alignof(max_align_t));
}

size_t grid_flags_bytes(uint32_t n_chunks) {
	return aligned(reduce_flags_bytes(n_chunks)) + column_flags_at(n_chunks, NET_MAX_ROW);
}

uint8_t *grid_column_flags(struct grid *g, int j) {
	const struct grid_column *k = &g->columns[j];
	const size_t at = column_flags_at(k->first, j);
	RV_ASSERT(at + reduce_flags_bytes(k->count) <= column_flags_at(k->first + k->count, j + 1));
	return g->mem.flags + aligned(reduce_flags_bytes(g->cfg.n_chunks)) + at;
}

/* ---- documents ---- */

static bool has_two_levels(const struct document *d) {
	return d->n_rows > 1;
}

static void adopt_peers(struct grid *g, const struct document *d) {
	g->n_members = g->n_peers = d->n_members;
	for (int i = 0; i < d->n_members; i++) {
		const uint16_t place = has_two_levels(d) ? d->members[i].place : (uint16_t)i;
		g->peers[i] = (struct grid_peer){.member = d->members[i].member, .place = place};
		memcpy(g->peers[i].key, d->members[i].key, NET_KEY_BYTES);
	}
	for (int i = 0; has_two_levels(d) && i < d->n_column; i++) {
		g->peers[g->n_peers] = (struct grid_peer){.member = d->column[i].member, .place = d->column[i].place};
		memcpy(g->peers[g->n_peers++].key, d->column[i].key, NET_KEY_BYTES);
	}
	g->n_roster = has_two_levels(d) ? d->n_roster : d->n_members;
}

static void adopt_rows(struct grid *g, const struct document *d) {
	g->n_alive = 0;
	for (int row = 0; row < g->n_rows; row++)
		g->alive_index[row] = d->row_weights[row] > 0 ? (int8_t)g->n_alive++ : -1;
}

static void freeze_columns(struct grid *g, const struct document *d) {
	RV_ASSERT(d->n_rows <= NET_MAX_ROWS && d->n_ranges <= NET_MAX_ROW);
	g->n_columns = d->n_ranges;
	for (int j = 0; j < g->n_columns; j++)
		g->columns[j] = (struct grid_column){.g = g, .first = d->ranges[j].first, .count = d->ranges[j].count};
}

static const struct section *section_at(const struct document *d, uint32_t first) {
	for (int i = 0; i < d->n_sections; i++)
		if (d->sections[i].first == first)
			return &d->sections[i];
	return NULL;
}

static void begin_columns(struct grid *g, const struct document *d, int64_t now_us) {
	int own = 0;
	for (int j = 0; j < g->n_columns; j++) {
		const struct section *s = g->columns[j].count > 0 ? section_at(d, g->columns[j].first) : NULL;
		if (s)
			grid_column_begin(g, j, d, s, now_us);
		else
			g->columns[j].core = NULL;
		own += s != NULL;
	}
	RV_ASSERT(own == d->n_sections);
}

static struct reduce_config row_config(const struct grid_config *cfg, bool two_levels) {
	struct reduce_config row = {.n_chunks = cfg->n_chunks,
								.codec = cfg->codec.row,
								.silence_us = cfg->silence_us,
								.stall_us = cfg->stall_us,
								.ping_interval_us = cfg->ping_interval_us,
								.commits = cfg->seals.verify != NULL,
								.seals = cfg->seals,
								.seal_later = two_levels,
								.patience_gather = 1};
	if (!two_levels)
		return row;
	row.codec.reduce = cfg->codec.sum;
	row.later_mean = true;
	row.patience_gather = 3; /* in a column they wait less, so those at fault are known there first */
	return row;
}

struct grid *grid_init(void *memory, const struct grid_config *cfg, const struct grid_memory *mem,
					   const struct document *d, int64_t now_us) {
	struct grid *g = memory;
	memset(g, 0, offsetof(struct grid, columns));
	g->cfg = *cfg;
	g->mem = *mem;
	g->round = d->round;
	g->attempt = d->attempt;
	g->n_rows = has_two_levels(d) ? d->n_rows : 1;
	struct reduce_memory row = {.own = mem->own,
								.reduced = mem->reduced,
								.flags = mem->flags,
								.own_nodes = mem->own_nodes,
								.proof = mem->proof,
								.means = mem->means};
	memcpy(row.held, mem->held, sizeof row.held);
	memcpy(row.leaves, mem->leaves, sizeof row.leaves);
	const struct reduce_config row_cfg = row_config(cfg, has_two_levels(d));
	const struct reduce_roster ro = reduce_roster_of(d, cfg->self_member);
	adopt_peers(g, d);
	if (has_two_levels(d)) {
		adopt_rows(g, d);
		freeze_columns(g, d);
	}
	g->row = reduce_init(core_memory(g, 0), &row_cfg, &row, &ro, now_us);
	begin_columns(g, d, now_us);
	grid_pump(g, now_us);
	return g;
}

bool grid_continues(const struct grid *g, const struct document *d) {
	bool same = d->round == g->round && d->attempt > g->attempt && (has_two_levels(d) ? d->n_rows : 1) == g->n_rows;
	same = same && (g->n_rows == 1 || d->n_ranges == g->n_columns);
	for (int j = 0; j < g->n_columns && same; j++)
		same = d->ranges[j].first == g->columns[j].first && d->ranges[j].count == g->columns[j].count;
	return same;
}

void grid_restart(struct grid *g, const struct document *d, int64_t now_us) {
	RV_ASSERT(grid_continues(g, d));
	const struct reduce_roster ro = reduce_roster_of(d, g->cfg.self_member);
	g->attempt = d->attempt;
	adopt_peers(g, d);
	if (g->n_rows > 1)
		adopt_rows(g, d);
	reduce_restart(g->row, &ro, now_us);
	begin_columns(g, d, now_us);
	grid_pump(g, now_us);
}

/* ---- peers ---- */

int grid_peers(const struct grid *g) {
	return g->n_peers;
}

int grid_peer_of(const struct grid *g, uint32_t member) {
	for (int i = 0; i < g->n_peers; i++)
		if (g->peers[i].member == member)
			return i;
	return -1;
}

uint32_t grid_member(const struct grid *g, int peer) {
	RV_ASSERT(peer >= 0 && peer < g->n_peers);
	return g->peers[peer].member;
}

uint16_t grid_place(const struct grid *g, int peer) {
	RV_ASSERT(peer >= 0 && peer < g->n_peers);
	return g->peers[peer].place;
}

static bool in_row(const struct grid *g, int peer) {
	RV_ASSERT(peer >= 0 && peer < g->n_peers);
	return peer < g->n_members;
}

/* Returns the next own column at or after `j` that the peer is in, and sets *index to where; -1:
 * none. */
static int column_with(const struct grid *g, int peer, int j, int *index) {
	for (; j < g->n_columns; j++) {
		if (!g->columns[j].core || g->columns[j].index_of[peer] < 0)
			continue;
		*index = g->columns[j].index_of[peer];
		return j;
	}
	return -1;
}

/* ---- messages ---- */

/* A message for a core that there is not: of another attempt, or it breaks the protocol. */
static enum rv_err misdirected(struct grid *g, int from, const struct reduce_msg *m, struct rv_errtext *et) {
	g->ignored_messages++;
	if (m->round != g->round || m->attempt != g->attempt)
		return RV_OK;
	if (m->column)
		return rv_fail(et, RV_E_PROTOCOL,
					   "member %u: a message for column %u, which the two do not share in attempt %u",
					   g->peers[from].member, m->section, g->attempt);
	return rv_fail(et, RV_E_PROTOCOL, "member %u: a message for a row that is not its own", g->peers[from].member);
}

static enum rv_err receive_in_column(struct grid *g, int64_t now_us, int from, const struct reduce_msg *m,
									 struct rv_errtext *et) {
	int index, j = column_with(g, from, 0, &index);
	while (j >= 0 && g->columns[j].first != m->section)
		j = column_with(g, from, j + 1, &index);
	if (j < 0)
		return misdirected(g, from, m, et);
	return grid_column_receive(&g->columns[j], now_us, index, m, et);
}

enum rv_err grid_receive(struct grid *g, int64_t now_us, int from, const struct reduce_msg *m, struct rv_errtext *et) {
	enum rv_err e;
	if (in_row(g, from) != !m->column)
		return misdirected(g, from, m, et);
	if (m->column)
		e = receive_in_column(g, now_us, from, m, et);
	else
		e = reduce_receive(g->row, now_us, from, m, et);
	grid_pump(g, now_us);
	return e;
}

static bool send_in_columns(struct grid *g, int64_t now_us, int to, grid_send_fn *send, struct reduce_msg *out) {
	int index;
	for (int j = column_with(g, to, 0, &index); j >= 0; j = column_with(g, to, j + 1, &index))
		if (grid_column_send(&g->columns[j], now_us, index, send, out))
			return true;
	return false;
}

bool grid_send(struct grid *g, int64_t now_us, int to, struct reduce_msg *out) {
	if (in_row(g, to))
		return reduce_send(g->row, now_us, to, out);
	return send_in_columns(g, now_us, to, reduce_send_control, out) || send_in_columns(g, now_us, to, reduce_send, out);
}

bool grid_send_control(struct grid *g, int64_t now_us, int to, struct reduce_msg *out) {
	if (in_row(g, to))
		return reduce_send_control(g->row, now_us, to, out);
	return send_in_columns(g, now_us, to, reduce_send_control, out);
}

bool grid_is_awaited(struct grid *g, int to) {
	return !in_row(g, to) || reduce_is_awaited(g->row, to);
}

struct reduce_load grid_load(const struct grid *g, int to) {
	if (in_row(g, to))
		return reduce_load(g->row, to);
	struct reduce_load all = {0};
	int index;
	for (int j = column_with(g, to, 0, &index); j >= 0; j = column_with(g, to, j + 1, &index)) {
		const struct reduce_load load = reduce_load(g->columns[j].core, index);
		all.all += load.all;
		all.left += load.left;
	}
	return all;
}

/* ---- links and time ---- */

void grid_part(struct grid *g, int64_t now_us, int from, bool bulk) {
	int index;
	if (in_row(g, from))
		reduce_part(g->row, now_us, from, bulk);
	for (int j = column_with(g, from, 0, &index); j >= 0; j = column_with(g, from, j + 1, &index))
		reduce_part(g->columns[j].core, now_us, index, bulk);
}

void grid_link_up(struct grid *g, int64_t now_us, int peer) {
	int index;
	if (in_row(g, peer))
		reduce_link_up(g->row, now_us, peer);
	for (int j = column_with(g, peer, 0, &index); j >= 0; j = column_with(g, peer, j + 1, &index))
		reduce_link_up(g->columns[j].core, now_us, index);
}

void grid_link_down(struct grid *g, int64_t now_us, int peer, bool fatal) {
	int index;
	if (in_row(g, peer))
		reduce_link_down(g->row, now_us, peer, fatal);
	for (int j = column_with(g, peer, 0, &index); j >= 0; j = column_with(g, peer, j + 1, &index))
		reduce_link_down(g->columns[j].core, now_us, index, fatal);
}

void grid_tick(struct grid *g, int64_t now_us) {
	reduce_tick(g->row, now_us);
	for (int j = 0; j < g->n_columns; j++)
		if (g->columns[j].core)
			reduce_tick(g->columns[j].core, now_us);
}

int64_t grid_deadline_us(const struct grid *g) {
	int64_t first = reduce_deadline_us(g->row);
	for (int j = 0; j < g->n_columns; j++) {
		const int64_t at = g->columns[j].core ? reduce_deadline_us(g->columns[j].core) : INT64_MAX;
		first = at < first ? at : first;
	}
	return first;
}

bool grid_done(const struct grid *g) {
	return reduce_done(g->row);
}

static int list_seals(const struct reduce *core, int n, const struct seal_scope *scope, struct owner_seal *out) {
	int listed = 0;
	for (int i = 0; i < n; i++) {
		const struct seal *seal = reduce_seal_of(core, i);
		if (seal)
			out[listed++] = (struct owner_seal){reduce_member(core, i), scope->kind, scope->first, *seal};
	}
	return listed;
}

int grid_seals(const struct grid *g, struct owner_seal out[GRID_MAX_SEALS]) {
	int n = list_seals(g->row, g->n_members, reduce_scope(g->row), out);
	for (int j = 0; j < g->n_columns; j++) {
		const struct grid_column *k = &g->columns[j];
		RV_ASSERT(!k->core || n + k->n <= GRID_MAX_SEALS);
		if (k->core)
			n += list_seals(k->core, k->n, reduce_scope(k->core), out + n);
	}
	return n;
}

bool grid_show(const struct grid *g, struct evidence *out) {
	*out = (struct evidence){.term = reduce_scope(g->row)->term, .round = g->round, .attempt = g->attempt};
	out->has_proof = reduce_equivocation(g->row, &out->proof);
	for (int j = 0; j < g->n_columns && !out->has_proof; j++)
		out->has_proof = g->columns[j].core && reduce_equivocation(g->columns[j].core, &out->proof);
	if (grid_done(g) && g->mem.means) {
		out->n_seals = (uint16_t)grid_seals(g, out->seals);
		out->n_means = g->cfg.n_chunks;
		out->means = g->mem.means;
	}
	return out->has_proof || out->n_means > 0;
}

struct reduce_info grid_info(const struct grid *g) {
	struct reduce_info sum = reduce_info(g->row);
	for (int j = 0; j < g->n_columns; j++) {
		if (!g->columns[j].core)
			continue;
		const struct reduce_info i = reduce_info(g->columns[j].core);
		sum.tx_bytes += i.tx_bytes;
		sum.rx_bytes += i.rx_bytes;
		sum.resent_bytes += i.resent_bytes;
		sum.proof_bytes += i.proof_bytes;
		sum.ignored_messages += i.ignored_messages;
	}
	sum.tx_bytes -= g->tx_saved;
	sum.rx_bytes -= g->rx_saved;
	sum.resent_bytes -= g->resent_saved;
	sum.ignored_messages += g->ignored_messages;
	sum.world = g->n_roster;
	return sum;
}

int grid_receipts(const struct grid *g, struct reduce_receipt out[NET_MAX_ROW]) {
	return reduce_receipts(g->row, out);
}

/* ---- suspects ---- */

static void accuse_in_column(const struct grid_column *k, bool *sure, bool *perhaps) {
	uint64_t certain, possible;
	reduce_accuse(k->core, &certain, &possible);
	for (int i = 0; i < k->n; i++) {
		sure[k->peer[i]] |= certain >> i & 1;
		perhaps[k->peer[i]] |= possible >> i & 1;
	}
}

static void accuse(const struct grid *g, bool *sure, bool *perhaps) {
	uint64_t certain, possible;
	reduce_accuse(g->row, &certain, &possible);
	for (int i = 0; i < g->n_members; i++) {
		sure[i] |= certain >> i & 1;
		perhaps[i] |= possible >> i & 1;
	}
	for (int j = 0; j < g->n_columns; j++)
		if (g->columns[j].core)
			accuse_in_column(&g->columns[j], sure, perhaps);
}

static void insert(struct grid_suspects *s, uint16_t place) {
	int at = s->n++;
	for (; at > 0 && s->places[at - 1] > place; at--)
		s->places[at] = s->places[at - 1];
	s->places[at] = place;
}

bool grid_suspects_equal(const struct grid_suspects *a, const struct grid_suspects *b) {
	return a->n == b->n && memcmp(a->places, b->places, a->n * sizeof a->places[0]) == 0;
}

struct grid_suspects grid_suspects(const struct grid *g) {
	bool sure[GRID_MAX_PEERS] = {false}, perhaps[GRID_MAX_PEERS] = {false}, certain = false;
	struct grid_suspects found = {.n = 0};
	accuse(g, sure, perhaps);
	for (int i = 0; i < g->n_peers; i++)
		certain = certain || sure[i];
	for (int i = 0; i < g->n_peers && found.n < NET_MAX_ROW; i++)
		if (certain ? sure[i] : perhaps[i])
			insert(&found, g->peers[i].place);
	return found;
}
