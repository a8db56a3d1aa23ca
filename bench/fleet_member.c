/* fleet_member.c: see fleet_member.h. */
#include "bench/fleet_member.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/run_silence.h"
#include "net/control/signed_roots.h"
#include "outer/global.h"
#include "worker/join/document_opener.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TX_BYTES_A_ROUND = 1 << 20, LINE_BYTES_PER_S = 12500000, LISTEN_PORT = 20000 };

struct fleet_member {
	const struct invite *invite;
	const struct fleet_plan *plan;
	uint32_t index, number;
	struct identity identity;
	struct fleet_lines *lines;
	struct run_trust trust;
	struct document_opener documents;
	struct event *timer;
	struct rv_rng rng;
	struct run_config run;
	struct global_config global;
	bool joined;
	/* What it does, as of the last document. */
	bool follows;
	struct report now;
	int64_t until_us; /* end of its training or averaging; INT64_MAX: none under way */
	int64_t sent_us;
	struct fleet_traffic before, counted; /* at the plan's first round; since */
	uint64_t client[];                    /* control_client_size() bytes */
};

static struct control_client *client_of(struct fleet_member *m) {
	return (struct control_client *)m->client;
}

static int64_t draw(struct fleet_member *m, const struct fleet_pace *p) {
	return rv_clock_monotonic_us() + p->least_us +
		   (p->more_us > 0 ? (int64_t)rv_rng_below(&m->rng, (uint64_t)p->more_us) : 0);
}

/* ---- the client's table ---- */

static int64_t now_us(void *ctx) {
	(void)ctx;
	return rv_clock_monotonic_us();
}

static enum rv_err open_document(void *member, bool is_patch, const uint8_t *in, size_t n_in, const uint8_t **bytes,
								 size_t *n, struct rv_errtext *et) {
	struct fleet_member *m = member;
	memcpy(m->documents.serving_key, run_trust_key(&m->trust), NET_KEY_BYTES);
	return document_opener_open(&m->documents, is_patch, in, n_in, bytes, n, et);
}

static enum rv_err start_request(void *member, const struct http_request *rq, uint32_t *id, struct rv_errtext *et) {
	return fleet_lines_start(((struct fleet_member *)member)->lines, rq, id, et);
}

static void cancel_request(void *member, uint32_t id) {
	fleet_lines_cancel(((struct fleet_member *)member)->lines, id);
}

/* Ticks from the event loop, never from inside a request's end. */
static void wake(struct fleet_member *m) {
	event_active(m->timer, EV_TIMEOUT, 0);
}

/* ---- reports ---- */

static struct rv_hash hash_of(const char *what, uint64_t round) {
	struct rv_hasher h = rv_hasher_of(what);
	rv_hash_update(&h, &round, sizeof round);
	return rv_hash_final(&h);
}

static void send_report(struct fleet_member *m) {
	struct report *r = &m->now;
	bool owner = r->phase == WORKER_VOTED;
	struct report sent = *r;
	r->seq++;
	sent.seq = r->seq;
	if (!owner)
		sent.n_measured = 0;
	const struct seal_ops ops = seal_ed25519(&m->identity);
	report_sign(&sent, m->invite->run_id, &ops);
	m->sent_us = rv_clock_monotonic_us();
	control_client_report(client_of(m), &sent);
}

static void enter_phase(struct fleet_member *m, enum worker_phase phase) {
	struct report *r = &m->now;
	r->phase = (uint8_t)phase;
	bool reduces = phase == WORKER_REDUCING || phase == WORKER_VOTED;
	r->attempt = reduces ? r->attempt : 0;
	r->commitment.n = phase == WORKER_READY || reduces;
	r->commitment.roots[0] = (struct commitment_root){.root = hash_of("fleet contribution", r->round)};
	r->digest = phase == WORKER_VOTED ? hash_of("fleet mean", r->round) : (struct rv_hash){0};
	send_report(m);
}

/* All that a report says apart from the round. */
static void fill_constants(struct fleet_member *m) {
	struct report *r = &m->now;
	r->boot = (uint64_t)rv_clock_wall_us();
	r->tokens = (uint64_t)(m->run.steps_per_round * m->run.batch * m->run.context);
	r->up_bytes_per_s = r->down_bytes_per_s = LINE_BYTES_PER_S;
	r->loss = 3;
	r->n_candidates = 1;
	r->candidates[0].kind = CANDIDATE_SEEN;
	(void)snprintf(r->candidates[0].addr, sizeof r->candidates[0].addr, ":%u", LISTEN_PORT + m->index);
}

/* ---- documents ---- */

static void count_traffic(struct fleet_member *m, uint64_t round) {
	struct fleet_traffic t = fleet_lines_traffic(m->lines);
	if (round <= m->plan->first_round)
		m->before = t;
	if (round <= m->plan->end_round)
		m->counted = t;
}

static void begin_round(struct fleet_member *m, const struct document *d) {
	struct report *r = &m->now;
	count_traffic(m, d->round);
	r->term = d->term;
	r->round = r->proven_round = d->round;
	r->chain = r->proven_chain = d->chain;
	r->n_chunks = global_round_chunks(&m->global, d->round).n_chunks;
	r->inner_step += (uint64_t)m->run.steps_per_round;
	r->tx_bytes += TX_BYTES_A_ROUND;
	r->rx_bytes += TX_BYTES_A_ROUND;
	if (d->round > 0 && d->round % (uint64_t)m->run.snapshot_every == 0) {
		r->full_round = d->round;
		r->full_hash = hash_of("fleet state", d->round);
	}
	if (d->phase == RUN_DONE) {
		m->until_us = INT64_MAX;
		enter_phase(m, WORKER_LEAVING);
		return;
	}
	m->until_us = draw(m, &m->plan->train);
	enter_phase(m, WORKER_TRAINING);
}

/* Takes the others of the roster as linked, and measures their contributions. */
static void meet_roster(struct fleet_member *m, const struct document *d) {
	struct report *r = &m->now;
	r->n_paths = 0;
	for (int i = 0; i < d->n_members; i++)
		if (d->members[i].member != m->number)
			report_add_path(r, d->members[i].member, d->members[i].member < m->number ? PATH_DIALED : PATH_ACCEPTED);
	r->n_measured = d->n_members;
	for (int i = 0; i < d->n_members; i++)
		r->measured[i] = (struct report_measured){.norm2 = 1, .dot = 1};
	r->mean2 = 1;
}

static void on_document(void *member, const struct document *d) {
	struct fleet_member *m = member;
	struct report *r = &m->now;
	bool new_round = !m->follows || d->round != r->round || d->term != r->term;
	m->follows = true;
	if (new_round)
		begin_round(m, d);
	if (d->phase == RUN_REDUCE && document_find(d, m->number) >= 0 && d->attempt != r->attempt) {
		meet_roster(m, d);
		r->attempt = d->attempt;
		m->until_us = draw(m, &m->plan->average);
		enter_phase(m, WORKER_REDUCING);
	} else if (d->phase == RUN_OPEN && r->attempt != 0) { /* a roster of none */
		enter_phase(m, WORKER_READY);
	}
	wake(m);
}

/* ---- the client's other news ---- */

static void on_joined(void *member, const struct join_reply *reply) {
	struct fleet_member *m = member;
	struct rv_errtext et = {0};
	m->number = reply->member;
	enum rv_err e = run_config_parse(&m->run, "the run", reply->config, &et);
	if (e == RV_OK)
		e = global_config_of_run(&m->run, &reply->run_hash, &m->global, &et);
	if (e != RV_OK) {
		(void)fprintf(stderr, "bench_fleet: %s\n", et.text);
		exit(1);
	}
	m->joined = true;
	m->plan->on_joined();
	fill_constants(m);
	control_client_follow(client_of(m));
	wake(m);
}

static void on_refused(void *member, enum rv_err e, const char *text) {
	(void)member, (void)e;
	(void)fprintf(stderr, "bench_fleet: refused: %s\n", text);
	exit(1);
}

static void on_away(void *member, bool away, const char *text) {
	const struct fleet_member *m = member;
	if (away)
		(void)fprintf(stderr, "bench_fleet: member %u: %s\n", m->number, text);
}

static void on_older(void *member, const struct document *d, uint64_t seen) {
	(void)member, (void)d, (void)seen;
}

static void on_notice(void *member, const struct notice *n) {
	(void)member, (void)n;
}

static void on_probes(void *member, const struct probes *p) {
	(void)member, (void)p;
}

/* ---- time ---- */

static void advance(struct fleet_member *m, int64_t at_us) {
	if (at_us >= m->until_us) {
		m->until_us = INT64_MAX;
		enter_phase(m, m->now.phase == WORKER_REDUCING ? WORKER_VOTED : WORKER_READY);
	}
	if (m->follows && at_us >= m->sent_us + run_silence_of(&m->run).report * RV_US_PER_MS)
		send_report(m);
}

static int64_t next_us(struct fleet_member *m) {
	int64_t at = control_client_deadline_us(client_of(m));
	at = m->until_us < at ? m->until_us : at;
	int64_t beat = m->sent_us + run_silence_of(&m->run).report * RV_US_PER_MS;
	return m->follows && beat < at ? beat : at;
}

static void on_timer(evutil_socket_t fd, short what, void *member) {
	struct fleet_member *m = member;
	(void)fd, (void)what;
	int64_t at_us = rv_clock_monotonic_us();
	if (m->joined)
		advance(m, at_us);
	control_client_tick(client_of(m), at_us);
	int64_t in_us = m->joined ? next_us(m) - at_us : control_client_deadline_us(client_of(m)) - at_us;
	in_us = in_us < 0 ? 0 : in_us < RV_US_PER_S ? in_us : RV_US_PER_S;
	const struct timeval tv = {.tv_sec = in_us / RV_US_PER_S, .tv_usec = in_us % RV_US_PER_S};
	(void)event_add(m->timer, &tv);
}

/* ---- life ---- */

static void start_client(struct fleet_member *m) {
	const struct control_client_config cfg = {
		.ops = {.ctx = m, .start = start_request, .cancel = cancel_request, .now_us = now_us, .open = open_document},
		.owner = {.ctx = m,
				  .on_joined = on_joined,
				  .on_document = on_document,
				  .on_older = on_older,
				  .on_notice = on_notice,
				  .on_probes = on_probes,
				  .on_refused = on_refused,
				  .on_away = on_away},
		.version = control_version(),
		.seed = m->plan->seed + m->index};
	struct join_request rq = {.protocol = control_version(), .protocol_min = CONTROL_VERSION_MIN, .has_token = true};
	memcpy(rq.run_id, m->invite->run_id, sizeof rq.run_id);
	memcpy(rq.token, m->invite->token, sizeof rq.token);
	(void)snprintf(rq.name, sizeof rq.name, "fake%u", m->index);
	(void)snprintf(rq.software, sizeof rq.software, "bench_fleet");
	(void)control_client_init(m->client, &cfg);
	control_client_join(client_of(m), &rq);
}

enum rv_err fleet_member_new(struct event_base *base, const struct invite *invite, const struct fleet_plan *plan,
							 uint32_t index, struct fleet_member **out, struct rv_errtext *et) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {0};
	struct fleet_member *m = calloc(1, sizeof *m + control_client_size());
	if (m == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a member");
	m->invite = invite;
	m->plan = plan;
	m->index = index;
	m->until_us = INT64_MAX;
	m->trust = run_trust_of(invite->run_id, invite->key);
	m->rng = rv_rng_of(plan->seed, index);
	memcpy(seed, invite->token, sizeof invite->token);
	identity_of_seed(seed, &m->identity);
	m->timer = evtimer_new(base, on_timer, m);
	enum rv_err e = m->timer != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a member's timer");
	if (e == RV_OK)
		e = fleet_lines_new(base, &invite->coordinator, &m->trust, &m->identity, &m->lines, et);
	if (e != RV_OK) {
		fleet_member_free(m);
		return e;
	}
	start_client(m);
	wake(m);
	*out = m;
	return RV_OK;
}

void fleet_member_free(struct fleet_member *m) {
	if (m == NULL)
		return;
	if (m->timer != NULL)
		event_free(m->timer);
	fleet_lines_free(m->lines);
	document_opener_release(&m->documents);
	identity_release(&m->identity);
	free(m);
}

struct fleet_traffic fleet_member_traffic(const struct fleet_member *m) {
	const struct fleet_traffic *a = &m->before, *b = &m->counted;
	return (struct fleet_traffic){.tx_bytes = b->tx_bytes - a->tx_bytes,
								  .rx_bytes = b->rx_bytes - a->rx_bytes,
								  .requests = b->requests - a->requests,
								  .documents = b->documents - a->documents,
								  .document_bytes = b->document_bytes - a->document_bytes,
								  .faults = b->faults - a->faults};
}
