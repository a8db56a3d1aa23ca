/* sim_coordinator.c: the platform around coordinator/core: HTTP requests in, records to the store,
 * documents out. */
#include "sim.h"

#include "base/assert.h"
#include "outer/slow_codecs.h"

#include <stdlib.h>
#include <string.h>

enum {
	POLL_HOLD_US = 4 * SIM_S,
	STATUS_OK = 200,
	STATUS_NONE = 204,
	STATUS_FORBIDDEN = 403,
	STATUS_CONFLICT = 409,
	STATUS_BUSY = 503
};

/* Returns the steps that a round which a member missed adds to its contribution. */
static uint64_t missed_steps(const struct sim *s) {
	const bool rests = s->opt.slow_members == SLOW_SKIP || s->opt.slow_members == SLOW_PART;
	return s->opt.overlap_steps + (rests ? s->opt.steps_per_round : 0);
}

/* As service.c does. */
static void put_slow_codecs(const struct sim *s, struct core_config *cfg) {
	const struct slow_codecs slow = slow_codecs_of(&s->run);
	const size_t n = s->global_config.chunks.chunk_elems;
	cfg->sent_chunk_bytes = cfg->mean_chunk_bytes = cfg->chunk_bytes;
	cfg->n_slow_codecs = slow.n;
	for (int i = 0; i < slow.n; i++) {
		cfg->slow_codecs[i] = slow.step[i]->id;
		cfg->slow_chunk_bytes[i] = slow.step[i]->encoded_bytes(slow.step[i], n);
	}
}

static void config_of(const struct sim *s, struct core_config *cfg) {
	const uint32_t most = s->opt.n_workers > SIM_ORDINARY ? SIM_MAX_WORKERS : SIM_ORDINARY;
	*cfg = (struct core_config){.max_here = most,
								.max_roster = most,
								.row_size = (uint32_t)s->opt.row_size,
								.run_hash = s->run_hash,
								.final_round = s->opt.rounds,
								.min_workers = s->opt.min_workers,
								.fragments = s->opt.fragments,
								.weight_by_tokens = s->opt.weight_by_tokens,
								.keeps_owners = s->opt.mean_feedback > 0,
								.equal_ownership = s->opt.equal_ownership,
								.slow_members = s->opt.slow_members,
								.grace_us = 2 * SIM_S,
								.liveness_us = 4 * SIM_S,
								.silent_us = 2 * SIM_S,
								.withheld_us = SIM_STALL_US,
								.seals = sim_seals(NULL),
								.chunk_bytes =
									s->opt.codec->encoded_bytes(s->opt.codec, s->global_config.chunks.chunk_elems),
								.sum_bytes = merge_partial_bytes(s->global_config.chunks.chunk_elems),
								.suspect_gather_us = 300 * SIM_MS,
								.round_tokens = s->opt.steps_per_round * SIM_TOKENS_PER_STEP,
								.missed_tokens = missed_steps(s) * SIM_TOKENS_PER_STEP};
	cfg->audit_chunks = s->opt.audit_chunks;
	cfg->audit_ppm = s->opt.audit_ppm;
	cfg->repeat_ppm = s->opt.repeat_ppm;
	cfg->inner_bytes = 2 * sizeof(float) * s->opt.n_params;
	cfg->audit_window = s->opt.audit_window;
	cfg->audit_rollback = s->opt.audit_rollback;
	cfg->audit_secret = rv_hash_of(&s->opt.seed, sizeof s->opt.seed);
	if (s->opt.leases) {
		cfg->lease_round = (s->opt.steps_per_round + s->opt.overlap_steps) * SIM_SEQUENCES;
		cfg->lease_tokens = SIM_TOKENS_PER_STEP / SIM_SEQUENCES;
	}
	cfg->n_relays = (uint8_t)relay_list(s, cfg->relays);
	put_slow_codecs(s, cfg);
	for (uint32_t fragment = 0; fragment < fragments_count(&s->global_config.fragments); fragment++)
		cfg->n_chunks[fragment] = global_round_chunks(&s->global_config, fragment).n_chunks;
}

static enum rv_err replay_one(void *core, const struct core_record *rec, struct rv_errtext *et) {
	return core_replay(core, rec, et);
}

void coordinator_start(struct sim *s) {
	struct sim_coordinator *c = &s->coordinator;
	struct core_config cfg;
	config_of(s, &cfg);
	if (c->memory == NULL)
		c->memory = sim_alloc(core_size(&cfg));
	c->life = ++s->lives;
	c->version = sim_version(s, SIM_COORDINATOR);
	c->core = core_init(c->memory, &cfg, s->now_us);
	c->timer_us = INT64_MAX;
	if (c->store.store.ops == NULL)
		memory_store_init(&c->store);
	struct rv_errtext et = {0};
	if (c->store.store.ops->each(&c->store.store, replay_one, c->core, &et) != RV_OK)
		sim_fail(s, "the coordinator cannot read its own store: %s", et.text);
	core_replayed(c->core);
	sim_say(s, SIM_COORDINATOR, "starts with %d records", c->store.n_records);
	moves_begin(s);
	coordinator_turn(s);
}

/* ---- store ---- */

static void make_durable(struct sim *s, const struct core_record *rec) {
	struct sim_coordinator *c = &s->coordinator;
	enum rv_err e = c->store.store.ops->append(&c->store.store, rec, NULL, NULL);
	RV_ASSERT(e == RV_OK);
	oracle_record(s, rec);
}

static void record_written(struct sim *s, int host, void *arg) {
	(void)host;
	free(arg);
	struct sim_coordinator *c = &s->coordinator;
	c->writing = false;
	make_durable(s, &c->record);
	core_persisted(c->core, c->record.id, s->now_us);
	coordinator_turn(s);
}

static void write_next_record(struct sim *s) {
	struct sim_coordinator *c = &s->coordinator;
	if (c->writing || !core_next_record(c->core, &c->record))
		return;
	c->writing = true;
	int64_t takes = sim_chance(s, SIM_COORDINATOR, LUCK_DISK, 0.05)
						? sim_between(s, SIM_COORDINATOR, LUCK_DISK, 0, SIM_S / 2)
						: sim_between(s, SIM_COORDINATOR, LUCK_DISK, 100, 5 * SIM_MS);
	takes = (int64_t)(c->disk_slowness * (double)takes);
	sim_at(s, s->now_us + takes, SIM_COORDINATOR, c->life, record_written, NULL);
	faults_aim(s, SIM_COORDINATOR, 1, takes);
	static const uint8_t on[] = {[CORE_ROSTER] = ON_ROSTER, [CORE_COMMIT] = ON_COMMIT, [CORE_ROLLBACK] = ON_ROLLBACK};
	uint8_t type = c->record.type;
	if (type < sizeof on && on[type] != ON_NOTHING)
		faults_on(s, SIM_COORDINATOR, (enum sim_on)on[type], type == CORE_ROLLBACK ? 0 : c->record.round, takes);
}

static void hang_up_on(struct sim *s, int host, const struct http_head *rq) {
	struct http_head head = *rq;
	head.status = 0;
	sim_send(s, packet_new(SIM_COORDINATOR, host, PACKET_REPLY, &head, sizeof head));
}

void coordinator_crash(struct sim *s, bool silent) {
	struct sim_coordinator *c = &s->coordinator;
	if (c->writing && sim_chance(s, SIM_COORDINATOR, LUCK_DISK, 0.5)) /* it reached the disk, but nobody was told */
		make_durable(s, &c->record);
	for (int h = 0; h < s->opt.n_workers; h++)
		if (c->polls[h].waiting && !silent) { /* the kernel closes the connection */
			const struct http_head *head = &c->polls[h].head;
			hang_up_on(s, h, head);
		}
	for (int h = 0; h < s->opt.n_workers; h++)
		if (c->joins[h].id != 0 && !silent)
			hang_up_on(s, h, &c->joins[h]);
	memset(c->polls, 0, sizeof c->polls);
	memset(c->joins, 0, sizeof c->joins);
	memset(c->sent, 0, sizeof c->sent);
	c->core = NULL;
	c->writing = c->steps = false;
	c->life = 0;
	c->dark = silent;
	s->frozen_until_us[SIM_COORDINATOR] = 0;
	sim_say(s, SIM_COORDINATOR, silent ? "loses power" : "is killed");
}

void coordinator_hang_up(struct sim *s, int host) {
	struct sim_coordinator *c = &s->coordinator;
	uint8_t key[NET_KEY_BYTES];
	if (c->core == NULL || !c->polls[host].waiting || s->frozen_until_us[SIM_COORDINATOR] > s->now_us)
		return;
	c->polls[host].waiting = false;
	sim_key_of(s, host, key);
	core_listens(c->core, s->now_us, key, false);
	coordinator_turn(s);
}

/* ---- replies ---- */

static uint32_t common_version(const struct sim *s, const struct http_head *head) {
	return head->version < s->coordinator.version ? head->version : s->coordinator.version;
}

static void reply(struct sim *s, int host, struct http_head head, int status, const void *body, size_t n) {
	struct packet *p = packet_new(SIM_COORDINATOR, host, PACKET_REPLY, NULL, sizeof head + n);
	head.status = (uint16_t)status;
	memcpy(p->data, &head, sizeof head);
	if (n > 0)
		memcpy(p->data + sizeof head, body, n);
	sim_send(s, p);
}

static size_t encode_document(const struct document *d, uint32_t version, uint8_t *out) {
	struct rv_writer w = rv_writer_of(out, NET_MAX_DOCUMENT_BYTES);
	document_encode(d, version, &w);
	RV_ASSERT(!w.failed);
	return rv_writer_len(&w);
}

/* Encodes the document of a host's member into doc_bytes. Returns its size; 0: there is none. */
static size_t make_document(struct sim *s, int host, uint32_t version) {
	struct core *core = s->coordinator.core;
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	const int slot = core_find_key(core, key);
	if (slot < 0 || !core_document_of(core, (uint32_t)slot, s->doc))
		return 0;
	s->coordinator.own =
		s->doc->n_rows > 1 || core_here(core) > NET_MAX_ROW || s->opt.leases || s->opt.audit_chunks > 0;
	return encode_document(s->doc, version, s->doc_bytes);
}

/* As coordinator/service/delivery.c: a member that has the latest one that it was sent waits for
 * one that says something else. */
static bool says_the_same(struct sim *s, int host, uint64_t after, size_t n) {
	enum { SEQ_AT = 8 + NET_RUN_ID_BYTES, REST_AT = SEQ_AT + 8 };
	struct sim_sent *sent = &s->coordinator.sent[host];
	const struct rv_hash hash = rv_hash_of(s->doc_bytes + REST_AT, n - REST_AT);
	const uint64_t seq = core_document(s->coordinator.core)->seq;
	bool same = sent->seq != 0 && after == sent->seq && rv_hash_equal(&hash, &sent->hash);
	sent->compared_seq = seq;
	if (same)
		return true;
	sent->seq = seq;
	sent->hash = hash;
	return false;
}

static bool may_have_news(const struct sim *s, int host) {
	const struct sim_poll *poll = &s->coordinator.polls[host];
	const struct sim_sent *sent = &s->coordinator.sent[host];
	const uint64_t seq = core_document(s->coordinator.core)->seq;
	if (poll->head.after == UINT64_MAX)
		return true;
	return seq > (sent->seq != 0 && sent->seq == poll->head.after ? sent->compared_seq : poll->head.after);
}

/* Answers with the member's document; false: it has no news. */
static bool answer_poll(struct sim *s, int host) {
	struct sim_coordinator *c = &s->coordinator;
	struct sim_poll *poll = &c->polls[host];
	const uint32_t version = common_version(s, &poll->head);
	size_t n = make_document(s, host, CONTROL_VERSION);
	if (n == 0 || (c->own && says_the_same(s, host, poll->head.after, n)))
		return false;
	if (!c->own)
		c->sent[host].seq = 0;
	oracle_document(s, host, s->doc_bytes, n, c->own);
	if (version != CONTROL_VERSION || strangers_misled(s, host))
		n = make_document(s, host, version);
	if (strangers_change(s, host, s->doc))
		n = encode_document(s->doc, version, s->doc_bytes);
	poll->waiting = false;
	reply(s, host, poll->head, STATUS_OK, s->doc_bytes, n);
	return true;
}

static void answer_polls(struct sim *s) {
	struct sim_coordinator *c = &s->coordinator;
	for (int h = 0; h < s->opt.n_workers; h++) {
		struct sim_poll *poll = &c->polls[h];
		if (!poll->waiting || (may_have_news(s, h) && answer_poll(s, h)) || s->now_us < poll->until_us)
			continue;
		poll->waiting = false;
		reply(s, h, poll->head, STATUS_NONE, NULL, 0);
	}
}

/* A member is told its number once everything so far is durable. */
static void answer_joins(struct sim *s) {
	struct sim_coordinator *c = &s->coordinator;
	if (c->writing)
		return;
	for (int h = 0; h < s->opt.n_workers; h++) {
		if (c->joins[h].id == 0)
			continue;
		struct join_reply *m = sim_alloc(sizeof *m);
		m->member = c->join_members[h];
		m->run_hash = s->run_hash;
		uint8_t bytes[256];
		struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
		join_reply_encode(m, common_version(s, &c->joins[h]), &w);
		RV_ASSERT(!w.failed);
		oracle_member(s, h, m->member);
		reply(s, h, c->joins[h], STATUS_OK, bytes, rv_writer_len(&w));
		c->joins[h].id = 0;
		free(m);
	}
}

static void timer(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	struct sim_coordinator *c = &s->coordinator;
	if (s->now_us < c->timer_us)
		return;
	c->timer_us = INT64_MAX;
	if (core_deadline_us(c->core) <= s->now_us)
		core_tick(c->core, s->now_us);
	coordinator_turn(s);
}

static int64_t next_deadline_us(const struct sim *s) {
	const struct sim_coordinator *c = &s->coordinator;
	int64_t at = core_deadline_us(c->core);
	for (int h = 0; h < s->opt.n_workers; h++)
		if (c->polls[h].waiting && c->polls[h].until_us < at)
			at = c->polls[h].until_us;
	return at;
}

/* An event of no member counts as host 0's. */
static int event_host(const struct sim *s, uint32_t member) {
	const int host = oracle_host_of(s, member);
	return host != SIM_NOBODY ? host : 0;
}

static void hear_events(struct sim *s) {
	struct core_event ev;
	while (core_next_event(s->coordinator.core, &ev)) {
		s->events[ev.type][event_host(s, ev.member)]++;
		audits_event(s, &ev);
		scores_event(s, &ev);
		if (ev.type == CORE_EVENT_DIVERGED)
			oracle_named(s, ev.member);
		lies_judge(s, &ev);
		oracle_names(s, &ev);
		if (ev.type == CORE_EVENT_APART)
			sim_say(s, SIM_COORDINATOR, "members %u and %u do not reach each other", ev.other, ev.member);
		if (ev.type == CORE_EVENT_SUSPECTED)
			sim_say(s, SIM_COORDINATOR, "member %u is suspected in attempt %u", ev.member, ev.attempt);
		if (ev.type == CORE_EVENT_AT_ODDS)
			sim_say(s, SIM_COORDINATOR, "member %u accuses member %u alone", ev.member, ev.other);
		if (ev.type == CORE_EVENT_EXCLUDED)
			sim_say(s, SIM_COORDINATOR, "member %u is left out up to round %llu", ev.member,
					(unsigned long long)ev.round);
	}
}

void coordinator_turn(struct sim *s) {
	struct sim_coordinator *c = &s->coordinator;
	hear_events(s);
	audits_watch(s);
	scores_watch(s);
	write_next_record(s);
	answer_joins(s);
	answer_polls(s);
	int64_t at = next_deadline_us(s);
	if (at < c->timer_us && at != INT64_MAX) {
		c->timer_us = at > s->now_us ? at : s->now_us + 1;
		sim_at(s, c->timer_us, SIM_COORDINATOR, c->life, timer, NULL);
	}
}

/* ---- the operator ---- */

static void operator_looks(struct sim *s, int host, void *arg) {
	enum { EVERY_US = 15 * SIM_S };
	(void)host;
	(void)arg;
	struct core *core = s->coordinator.core;
	struct core_kept kept;
	struct rv_errtext et = {0};
	sim_at(s, s->now_us + EVERY_US, SIM_NOBODY, 0, operator_looks, NULL);
	if (core == NULL || s->frozen_until_us[SIM_COORDINATOR] > s->now_us)
		return;
	core_kept(core, &kept);
	if (kept.state != CORE_STATE_LOST)
		return;
	uint64_t to_round = kept.has_best ? kept.best_round : 0;
	enum rv_err e = core_rollback(core, s->now_us, to_round, false, &et);
	sim_say(s, SIM_COORDINATOR, "the operator takes back all rounds from %llu on: %s", (unsigned long long)to_round,
			e == RV_OK ? "done" : et.text);
	coordinator_turn(s);
}

void operator_start(struct sim *s) {
	operator_looks(s, SIM_NOBODY, NULL);
}

static void insist(struct sim *s, int host, void *arg) {
	enum { AGAIN_US = SIM_S / 2 };
	struct core *core = s->coordinator.core;
	struct rv_errtext et = {0};
	(void)host;
	(void)arg;
	if (s->oracle.term >= s->term_wanted)
		return;
	if (core != NULL && s->frozen_until_us[SIM_COORDINATOR] <= s->now_us) {
		enum rv_err e = core_rollback(core, s->now_us, s->rollback_to, true, &et);
		sim_say(s, SIM_COORDINATOR, "the operator takes back all rounds from %llu on: %s",
				(unsigned long long)s->rollback_to, e == RV_OK ? "done" : et.text);
		coordinator_turn(s);
	}
	sim_at(s, s->now_us + AGAIN_US, SIM_NOBODY, 0, insist, NULL);
}

void operator_takes_back(struct sim *s, uint64_t rounds) {
	s->term_wanted = s->oracle.term + 1;
	s->rollback_to = s->oracle.n_committed - rounds;
	insist(s, SIM_NOBODY, NULL);
}

/* ---- requests ---- */

static void on_join(struct sim *s, int host, const struct http_head *head, const uint8_t *body, size_t n) {
	struct sim_coordinator *c = &s->coordinator;
	struct join_request rq;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	enum rv_err e = join_request_decode(body, n, &rq, &et);
	if (e == RV_OK)
		e = core_join(c->core, s->now_us, key, &rq, true, &c->join_members[host], &et);
	if (e == RV_E_BUSY) {
		reply(s, host, *head, STATUS_BUSY, NULL, 0);
		return;
	}
	if (e == RV_E_AUTH && s->banned[host]) { /* while it started again */
		reply(s, host, *head, STATUS_FORBIDDEN, NULL, 0);
		return;
	}
	if (e != RV_OK) {
		sim_fail(s, "w%d: join refused: %s", host, et.text);
		return;
	}
	c->joins[host] = *head;
}

static void step(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	s->coordinator.steps = false;
	core_tick(s->coordinator.core, s->now_us);
	coordinator_turn(s);
}

/* As coordinator/service: reports of many members are looked at together. */
static enum rv_err take_report(struct sim *s, const uint8_t *key, const struct report *rep, struct rv_errtext *et) {
	enum { US_EACH = 10 };
	struct sim_coordinator *c = &s->coordinator;
	const int here = core_here(c->core);
	if (here <= NET_MAX_ROW)
		return core_report(c->core, s->now_us, key, rep, et);
	if (!c->steps)
		sim_at(s, s->now_us + here * US_EACH, SIM_COORDINATOR, c->life, step, NULL);
	c->steps = true;
	return core_take_report(c->core, s->now_us, key, rep, et);
}

static void on_report(struct sim *s, int host, const struct http_head *head, const uint8_t *body, size_t n) {
	struct report rep;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	enum rv_err e = report_decode(body, n, &rep, &et);
	if (e == RV_OK && rep.version > s->coordinator.version) {
		reply(s, host, *head, STATUS_CONFLICT, NULL, 0);
		return;
	}
	if (e == RV_OK)
		candidates_confirm(s, host, &rep);
	if (e == RV_OK)
		e = take_report(s, key, &rep, &et);
	if (e == RV_E_AUTH && s->banned[host]) {
		reply(s, host, *head, STATUS_FORBIDDEN, NULL, 0);
		return;
	}
	if (e == RV_E_INVALID && liars_forge(s, host)) {
		s->stats.refused_reports++;
		reply(s, host, *head, STATUS_BUSY, NULL, 0); /* an honest client ends by 400; this one goes on */
		return;
	}
	if (e != RV_OK)
		sim_fail(s, "w%d: report refused: %s", host, et.text);
	else
		reply(s, host, *head, STATUS_NONE, NULL, 0);
	forms_report(s, host, &rep);
	lines_report(s, host, &rep);
	given_vote(s, host, &rep);
}

static void on_document(struct sim *s, int host, const struct http_head *head) {
	uint8_t key[NET_KEY_BYTES];
	s->coordinator.polls[host] =
		(struct sim_poll){.waiting = true, .head = *head, .until_us = s->now_us + POLL_HOLD_US};
	sim_key_of(s, host, key);
	core_listens(s->coordinator.core, s->now_us, key, true);
}

static void on_evidence(struct sim *s, int host, const struct http_head *head, const uint8_t *body, size_t n) {
	struct evidence e;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	enum rv_err err = evidence_decode(body, n, s->run_id, &e, &et);
	if (err == RV_OK)
		given_shown(s, host, &e);
	if (err == RV_OK)
		err = core_testify(s->coordinator.core, s->now_us, key, &e, &et);
	/* What it kept of a round that was taken back, and in which it did not vote again, is void. */
	const bool is_void = e.has_sums && s->oracle.term > 0;
	if (err != RV_OK && !is_void && !lies_vote(s, host) && host != s->withholder && host != s->was_withholder &&
		!s->banned[host] && !audits_banished(s, host))
		sim_fail(s, "w%d: evidence refused: %s", host, et.text);
	reply(s, host, *head, STATUS_NONE, NULL, 0);
}

/* As coordinator/service/pair_tickets.c. */
static void on_pairs(struct sim *s, int host, const struct http_head *head, const uint8_t *body, size_t n) {
	const struct document *d = core_document(s->coordinator.core);
	struct pair_request rq;
	struct pair_reply out = {.term = d->term, .round = d->round};
	struct pair_end own = {.member = s->oracle.member_of[host]};
	uint8_t bytes[PAIR_REPLY_MAX_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	sim_key_of(s, host, own.key);
	if (pair_request_decode(body, n, &rq, NULL) != RV_OK) {
		sim_fail(s, "w%d: asks for pair tickets, and cannot be understood", host);
		return;
	}
	for (int i = 0; i < rq.n; i++) {
		int slot = core_find(s->coordinator.core, rq.peers[i]);
		if (slot < 0 || rq.peers[i] == own.member)
			continue;
		const struct core_member_view v = core_view(s->coordinator.core, (uint32_t)slot);
		struct pair_end peer = {.member = v.member};
		if (!v.alive)
			continue;
		memcpy(peer.key, v.key, sizeof peer.key);
		out.tickets[out.n].peer = peer.member;
		pair_ticket_sign(&s->run_identity, s->run_id, out.term, out.round, &own, &peer, out.tickets[out.n++].signature);
	}
	pair_reply_encode(&out, rq.version, &w);
	RV_ASSERT(!w.failed);
	reply(s, host, *head, STATUS_OK, bytes, rv_writer_len(&w));
}

/* As coordinator/service/joins.c: a member that has given up its slot comes back under its number.
 * Returns true if its request can be taken; else it is refused, up to when that is durable. */
static bool recall(struct sim *s, int host, const struct http_head *head) {
	struct sim_coordinator *c = &s->coordinator;
	struct core_record rec;
	bool found = false;
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	if (head->what == HTTP_CONFIG || core_find_key(c->core, key) >= 0)
		return true;
	enum rv_err e = c->store.store.ops->away(&c->store.store, key, 0, &rec, &found, NULL);
	RV_ASSERT(e == RV_OK);
	if (found && !rec.banned)
		e = core_return(c->core, s->now_us, &rec, NULL);
	if (!found || (!rec.banned && e == RV_OK && head->what == HTTP_JOIN))
		return true;
	reply(s, host, *head, rec.banned ? STATUS_FORBIDDEN : STATUS_BUSY, NULL, 0);
	return false;
}

static void take(struct sim *s, int host, const struct http_head *head, const uint8_t *body, size_t n) {
	switch ((enum http_what)head->what) {
	case HTTP_CONFIG:
		reply(s, host, *head, STATUS_OK, "", 1);
		break;
	case HTTP_JOIN:
		on_join(s, host, head, body, n);
		break;
	case HTTP_REPORT:
		on_report(s, host, head, body, n);
		break;
	case HTTP_EVIDENCE:
		on_evidence(s, host, head, body, n);
		break;
	case HTTP_PAIRS:
		on_pairs(s, host, head, body, n);
		break;
	default:
		on_document(s, host, head);
	}
}

void coordinator_receive(struct sim *s, const struct packet *p) {
	struct http_head head;
	memcpy(&head, p->data, sizeof head);
	const uint8_t *body = p->data + sizeof head;
	size_t n = p->n - sizeof head;
	if (audits_banished(s, p->src))
		return;
	if (s->coordinator.core == NULL) { /* connection refused */
		if (!s->coordinator.dark)
			hang_up_on(s, p->src, &head);
		return;
	}
	if (recall(s, p->src, &head))
		take(s, p->src, &head, body, n);
	coordinator_turn(s);
}

void coordinator_release(struct sim_coordinator *c) {
	free(c->memory);
	memory_store_release(&c->store);
}
