/* sim_worker.c: a worker's turns, its HTTP client, and what its session core says: the core's
 * control. */
#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports ---- */

/* What a worker takes its line for: not quite what it is, and another time something else. */
static uint64_t measured(const struct sim *s, int host, double bytes_per_s) {
	enum { EVERY_US = 10 * SIM_S };
	float off = sim_noise(s->opt.seed, (uint64_t)host, (uint64_t)(s->now_us / EVERY_US));
	return off < -0.8f ? 0 : (uint64_t)(bytes_per_s * (1 + 0.5 * (double)off));
}

/* Accuses one of those that it deals with, in each attempt the next, and keeps its vote to
 * itself. */
static void accuse_one(const struct sim_worker *w, struct report *rep) {
	const int n = w->reduce != NULL ? grid_peers(w->reduce) : 0;
	for (int k = 0; k < n && (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED); k++) {
		const int peer = (int)((rep->round + rep->attempt + (uint64_t)k) % (uint64_t)n);
		if (grid_member(w->reduce, peer) == w->sim->oracle.member_of[w->host])
			continue;
		rep->phase = WORKER_REDUCING;
		rep->n_measured = 0;
		rep->stands_out = 0;
		rep->n_suspects = 1;
		rep->suspects[0] = grid_place(w->reduce, peer);
		return;
	}
}

/* Returns true if it keeps a link with the member from coming up. */
static bool refuses(const struct sim_worker *w, uint32_t member) {
	const int peer = oracle_host_of(w->sim, member);
	return w->host < SIM_ORDINARY && peer >= 0 && peer < SIM_ORDINARY && w->sim->refuses[w->host] >> peer & 1;
}

static void send_report(void *ctx, struct report *rep) {
	struct sim_worker *w = ctx;
	const struct sim *s = w->sim;
	rep->relay = reach_core_relay(w->reach.core);
	candidates_report(w, rep);
	double cap = mesh_cap(s, w->host), up = s->net.up[w->host].bytes_per_s;
	rep->up_bytes_per_s = measured(s, w->host, cap > 0 && cap < up ? cap : up);
	rep->down_bytes_per_s = measured(s, w->host, s->net.down[w->host].bytes_per_s);
	receipts_report(&w->receipts, rep);
	uint32_t members[NET_MAX_PEERS];
	for (int i = 0, n = peers_list(w->mesh, members); i < n; i++)
		if (!refuses(w, members[i]))
			report_add_path(rep, members[i], (uint8_t)peers_way(w->mesh, members[i]).path);
	again_report(w, rep);
	audits_report(w->sim, w->host, rep);
	scores_report(w->sim, w->host, rep);
	if (w->host == s->accuser)
		accuse_one(w, rep);
	lies_report(w, rep);
	liars_report(s, w->host, rep);
	liars_sign(s, w->host, rep);
	control_client_report(w->control, rep);
}

static bool was_heard(void *ctx) {
	return control_client_reported(((struct sim_worker *)ctx)->control);
}

/* ---- what the session core says ---- */

static void tell(void *ctx, const struct session_event *e) {
	struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	switch (e->type) {
	case SESSION_LOGS_WRONG_STATE:
		oracle_wrong_state(s, w->host, e->text);
		break;
	case SESSION_LOGS_REFUSED:
		if (strangers_misled(s, w->host))
			break;
		sim_fail(s, "w%d: document refused: %s", w->host, e->text);
		break;
	case SESSION_LOGS_OLD_STORE:
		sim_fail(s, "w%d: an old document: %s", w->host, e->text);
		break;
	case SESSION_LOGS_FULL_HASH:
		oracle_full_hash(s, w->host, e->round, e->hash);
		break;
	case SESSION_LOGS_STANDSTILL:
		s->stats.standstills++;
		break;
	case SESSION_LOGS_DONE:
		oracle_finished(s, w->host);
		w->finished = true;
		break;
	case SESSION_LOGS_FETCHING:
		sim_say(s, w->host, "fetches %s %llu", e->id->kind == STATE_KIND_SNAPSHOT ? "snapshot" : "log",
				(unsigned long long)e->round);
		break;
	default:
		sim_say(s, w->host, "says %d: %s", e->type, e->text != NULL ? e->text : "");
	}
}

const struct session_control_ops sim_control_ops = {.report = send_report, .reported = was_heard, .log = tell};

/* ---- turns ---- */

static void timer(struct sim *s, int host, void *arg) {
	(void)arg;
	struct sim_worker *w = &s->workers[host];
	if (s->now_us < w->timer_us)
		return;
	w->timer_us = INT64_MAX;
	if (w->reduce != NULL && grid_deadline_us(w->reduce) <= s->now_us)
		grid_tick(w->reduce, s->now_us);
	worker_turn(s, host);
}

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

static int64_t session_deadline_us(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	int64_t at = session_core_deadline_us(w->session, s->now_us);
	at = earlier(at, w->reduce != NULL ? grid_deadline_us(w->reduce) : INT64_MAX);
	at = earlier(at, fetch_deadline_us(w));
	at = earlier(at, reach_due_us(w));
	return earlier(at, peers_deadline_us(w->mesh));
}

static void set_timer(struct sim *s, int host) {
	enum { MANY = 500 };
	struct sim_worker *w = &s->workers[host];
	int64_t at = control_client_deadline_us(w->control);
	if (w->session != NULL)
		at = earlier(at, session_deadline_us(s, host));
	w->spins = at <= s->now_us ? w->spins + 1 : 0;
	if (w->spins == MANY)
		sim_fail(s, "w%d: a deadline of its cores is past, and stays so", host);
	if (at >= w->timer_us)
		return;
	w->timer_us = at > s->now_us ? at : s->now_us + 1;
	sim_at(s, w->timer_us, host, w->life, timer, NULL);
}

static void take_turn(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct session_reduce seen = peers_seen(w);
	session_core_turn(w->session, s->now_us, &seen);
}

/* The all-reduce of a worker that is alone is done as soon as it begins. */
static bool has_news(const struct sim_worker *w, const struct session_reduce *before) {
	const struct session_reduce now = peers_seen(w);
	return now.complete != before->complete || !grid_suspects_equal(&now.suspects, &before->suspects) ||
		   now.attempt != before->attempt;
}

static void take_turns(struct sim *s, int host) {
	enum { MANY = 100 };
	struct sim_worker *w = &s->workers[host];
	struct session_reduce before;
	int turns = 0;
	mesh_handle(s, host);
	reach_handle(s, host);
	do {
		before = peers_seen(w);
		take_turn(s, host);
		if (++turns == MANY)
			sim_fail(s, "w%d: its session turns without end", host);
	} while (!s->failed && has_news(w, &before));
	const struct document *d = round_document(w->core);
	donor_set_round(w->donor, d != NULL ? d->round : 0, w->reduce != NULL && !grid_done(w->reduce));
	peers_keep_paths(w->mesh, w->reduce != NULL && !grid_done(w->reduce));
	peers_pump(w->mesh, s->now_us);
	take_turn(s, host);
}

void worker_turn(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->life == 0 || w->ending)
		return;
	if (w->ended_banned) {
		worker_crash(s, host, false);
		return;
	}
	if (w->session != NULL)
		take_turns(s, host);
	if (w->session != NULL)
		liars_show(s, host);
	if (w->session != NULL)
		sums_show(s, host);
	if (w->session != NULL && session_core_phase(w->session) == SESSION_ENDED) {
		worker_end(s, host);
		return;
	}
	control_client_tick(w->control, s->now_us);
	set_timer(s, host);
}

static void late_turn(struct sim *s, int host, void *arg) {
	(void)arg;
	s->workers[host].turns = false;
	worker_turn(s, host);
}

/* A worker of a large universe looks at its connections every now and then, as a busy machine. */
void worker_turn_soon(struct sim *s, int host) {
	enum { LOOP_US = 100 * SIM_MS };
	struct sim_worker *w = &s->workers[host];
	if (s->opt.n_workers <= SIM_ORDINARY) {
		worker_turn(s, host);
	} else if (w->life != 0 && !w->turns) {
		w->turns = true;
		sim_at(s, s->now_us + LOOP_US, host, w->life, late_turn, NULL);
	}
}

void worker_receive(struct sim *s, const struct packet *p) {
	if (p->kind == PACKET_REPLY) {
		http_receive(s, p->dst, p);
		worker_turn(s, p->dst);
		return;
	}
	pipe_receive(s, p);
	worker_turn_soon(s, p->dst);
}
