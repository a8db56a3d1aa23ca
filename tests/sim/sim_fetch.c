/* sim_fetch.c: what a worker's fetcher and donor (worker/transfer) stand on: the simulated disk,
 * and links. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 1500, STALL_US = 2 * SIM_S };

static uint32_t member_of(const struct sim *s, int host) {
	return s->oracle.member_of[host];
}

/* ---- files that come together: the fetcher's operations ---- */

static void free_part(struct sim_worker *w, struct sim_part *p) {
	struct sim_part **at = &w->parts;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p->payload);
	free(p->held);
	free(p->manifest);
	free(p);
}

/* Memory is short now and then, while faults happen. */
static bool post(void *ctx, void *file, const struct fetcher_job *job) {
	struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	struct sim_part *p = file;
	struct fetcher_job copy = *job;
	if (!s->opt.calm && !s->healed && sim_chance(s, w->host, LUCK_WORK, 0.01))
		return false;
	copy.data = NULL;
	if (job->bytes > 0)
		copy.data = memcpy(sim_alloc(job->bytes), job->data, job->bytes);
	p->jobs++;
	store_post_step(s, w->host, p, &copy);
	return true;
}

static void *open_part(void *ctx, const struct state_id *id) {
	struct sim_worker *w = ctx;
	const struct global_config *g = &w->sim->global_config;
	struct sim_part *p = sim_alloc(sizeof *p);
	*p = (struct sim_part){.id = *id,
						   .payload = sim_alloc(state_payload_bytes(g, id->kind, id->round)),
						   .held = sim_alloc(state_pieces(g, id->kind, id->round)),
						   .manifest = sim_alloc(state_manifest_hashes(g, id->kind, id->round) * RV_HASH_BYTES),
						   .next = w->parts};
	w->parts = p;
	if (post(w, p, &(struct fetcher_job){.step = FETCHER_OPEN}))
		return p;
	free_part(w, p);
	return NULL;
}

static void take(void *ctx, void *file, struct fetched *out) {
	const struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	const struct sim_part *p = file;
	size_t n;
	*out = (struct fetched){.id = p->id};
	if (p->in_memory)
		(void)rv_fail(&out->warning, RV_E_FULL, "the disk refuses");
	if (p->id.kind == STATE_KIND_SNAPSHOT) {
		out->snapshot = files_snapshot_of(s, &p->id, p->payload, &n);
		return;
	}
	out->log = blob_new(sim_payload(s, p->id.round));
	RV_ASSERT(out->log != NULL);
	memcpy(out->log->data, p->payload, out->log->bytes);
}

static void drop(void *ctx, void *file) {
	struct sim_part *p = file;
	p->dropped = true;
	if (p->jobs == 0)
		free_part(ctx, p);
}

static void *core_memory(void *ctx, size_t bytes) {
	struct sim_worker *w = ctx;
	if (w->fetch_core_memory == NULL)
		w->fetch_core_memory = sim_alloc(bytes);
	return w->fetch_core_memory;
}

/* ---- on the storage thread ---- */

/* The first task is over. */
static void answer(struct sim *s, int host, const struct fetcher_job *done) {
	struct sim_worker *w = &s->workers[host];
	struct sim_part *p = w->tasks->part;
	struct fetcher_job j = *done;
	j.data = NULL;
	j.text = "no memory";
	store_next(s, host);
	fetcher_on_done(w->fetcher, p, &j);
	if (--p->jobs == 0 && p->dropped)
		free_part(w, p);
	worker_turn(s, host);
}

static bool holds_what_is_named(const struct sim *s, struct sim_part *p, const struct sim_file *f) {
	const struct global_config *g = &s->global_config;
	const struct state_id *id = &p->id;
	size_t bytes = state_payload_bytes(g, id->kind, id->round);
	if (f == NULL)
		return false;
	const uint8_t *payload = f->data + f->n - bytes;
	state_manifest_of(g, id->kind, id->round, payload, p->manifest);
	if (state_manifest_check(g, id, p->manifest, NULL) != RV_OK)
		return false;
	memcpy(p->payload, payload, bytes);
	memset(p->held, 1, state_pieces(g, id->kind, id->round));
	return true;
}

/* As the real one does: what the document names is right wherever it is found. */
static void look(struct sim *s, int host, struct sim_part *p, struct fetcher_job *j) {
	struct sim_disk *d = &s->workers[host].disk;
	bool snapshot = p->id.kind == STATE_KIND_SNAPSHOT;
	p->own = j->own = holds_what_is_named(s, p, disk_find(d, snapshot ? FILE_SNAPSHOT : FILE_LOG, p->id.round));
	bool part = !p->own && snapshot && holds_what_is_named(s, p, disk_find(d, FILE_PART, p->id.round));
	if (!p->own && !part)
		return;
	j->manifest = p->manifest;
	j->held = p->held;
	s->stats.own_files++;
	sim_say(s, host, "has %s %llu itself", snapshot ? "snapshot" : "log", (unsigned long long)p->id.round);
}

static bool is_incomplete(const struct sim *s, const struct sim_part *p) {
	for (uint32_t i = 0; i < state_pieces(&s->global_config, p->id.kind, p->id.round); i++)
		if (!p->held[i])
			return true;
	return false;
}

static void written(struct sim *s, int host, uint64_t tag, bool ok) {
	const struct sim_task *task = s->workers[host].tasks;
	(void)tag;
	task->part->in_memory = !ok;
	sim_say(s, host, ok ? "has fetched it" : "has fetched it, in memory");
	answer(s, host, &task->step);
}

static void write_part(struct sim *s, int host, const struct sim_part *p) {
	bool snapshot = p->id.kind == STATE_KIND_SNAPSHOT;
	const struct state_log_info info = {.round = p->id.round, .digest = p->id.expect};
	size_t n;
	uint8_t *bytes = snapshot ? files_snapshot_of(s, &p->id, p->payload, &n) : files_log(s, &info, p->payload, &n);
	disk_write(s, host, snapshot ? FILE_PART : FILE_LOG, p->id.round, bytes, n, written, 0);
	free(bytes);
}

static void keep_piece(const struct sim *s, struct sim_part *p, const struct fetcher_job *j) {
	size_t n, at = state_piece_at(&s->global_config, p->id.kind, p->id.round, j->index, &n);
	RV_ASSERT(n == j->bytes);
	memcpy(p->payload + at, j->data, n);
	p->held[j->index] = 1;
}

void fetch_run_step(struct sim *s, int host) {
	struct sim_task *task = s->workers[host].tasks;
	struct sim_part *p = task->part;
	struct fetcher_job *j = &task->step;
	bool idle = p->dropped || (p->own && j->step != FETCHER_OPEN);
	j->incomplete = idle;
	if (!idle && j->step == FETCHER_FINISH) {
		j->incomplete = is_incomplete(s, p);
		if (!j->incomplete) {
			write_part(s, host, p);
			return;
		}
	}
	if (!idle && j->step == FETCHER_OPEN)
		look(s, host, p, j);
	if (!idle && j->step == FETCHER_MANIFEST)
		memcpy(p->manifest, j->data, j->bytes);
	if (!idle && j->step == FETCHER_PIECE)
		keep_piece(s, p, j);
	answer(s, host, j);
}

/* ---- the fetcher's owner ---- */

static void on_file(void *ctx, const struct fetched *what, bool late) {
	const struct sim_worker *w = ctx;
	const struct state_id *id = &what->id;
	struct sim *s = w->sim;
	if (late) {
		if (what->log != NULL)
			session_core_on_stored_late(w->session, id, what->log);
		blob_unref(what->log);
		free(what->snapshot);
		return;
	}
	bool snapshot = id->kind == STATE_KIND_SNAPSHOT;
	s->stats.fetched_snapshots += snapshot;
	s->stats.fetched_logs += !snapshot;
	s->stats.older_snapshots += snapshot && id->round < round_document(w->core)->snapshot_round;
	session_core_on_fetched(w->session, s->now_us, id, what->snapshot, what->log, what->warning.text);
	blob_unref(what->log);
}

static void on_failed(void *ctx, const struct state_id *id, enum rv_err e, const char *text) {
	const struct sim_worker *w = ctx;
	session_core_on_fetch_failed(w->session, w->sim->now_us, id, e, text);
}

/* Its vote may have lost without its knowing. */
static void on_bad_donor(void *ctx, uint32_t member, const struct state_id *id, const char *text) {
	const struct sim_worker *w = ctx;
	(void)id;
	sim_say(w->sim, w->host, "names member %u: %s", member, text);
}

/* ---- what the donor gives of ---- */

static bool may_look(void *ctx, int64_t now_us, const struct frame_fetch *what) {
	(void)ctx, (void)now_us, (void)what;
	return true;
}

static int64_t ready_us(void *ctx) {
	(void)ctx;
	return INT64_MIN;
}

static void idle(void *ctx) {
	(void)ctx;
}

/* All of what was asked for, in memory of its own; NULL: it does not have it. */
static uint8_t *asked_bytes(struct sim *s, int host, const struct frame_fetch *m, uint32_t *n) {
	const struct global_config *g = &s->global_config;
	enum state_kind kind = (enum state_kind)m->kind;
	const struct sim_file *file =
		disk_find(&s->workers[host].disk, kind == STATE_KIND_SNAPSHOT ? FILE_SNAPSHOT : FILE_LOG, m->round);
	size_t bytes = 0, at = 0;
	if (file == NULL || (m->part == FRAME_PART_PIECE ? m->index >= state_pieces(g, kind, m->round) : m->index != 0))
		return NULL;
	const uint8_t *payload = file->data + file->n - state_payload_bytes(g, kind, m->round);
	if (m->part == FRAME_PART_PIECE)
		at = state_piece_at(g, kind, m->round, m->index, &bytes);
	else
		bytes = state_manifest_hashes(g, kind, m->round) * RV_HASH_BYTES;
	uint8_t *out = sim_alloc(bytes);
	if (m->part == FRAME_PART_PIECE)
		memcpy(out, payload + at, bytes);
	else
		state_manifest_of(g, kind, m->round, payload, (struct rv_hash *)(void *)out);
	*n = (uint32_t)bytes;
	if (host == s->liar && m->part == FRAME_PART_PIECE && sim_chance(s, host, LUCK_WORK, 0.3)) {
		out[bytes / 2] ^= 1;
		s->stats.faults[FAULT_LIAR]++;
	}
	return out;
}

static bool find(void *ctx, int64_t now_us, struct frame_piece *out) {
	struct sim_worker *w = ctx;
	(void)now_us;
	free(w->served);
	w->served = asked_bytes(w->sim, w->host, &out->of, &out->total);
	out->data = w->served;
	return w->served != NULL;
}

/* ---- members that fetch for ever (LIE_FETCHES) ---- */

/* As worker/session/start.c: a snapshot, and the log from there to the next. */
static int64_t whole_state(const struct sim *s, int64_t *entry) {
	const struct global_config *g = &s->global_config;
	*entry = 0;
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++) {
		const int64_t bytes = (int64_t)state_payload_bytes(g, STATE_KIND_LOG, fragment);
		*entry = bytes > *entry ? bytes : *entry;
	}
	return (int64_t)state_payload_bytes(g, STATE_KIND_SNAPSHOT, 0) + (int64_t)s->opt.snapshot_every * *entry;
}

/* Honest members of a universe of liars never fetch as much. */
static struct donor_budget budget_of(const struct sim *s) {
	int64_t entry, state = whole_state(s, &entry);
	return s->opt.liars ? donor_budget_of(state, entry) : (struct donor_budget){.whole_bytes = 0};
}

/* Asks `member` for a piece of the latest state that documents name, again and again. */
static bool ask_again(struct sim_worker *w, uint32_t member, struct peers_message *out) {
	enum { EVERY_US = 50 * SIM_MS };
	const struct sim *s = w->sim;
	const struct document *d = round_document(w->core);
	const int peer = oracle_host_of(s, member);
	if (!lies_so(s, w->host, LIE_FETCHES) || peer == SIM_NOBODY || peer >= SIM_ORDINARY || d == NULL || d->round == 0)
		return false;
	struct sim_greed *g = &w->greed[peer];
	if (g->waits || s->now_us < g->next_us)
		return false;
	const bool snapshot = d->snapshot_round > 0;
	g->asked = (struct frame_fetch){.kind = snapshot ? FRAME_FETCH_SNAPSHOT : FRAME_FETCH_LOG,
									.part = FRAME_PART_PIECE,
									.round = snapshot ? d->snapshot_round : d->round - 1};
	g->waits = true;
	g->next_us = s->now_us + EVERY_US;
	*out = (struct peers_message){.header = frame_fetch_encode(&g->asked, frame_run_tag(s->run_id), w->greedy_body)};
	out->part[0] = w->greedy_body;
	out->part_bytes[0] = FRAME_FETCH_BYTES;
	return true;
}

/* Takes an answer to that; false: it is none. */
static bool is_answer(struct sim_worker *w, int from, const struct frame_header *h, const uint8_t *body) {
	struct frame_piece piece = {.total = 0};
	struct sim_greed *g = from < SIM_ORDINARY ? &w->greed[from] : NULL;
	if (g == NULL || !g->waits)
		return false;
	const enum rv_err e = h->type == FRAME_NONE ? frame_fetch_decode(h, body, &piece.of, NULL)
												: frame_piece_decode(h, body, &piece, NULL);
	if (e != RV_OK || !frame_fetch_equal(&piece.of, &g->asked))
		return false;
	g->waits = piece.offset + piece.data_bytes < piece.total;
	return true;
}

/* Each peer gives it twice the state, an entry for each round, and what comes back in an hour. */
static void check_given(struct sim_worker *w, int to, const struct peers_message *m) {
	struct sim *s = w->sim;
	int64_t entry, whole = 2 * whole_state(s, &entry);
	struct sim_greed *g = &w->greed[to];
	g->given += m->part_bytes[0] + m->part_bytes[1];
	const int64_t back = entry * (int64_t)(s->oracle.n_committed + 1) + (s->now_us / SIM_S + 1) * whole / 3600;
	if ((int64_t)g->given > whole + back + FRAME_PIECE_BYTES + SLICE_BYTES)
		sim_fail(s, "w%d gave w%d %llu bytes of the run's state, whose whole is %lld", w->host, to,
				 (unsigned long long)g->given, (long long)whole / 2);
}

/* ---- a process ---- */

void fetch_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct fetcher_config fetcher = {
		.global = &s->global_config,
		.run_tag = frame_run_tag(s->run_id),
		.self_member = w->member,
		.stall_us = STALL_US,
		.ops = {.ctx = w, .memory = core_memory, .open = open_part, .post = post, .take = take, .drop = drop},
		.owner = {.ctx = w, .on_file = on_file, .on_failed = on_failed, .on_bad_donor = on_bad_donor}};
	const struct donor_config donor = {
		.run_tag = frame_run_tag(s->run_id),
		.slice_bytes = SLICE_BYTES,
		.budget = budget_of(s),
		.source = {.ctx = w, .may_look = may_look, .ready_us = ready_us, .find = find, .idle = idle}};
	if (w->fetcher_memory == NULL) {
		w->fetcher_memory = sim_alloc(fetcher_size());
		w->donor_memory = sim_alloc(donor_size());
	}
	w->fetcher = fetcher_init(w->fetcher_memory, &fetcher);
	w->donor = donor_init(w->donor_memory, &donor);
	memset(w->greed, 0, sizeof w->greed);
}

void fetch_end(struct sim_worker *w) {
	while (w->parts != NULL)
		free_part(w, w->parts);
	free(w->served);
	w->served = NULL;
	w->fetcher = NULL;
	w->donor = NULL;
}

void fetch_allow(struct sim_worker *w, const struct document *d) {
	struct member_set donors = {0};
	for (int i = 0; i < d->n_members; i++)
		if (!banned_has(&d->banned, d->members[i].member))
			(void)member_set_add(&donors, d->members[i].member);
	fetcher_allow(w->fetcher, w->sim->now_us, &donors);
}

int64_t fetch_deadline_us(struct sim_worker *w) {
	int64_t at = fetcher_deadline_us(w->fetcher), donor_at = donor_deadline_us(w->donor, w->sim->now_us);
	return donor_at < at ? donor_at : at;
}

/* ---- links ---- */

void fetch_link_changed(struct sim *s, int host, int peer) {
	struct sim_worker *w = &s->workers[host];
	uint32_t member = member_of(s, peer);
	if (peer < SIM_ORDINARY)
		w->greed[peer].waits = false;
	if (w->fetcher == NULL || member == NET_NO_MEMBER)
		return;
	donor_link_down(w->donor, member);
	fetcher_link_down(w->fetcher, s->now_us, member);
	if (w->links[peer].up)
		fetcher_link_up(w->fetcher, s->now_us, member);
}

bool fetch_next(struct sim_worker *w, uint32_t member, bool bulk, struct peers_message *out) {
	const int64_t now_us = w->sim->now_us;
	const int to = oracle_host_of(w->sim, member);
	if (fetcher_send(w->fetcher, now_us, member, out) || ask_again(w, member, out))
		return true;
	if (!bulk || !donor_send(w->donor, now_us, member, out))
		return false;
	if (lies_so(w->sim, to, LIE_FETCHES))
		check_given(w, to, out);
	return true;
}

void fetch_receive(struct sim *s, int host, int from, const struct frame_header *h, const uint8_t *body) {
	struct sim_worker *w = &s->workers[host];
	struct rv_errtext et = {0};
	if (h->type != FRAME_FETCH && is_answer(w, from, h, body))
		return;
	enum rv_err e = h->type == FRAME_FETCH ? donor_receive(w->donor, member_of(s, from), h, body, &et)
										   : fetcher_receive(w->fetcher, s->now_us, member_of(s, from), h, body, &et);
	if (e != RV_OK && !lies_so(s, host, LIE_FETCHES)) /* an answer may come after another question */
		sim_fail(s, "w%d refuses a %s of w%d: %s", host, frame_type_name(h->type), from, et.text);
}
