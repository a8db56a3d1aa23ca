/* sim_peers.c: the shipped mesh in a worker, on the simulator's pipes, and what travels on it: the
 * platform around net/reduce, and the frames of the state transfer. */
#include "sim.h"

#include "base/assert.h"
#include "outer/recode.h"

#include <stdlib.h>
#include <string.h>

enum {
	SILENT_US = 3 * SIM_S, /* of a link that delivers nothing */
	SILENCE_US = 2500 * SIM_MS,
	PING_US = 800 * SIM_MS
};

static int index_of(const struct sim_worker *w, int peer) {
	const uint32_t member = w->sim->oracle.member_of[peer];
	return w->reduce != NULL && peer != w->host ? grid_peer_of(w->reduce, member) : -1;
}

/* ---- what is to be sent ---- */

/* As the real worker: the all-reduce first, then state. */
static bool next_frame(struct sim_worker *w, uint32_t member, bool bulk, struct peers_message *out) {
	struct sim *s = w->sim;
	int peer = oracle_host_of(s, member), index = peer != SIM_NOBODY ? index_of(w, peer) : -1;
	struct reduce_msg m;
	if (peer == SIM_NOBODY)
		return false;
	if (index < 0 || !liars_pull(w, index, bulk, &m))
		return fetch_next(w, member, bulk, out);
	if (m.type == REDUCE_SCATTER || m.type == REDUCE_GATHER)
		donor_reduce_sent(w->donor, s->now_us, m.data_bytes);
	*out = (struct peers_message){
		.header = frame_reduce_encode(&m, frame_run_tag(s->run_id)), .part = {m.data}, .part_bytes = {m.data_bytes}};
	return true;
}

static bool next_message(void *ctx, uint32_t member, struct peers_message *out) {
	return next_frame(ctx, member, true, out);
}

static bool next_control(void *ctx, uint32_t member, struct peers_message *out) {
	return next_frame(ctx, member, false, out);
}

static bool is_awaited(void *ctx, uint32_t member) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member), index = peer != SIM_NOBODY ? index_of(w, peer) : -1;
	return index >= 0 && grid_is_awaited(w->reduce, index);
}

static double part_left(void *ctx, uint32_t member) {
	const struct sim_worker *w = ctx;
	const int peer = oracle_host_of(w->sim, member), index = peer != SIM_NOBODY ? index_of(w, peer) : -1;
	const struct reduce_load load = index >= 0 ? grid_load(w->reduce, index) : (struct reduce_load){0};
	return load.all > 0 ? (double)load.left / load.all : 1;
}

/* ---- what comes ---- */

static enum rv_err on_reduce_frame(struct sim_worker *w, int peer, const struct frame_header *h, const uint8_t *body,
								   struct rv_errtext *et) {
	int index = index_of(w, peer);
	if (index < 0)
		return RV_OK; /* this all-reduce is not ours (yet, or any more) */
	struct reduce_msg m;
	frame_reduce_decode(h, body, &m);
	return grid_receive(w->reduce, w->sim->now_us, index, &m, et);
}

static enum rv_err on_message(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member);
	oracle_frame(w->sim, w->host, peer);
	if (peer == SIM_NOBODY)
		return RV_OK;
	if (frame_is_reduce(h->type))
		return on_reduce_frame(w, peer, h, body, et);
	fetch_receive(w->sim, w->host, peer, h, body);
	return RV_OK;
}

static void on_part(void *ctx, uint32_t member, bool bulk) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member), index = peer != SIM_NOBODY ? index_of(w, peer) : -1;
	if (index >= 0)
		grid_part(w->reduce, w->sim->now_us, index, bulk);
}

/* ---- links ---- */

static void tell_reduce(struct sim_worker *w, int peer, bool refused) {
	int index = index_of(w, peer);
	if (index >= 0 && w->links[peer].up)
		grid_link_up(w->reduce, w->sim->now_us, index);
	else if (index >= 0)
		grid_link_down(w->reduce, w->sim->now_us, index, refused);
}

static void set_link(struct sim_worker *w, int peer, bool up, bool refused) {
	w->links[peer].up = up;
	tell_reduce(w, peer, refused);
	fetch_link_changed(w->sim, w->host, peer); /* asks again on the new one */
}

static void count_way(struct sim_worker *w, uint32_t member) {
	struct sim_stats *stats = &w->sim->stats;
	enum path_kind path = peers_path(w->mesh, member);
	uint64_t after_ms = (uint64_t)(peers_met_after_us(w->mesh, member) / SIM_MS);
	stats->met_relayed += path == PATH_RELAYED;
	stats->met_punched += path == PATH_PUNCHED;
	stats->slowest_ms = after_ms > stats->slowest_ms ? after_ms : stats->slowest_ms;
}

static void on_link_up(void *ctx, uint32_t member) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member);
	sim_say(w->sim, w->host, "has a link to w%d", peer);
	oracle_link_up(w->sim, w->host, peer);
	count_way(w, member);
	if (peer != SIM_NOBODY)
		set_link(w, peer, true, false);
}

static void on_link_down(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member);
	sim_say(w->sim, w->host, "has no link to w%d%s: %s", peer, fatal ? ", for good" : "", text);
	if (peer == SIM_NOBODY)
		return;
	w->lost_a_link = true;
	oracle_link_down(w->sim, w->host, peer, why, text);
	set_link(w, peer, false, fatal);
}

static void on_trouble(void *ctx, enum rv_err why, const char *text) {
	const struct sim_worker *w = ctx;
	sim_say(w->sim, w->host, "has trouble: %s", text);
	oracle_trouble(w->sim, w->host, why, text);
}

static void on_unreached(void *ctx, uint32_t member, enum peers_need need) {
	struct sim_worker *w = ctx;
	int peer = oracle_host_of(w->sim, member);
	oracle_asks(w->sim, w->host);
	if (peer != SIM_NOBODY)
		reach_wants(w->sim, w->host, member, need == PEERS_RELAYED);
}

/* ---- the mesh's life and time ---- */

/* No worker joins with less than preflight.c asks: a chunk within half of the time of silence. */
double mesh_cap(const struct sim *s, int host) {
	size_t chunk = s->opt.codec->encoded_bytes(s->opt.codec, s->opt.chunk_elems);
	double least = (double)chunk * 2 * SIM_S / SILENCE_US, cap = s->opt.capped * s->net.up[host].at_best;
	if (s->opt.capped == 0)
		return 0;
	return cap > least ? cap : least;
}

void mesh_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct pipe_ops pipe = pipe_of(w);
	struct rv_errtext et = {0};
	struct peers_config cfg = {.identity = &s->identities[host].id,
							   .self_member = w->member,
							   .listen = ":7000",
							   .owner = {.ctx = w,
										 .next_message = next_message,
										 .next_control = next_control,
										 .is_awaited = is_awaited,
										 .part_left = part_left,
										 .on_message = on_message,
										 .on_part = on_part,
										 .on_link_up = on_link_up,
										 .on_link_down = on_link_down,
										 .on_trouble = on_trouble,
										 .on_unreached = on_unreached},
							   .silent_us = SILENT_US,
							   .rng_seed = s->opt.seed + w->life,
							   .pipe = &pipe,
							   .stream = &sim_stream,
							   .max_up = (int64_t)mesh_cap(s, host)};
	memcpy(cfg.run_id, s->run_id, sizeof cfg.run_id);
	memcpy(cfg.serving_key, s->run_identity.key, sizeof cfg.serving_key);
	ticket_sign(&s->run_identity, s->run_id, w->member, cfg.identity->key, cfg.ticket);
	if (host == s->impostor && s->oracle.member_of[s->impersonated] != NET_NO_MEMBER)
		cfg.self_member = s->oracle.member_of[s->impersonated];
	w->over_cap = 0;
	w->wrote_us = s->now_us;
	w->asks = (struct sim_dials){0};
	memset(w->dials, 0, (size_t)s->opt.n_workers * sizeof w->dials[0]);
	memset(w->replaced, 0, (size_t)s->opt.n_workers * sizeof w->replaced[0]);
	if (peers_new(&cfg, &w->mesh, &et) != RV_OK)
		sim_fail(s, "w%d: no mesh: %s", host, et.text);
}

static void forget_links(struct sim_worker *w) {
	for (int peer = 0; peer < w->sim->opt.n_workers; peer++)
		w->links[peer] = (struct sim_link){0};
}

void mesh_leave(struct sim_worker *w) {
	peers_free(w->mesh);
	w->mesh = NULL;
	forget_links(w);
}

void mesh_crash(struct sim *s, int host, bool silent) {
	pipe_close_all(s, host, silent);
	mesh_leave(&s->workers[host]);
}

/* As the real loop: waits for readiness or the deadline, and handles both. */
void mesh_handle(struct sim *s, int host) {
	enum { MANY = 1000 };
	struct sim_worker *w = &s->workers[host];
	struct pollfd fds[PEERS_MAX_FDS];
	for (int i = 0; !s->failed; i++) {
		int n = peers_pollfds(w->mesh, fds, PEERS_MAX_FDS);
		if (!pipe_poll(w, fds, n) && peers_deadline_us(w->mesh) > s->now_us)
			return;
		peers_handle(w->mesh, s->now_us, fds, n);
		if (i == MANY)
			sim_fail(s, "w%d: its mesh turns without end", host);
	}
}

/* ---- the all-reduce ---- */

static size_t chunk_bytes(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct sim_worker *w = ctx;
	const struct codec *sent = global_sent_as(&w->sim->global_config, codec);
	return sent->encoded_bytes(sent, chunking_len(&w->chunks, chunk));
}

static size_t chunk_offset(void *ctx, uint8_t codec, uint32_t chunk) {
	const struct sim_worker *w = ctx;
	return chunking_offset_bytes(&w->chunks, global_sent_as(&w->sim->global_config, codec), chunk);
}

/* Returns the run's rule for contributions in these codecs. */
static struct merge_rule rule_of(const struct sim_worker *w, const struct reduce_inputs *c,
								 const struct codec *codecs[NET_MAX_ROW]) {
	struct merge_rule rule = global_merge(&w->sim->global_config);
	for (int i = 0; i < c->n; i++)
		codecs[i] = global_sent_as(&w->sim->global_config, c->codecs[i]);
	rule.codecs = codecs;
	return rule;
}

static enum rv_err chunk_reduce(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
								struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	struct feedback room;
	*bad = -1;
	const struct codec *codecs[NET_MAX_ROW];
	const struct merge_rule rule = rule_of(w, c, codecs);
	const struct feedback *residual = mean_residual_of(&w->means, &w->sim->global_config, chunk, &room);
	return merge_chunk(&rule, c->data, c->weights, c->n, chunking_len(&w->chunks, chunk), w->sim->scratch, residual,
					   out, NULL, et);
}

static enum rv_err chunk_check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	const struct sim_worker *w = ctx;
	return w->sim->opt.codec->decode(w->sim->opt.codec, data, chunking_len(&w->chunks, chunk), w->sim->scratch, et);
}

static size_t sum_bytes(void *ctx, uint32_t chunk) {
	return merge_partial_bytes(chunking_len(&((struct sim_worker *)ctx)->chunks, chunk));
}

static size_t sum_offset(void *ctx, uint32_t chunk) {
	return merge_partial_bytes((size_t)chunk * ((struct sim_worker *)ctx)->chunks.chunk_elems);
}

static enum rv_err chunk_sum(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
							 struct rv_errtext *et) {
	const struct sim_worker *w = ctx;
	const struct codec *codecs[NET_MAX_ROW];
	const struct merge_rule rule = rule_of(w, c, codecs);
	RV_ASSERT(out == NULL);
	*bad = -1;
	return merge_partial(&rule, c->data, c->weights, c->n, chunking_len(&w->chunks, chunk), w->sim->scratch,
						 w->sums + sum_offset(ctx, chunk), NULL, et);
}

static enum rv_err chunk_join(void *ctx, uint32_t chunk, const struct reduce_inputs *c, uint8_t *out, int *bad,
							  struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	struct feedback room;
	const struct merge_rule rule = global_merge(&w->sim->global_config);
	const struct feedback *residual = mean_residual_of(&w->means, &w->sim->global_config, chunk, &room);
	*bad = -1;
	return merge_join(&rule, c->data, c->weights, c->n, chunking_len(&w->chunks, chunk), w->sim->scratch, residual, out,
					  et);
}

/* Returns what the owner of a chunk sends its column: the mean to all, or the row's sum to the one
 * that makes it. */
static uint64_t expected_column_tx(struct sim_worker *w, const struct document *d, uint32_t chunk) {
	const struct sim_roster *r = roster_of(w->sim, d->round, d->attempt);
	uint64_t others = 0;
	if (r == NULL)
		return 0; /* its round was taken back */
	for (int row = 0; row < d->n_rows; row++)
		others += row != d->row && d->row_weights[row] > 0;
	if (roster_encoder(w->sim, r, chunk) == w->host)
		return others * (FRAME_HEADER_BYTES + chunk_bytes(w, 0, chunk));
	return FRAME_HEADER_BYTES + sizeof(float) * chunking_len(&w->chunks, chunk);
}

/* Returns what this worker sends if nothing goes wrong: each chunk once to its owner; of its own
 * the mean to its row, and in rows what the column needs. */
static uint64_t expected_tx(struct sim_worker *w, const struct document *d) {
	const struct contribution_form form = forms_of(d, w->member);
	uint64_t bytes = 0;
	for (int g = 0; g < d->n_ranges; g++)
		for (uint32_t c = d->ranges[g].first; c < d->ranges[g].first + d->ranges[g].count; c++) {
			bool mine = d->members[d->ranges[g].owner].member == w->member;
			if (mine)
				bytes += (d->n_members - 1u) * (FRAME_HEADER_BYTES + chunk_bytes(w, 0, c));
			else if (forms_has(&form, d->round, c))
				bytes += FRAME_HEADER_BYTES + chunk_bytes(w, form.codec, c);
			bytes += mine && d->n_rows > 1 ? expected_column_tx(w, d, c) : 0;
		}
	return bytes;
}

/* Returns this worker's contribution as it is sent. */
static const uint8_t *make_own(struct sim_worker *w, const struct document *d) {
	const struct global_config *g = &w->sim->global_config;
	w->own_codec = forms_of(d, w->member).codec;
	w->own_nodes = w->committer.nodes;
	if (w->own_codec == 0)
		return w->participant.encoded;
	if (w->recoded == NULL)
		w->recoded = sim_alloc(w->sim->max_sent);
	RV_ASSERT(recode_vector(&w->chunks, global_sent(g), global_sent_as(g, w->own_codec), w->participant.encoded,
							w->recoded, w->sim->scratch, NULL) == RV_OK);
	if (w->recoded_nodes == NULL)
		w->recoded_nodes = sim_alloc(merkle_nodes(g->chunks.n_chunks) * sizeof *w->recoded_nodes);
	committer_tree(&w->chunks, global_sent_as(g, w->own_codec), w->recoded, w->recoded_nodes);
	w->own_nodes = w->recoded_nodes;
	return w->recoded;
}

static struct grid_memory reduce_memory(struct sim_worker *w, const struct document *d) {
	struct grid_memory mem = {.own = make_own(w, d), .reduced = w->reduced, .flags = w->flags};
	const size_t sum = merge_partial_bytes(w->chunks.n);
	const int room = w->sim->opt.n_workers < NET_MAX_ROW ? w->sim->opt.n_workers : NET_MAX_ROW;
	if (w->held == NULL)
		w->held = sim_alloc((size_t)room * w->sim->max_sent);
	const size_t n_chunks = w->sim->global_config.chunks.n_chunks;
	if (w->leaves == NULL)
		w->leaves = sim_alloc((1 + (size_t)room + NET_MAX_ROWS) * n_chunks * sizeof *w->leaves + REDUCE_LEAVES_BYTES);
	for (int m = 0; m < room; m++) {
		mem.held[m] = w->held + (size_t)m * w->sim->max_sent;
		mem.leaves[m] = w->leaves + (size_t)m * n_chunks;
	}
	mem.means = w->leaves + (size_t)room * n_chunks;
	for (size_t i = 0; i < NET_MAX_ROWS; i++)
		mem.sum_leaves[i] = mem.means + (1 + i) * n_chunks;
	mem.proof = (uint8_t *)(mem.means + (1 + NET_MAX_ROWS) * n_chunks);
	mem.own_nodes = w->own_nodes;
	if (d->n_rows <= 1)
		return mem;
	free(w->sums);
	mem.sum = w->sums = sim_alloc((1 + (size_t)d->n_rows) * sum);
	for (size_t i = 0; i < d->n_rows; i++)
		mem.row_sums[i] = w->sums + (1 + i) * sum;
	return mem;
}

static void init_reduce(struct sim *s, int host, const struct document *d) {
	struct sim_worker *w = &s->workers[host];
	w->sim = s;
	w->lost_a_link = false;
	w->chunks = global_round_chunks(&s->global_config, d->round);
	const struct grid_config cfg = {.self_member = w->member,
									.n_chunks = w->chunks.n_chunks,
									.codec = {.row = {.ctx = w,
													  .chunk_bytes = chunk_bytes,
													  .chunk_offset = chunk_offset,
													  .reduce = chunk_reduce,
													  .check = chunk_check},
											  .sum_bytes = sum_bytes,
											  .sum_offset = sum_offset,
											  .sum = chunk_sum,
											  .join = chunk_join},
									.seals = sim_seals(&s->identities[host].id),
									.silence_us = SILENCE_US,
									.stall_us = SIM_STALL_US,
									.ping_interval_us = PING_US};
	const struct grid_memory mem = reduce_memory(w, d);
	if (w->reduce_memory == NULL)
		w->reduce_memory = sim_alloc(grid_size());
	w->reduce = grid_init(w->reduce_memory, &cfg, &mem, d, s->now_us);
}

static void enter_attempt(struct sim *s, int host, const struct document *d) {
	struct sim_worker *w = &s->workers[host];
	w->reduce_round = d->round;
	w->reduce_attempt = d->attempt;
	w->expected_tx = expected_tx(w, d);
	for (int peer = 0; peer < s->opt.n_workers; peer++)
		if (w->links[peer].up)
			tell_reduce(w, peer, false);
	oracle_contribution(s, host);
	faults_on(s, host, ON_ATTEMPT, d->round, 4 * (s->opt.delay_us + s->opt.jitter_us));
	lies_begin_attempt(s, host);
}

/* ---- the session core's links ---- */

/* As the real worker: one that has the state also dials those who lack it. */
static void allow(void *ctx, const struct document *d) {
	struct sim_worker *w = ctx;
	struct member_ref linked[DOCUMENT_MAX_LINKED];
	const int n = document_linked(d, linked);
	struct banned banned = d->banned;
	again_part(w, d, &banned);
	sim_say(w->sim, w->host, "follows document %llu: %d members, %d behind", (unsigned long long)d->seq, d->n_members,
			d->n_syncing);
	if (d->phase == RUN_REDUCE && d->round == w->global.round) {
		w->told_round = d->round;
		w->told_attempt = d->attempt;
		w->told_in = document_find(d, w->member) >= 0;
	}
	house_follow(&w->house, d, w->member);
	for (int i = 0; i < n; i++)
		house_filter(&w->house, &linked[i]);
	peers_ban(w->mesh, w->sim->now_us, &banned);
	peers_allow(w->mesh, w->sim->now_us, linked, n);
	again_follow(w, d);
	fetch_allow(w, d);
	reach_core_follow(w->reach.core, w->sim->now_us, d);
}

static void pause_links(void *ctx, bool paused) {
	struct sim_worker *w = ctx;
	peers_pause(w->mesh, w->sim->now_us, paused);
}

static enum rv_err begin_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	(void)et;
	RV_ASSERT(w->reduce == NULL);
	means_begin(w->sim, w->host, d);
	init_reduce(w->sim, w->host, d);
	enter_attempt(w->sim, w->host, d);
	return RV_OK;
}

static enum rv_err resume_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	(void)et;
	means_begin(w->sim, w->host, d);
	if (grid_continues(w->reduce, d) && forms_of(d, w->member).codec == w->own_codec)
		grid_restart(w->reduce, d, w->sim->now_us);
	else
		init_reduce(w->sim, w->host, d);
	enter_attempt(w->sim, w->host, d);
	return RV_OK;
}

static void end_reduce(void *ctx) {
	struct sim_worker *w = ctx;
	if (w->sim->opt.calm && !w->lost_a_link)
		oracle_bytes(w->sim, w->host);
	struct reduce_receipt receipts[NET_MAX_ROW];
	receipts_note_all(&w->receipts, receipts, grid_receipts(w->reduce, receipts));
	w->reduce = NULL;
}

static struct blob *result(void *ctx) {
	const struct sim_worker *w = ctx;
	struct blob *b = blob_new(sim_payload(w->sim, w->reduce_round));
	RV_ASSERT(b != NULL);
	memcpy(b->data, w->reduced, b->bytes);
	return b;
}

static enum rv_err want(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	return fetcher_want(w->fetcher, w->sim->now_us, ids, n, et);
}

static bool nowhere(void *ctx) {
	struct sim_worker *w = ctx;
	fetcher_tick(w->fetcher, w->sim->now_us);
	return fetcher_nowhere(w->fetcher);
}

static void forget(void *ctx, enum state_kind kind, uint64_t round) {
	(void)ctx;
	(void)kind;
	(void)round; /* every piece is read anew */
}

static void forget_all(void *ctx) {
	(void)ctx;
}

static const struct member_set *askers(void *ctx) {
	return donor_askers(((struct sim_worker *)ctx)->donor);
}

static uint64_t given_bytes(void *ctx) {
	return donor_bytes(((struct sim_worker *)ctx)->donor);
}

const struct session_links_ops sim_links_ops = {.allow = allow,
												.pause = pause_links,
												.reduce_start = begin_reduce,
												.reduce_restart = resume_reduce,
												.reduce_stop = end_reduce,
												.result = result,
												.means_left = means_left,
												.means_commit = means_commit,
												.means_forget = means_forget,
												.want = want,
												.nowhere = nowhere,
												.forget = forget,
												.forget_all = forget_all,
												.askers = askers,
												.given_bytes = given_bytes};

struct session_reduce peers_seen(const struct sim_worker *w) {
	if (w->reduce == NULL)
		return (struct session_reduce){.running = false};
	return (struct session_reduce){.running = true,
								   .complete = grid_done(w->reduce),
								   .round = w->reduce_round,
								   .attempt = w->reduce_attempt,
								   .suspects = grid_suspects(w->reduce)};
}
