/* sim_worker.c: the platform around worker/round: a process that starts, joins, polls, reports, acts, and dies. */
#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_ACTIONS = 1000, RETRY_US = SIM_S, POLL_TIMEOUT_US = 6 * SIM_S, HEARTBEAT_US = SIM_S };

static const int64_t WALL_US = 1700000000 * (int64_t)SIM_S; /* the wall clocks when it all began */

/* ---- HTTP client ---- */

static void request(struct sim *s, int host, struct http_head head, const void *body, size_t n) {
	uint8_t bytes[sizeof head + NET_MAX_REPORT_BYTES];
	RV_ASSERT(n <= NET_MAX_REPORT_BYTES);
	head.life = s->workers[host].life;
	head.version = head.version > 0 ? head.version : s->workers[host].version;
	memcpy(bytes, &head, sizeof head);
	if (n > 0)
		memcpy(bytes + sizeof head, body, n);
	sim_send(s, packet_new(host, SIM_COORDINATOR, PACKET_REQUEST, bytes, sizeof head + n));
}

static void ask_to_join(struct sim *s, int host, void *arg) {
	(void)arg;
	struct sim_worker *w = &s->workers[host];
	if (w->joined)
		return;
	struct join_request rq = {
		.protocol = w->version, .protocol_min = CONTROL_VERSION_MIN, .has_token = true, .software = "simulator"};
	rq.token[0] = (uint8_t)(host + 1);
	(void)snprintf(rq.name, sizeof rq.name, "w%d", host);
	uint8_t bytes[256];
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	join_request_encode(&rq, &out);
	RV_ASSERT(!out.failed);
	request(s, host, (struct http_head){.what = HTTP_JOIN}, bytes, rv_writer_len(&out));
	sim_at(s, s->now_us + RETRY_US, host, w->life, ask_to_join, NULL);
}

/* What a worker takes its line for: not quite what it is, and another time something else. */
static uint64_t measured(const struct sim *s, int host, double bytes_per_s) {
	enum { EVERY_US = 10 * SIM_S };
	float off = sim_noise(s->opt.seed, (uint64_t)host, (uint64_t)(s->now_us / EVERY_US));
	return off < -0.8f ? 0 : (uint64_t)(bytes_per_s * (1 + 0.5 * (double)off));
}

/* As in life: the first document says which version is spoken, and until then nothing is reported; the core's next
 * report tells all. */
static void send_report(struct sim *s, int host, struct report *rep) {
	const struct sim_worker *w = &s->workers[host];
	if (w->spoken == 0)
		return;
	uint8_t bytes[NET_MAX_REPORT_BYTES];
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	(void)snprintf(rep->addr, sizeof rep->addr, "w%d:7000", host);
	rep->up_bytes_per_s = measured(s, host, s->net.up[host].bytes_per_s);
	rep->down_bytes_per_s = measured(s, host, s->net.down[host].bytes_per_s);
	report_encode(rep, w->spoken, &out);
	RV_ASSERT(!out.failed);
	request(s, host, (struct http_head){.what = HTTP_REPORT, .version = w->spoken}, bytes, rv_writer_len(&out));
}

static void poll_documents(struct sim *s, int host);

/* The poll that `arg` numbers is over: no answer came in time, or the coordinator is down. */
static void poll_failed(struct sim *s, int host, void *arg) {
	uint64_t number = *(uint64_t *)arg;
	free(arg);
	if (number == s->workers[host].poll)
		poll_documents(s, host);
}

static void poll_fails_at(struct sim *s, int host, int64_t at_us) {
	uint64_t *number = sim_alloc(sizeof *number);
	*number = s->workers[host].poll;
	sim_at(s, at_us, host, s->workers[host].life, poll_failed, number);
}

static void poll_documents(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct document *d = round_document(w->core);
	w->poll++;
	struct http_head head = {.what = HTTP_DOCUMENT, .poll = w->poll, .after = d != NULL ? d->seq : UINT64_MAX};
	request(s, host, head, NULL, 0);
	poll_fails_at(s, host, s->now_us + POLL_TIMEOUT_US);
}

static void on_document(struct sim *s, int host, const struct http_head *head, const uint8_t *bytes, size_t n) {
	struct sim_worker *w = &s->workers[host];
	struct rv_errtext et = {0};
	w->spoken = head->version;
	enum rv_err e = document_decode(bytes, n, s->doc, &et);
	if (e == RV_OK)
		e = round_on_document(w->core, s->now_us, s->doc, &et);
	if (e == RV_E_CORRUPT && oracle_is_wrong(s, host))
		sim_say(s, host, "%s", et.text);
	else if (e != RV_OK)
		sim_fail(s, "w%d: document refused: %s", host, et.text);
	if (head->poll == w->poll)
		poll_documents(s, host);
}

/* ---- life ---- */

/* ---- epochs ---- */

static uint64_t epoch_of(const struct sim_disk *d) {
	const struct sim_file *f = disk_find(d, FILE_EPOCH, 0);
	uint64_t epoch = 0;
	if (f != NULL)
		memcpy(&epoch, f->data, sizeof epoch);
	return epoch;
}

static void store_epoch(struct sim *s, int host, uint64_t epoch);

/* The new epoch is on disk: a new process takes over. */
static void epoch_stored(struct sim *s, int host, uint64_t epoch, bool ok) {
	if (!ok) {
		store_epoch(s, host, epoch);
		return;
	}
	worker_crash(s, host, false);
	worker_start(s, host);
}

static void store_epoch(struct sim *s, int host, uint64_t epoch) {
	disk_write(s, host, FILE_EPOCH, 0, &epoch, sizeof epoch, epoch_stored, epoch);
}

static void roll_back(struct sim *s, int host, const struct round_action *a) {
	sim_say(s, host, "rolls back to round %llu: epoch %llu", (unsigned long long)a->round,
			(unsigned long long)a->epoch);
	recovery_rewind(s, host, a->round);
	store_epoch(s, host, a->epoch);
}

void worker_start(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(w->life == 0);
	w->life = ++s->lives;
	w->epoch = epoch_of(&w->disk);
	w->version = sim_version(s, host);
	w->spoken = 0;
	w->boot = (uint64_t)(WALL_US + s->now_us + s->wall_jump_us[host]);
	w->dark = false;
	w->joined = w->finished = false;
	w->core = NULL;
	w->told_wrong = 0;
	w->poll = 0;
	w->timer_us = INT64_MAX;
	if (w->core_memory == NULL)
		w->core_memory = sim_alloc(round_core_size());
	trainer_load(s, host);
	sim_say(s, host, "starts as process %llu at round %llu", (unsigned long long)w->life,
			(unsigned long long)w->global.round);
	ask_to_join(s, host, NULL);
}

static void on_joined(struct sim *s, int host, const uint8_t *bytes, size_t n) {
	struct sim_worker *w = &s->workers[host];
	struct join_reply *m = sim_alloc(sizeof *m);
	struct rv_errtext et = {0};
	if (join_reply_decode(bytes, n, m, &et) != RV_OK)
		sim_fail(s, "w%d: join reply refused: %s", host, et.text);
	w->joined = true;
	w->member = m->member;
	free(m);
	struct round_config cfg = {.member = w->member,
							   .epoch = w->epoch,
							   .steps_per_round = s->opt.steps_per_round,
							   .overlap_steps = s->opt.overlap_steps,
							   .gives_away = s->opt.gives_away,
							   .n_fragments = s->opt.fragments,
							   .had_former = true,
							   .min_workers = s->opt.min_workers,
							   .late = s->opt.late,
							   .logs_per_base = state_logs_per_base(&s->global_config),
							   .heartbeat_us = HEARTBEAT_US};
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++)
		cfg.n_chunks[fragment] = global_round_chunks(&s->global_config, fragment).n_chunks;
	w->core =
		round_core_init(w->core_memory, &cfg, w->boot, w->global.round, &w->global.chain, w->steps_done, s->now_us);
	if (w->log.held)
		round_on_persisted(w->core, s->now_us, w->log.round, w->log.attempt, &w->log.digest, true);
	if (w->found_full_round > 0)
		oracle_full_hash(s, host, w->found_full_round, &w->found_full);
	poll_documents(s, host);
}

void worker_crash(struct sim *s, int host, bool silent) {
	struct sim_worker *w = &s->workers[host];
	peers_close_all(s, host, silent);
	if (!silent)
		coordinator_hang_up(s, host);
	disk_crash(s, host, silent);
	fetch_end(w);
	trainer_unload(w);
	w->life = 0;
	w->dark = silent;
	w->joined = false;
	w->core = NULL;
	w->reduce = NULL;
	s->frozen_until_us[host] = 0;
	sim_say(s, host, silent ? "loses power" : "is killed");
}

void worker_leave(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->core == NULL)
		return;
	sim_say(s, host, "leaves");
	round_leave(w->core, s->now_us);
	worker_turn(s, host);
}

/* ---- turns ---- */

static void act(struct sim *s, int host, const struct round_action *a) {
	struct sim_worker *w = &s->workers[host];
	switch (a->type) {
	case ROUND_TRAIN:
		trainer_train(s, host, a);
		break;
	case ROUND_ENCODE:
		trainer_encode(s, host, a);
		break;
	case ROUND_REDUCE_START:
	case ROUND_REDUCE_RESTART:
		peers_start_reduce(s, host, a->type == ROUND_REDUCE_RESTART);
		break;
	case ROUND_REDUCE_STOP:
		peers_stop_reduce(s, host);
		break;
	case ROUND_PERSIST:
		trainer_persist(s, host);
		break;
	case ROUND_APPLY:
		trainer_apply(s, host, a);
		break;
	case ROUND_FETCH_BASE:
	case ROUND_FETCH_LOG:
		fetch_start(s, host, a);
		break;
	case ROUND_CANCEL_FETCH:
		fetch_cancel(s, w);
		break;
	case ROUND_PROBE:
		round_on_storage(w->core, s->now_us, !w->disk.full);
		break;
	case ROUND_KEEP_BASE:
		s->stats.standstills++;
		trainer_keep_base(s, host);
		break;
	case ROUND_ROLLBACK:
		roll_back(s, host, a);
		break;
	case ROUND_FINISH:
		oracle_finished(s, host);
		w->finished = true; /* and stays, for those that still need a donor */
		break;
	default:
		RV_UNREACHABLE("an action without a name");
	}
}

static void tell_round_about_reduce(struct sim *s, struct sim_worker *w) {
	if (w->reduce == NULL)
		return;
	if (reduce_done(w->reduce) && !w->told_done) {
		w->told_done = true;
		round_on_reduced(w->core, s->now_us, w->reduce_round, w->reduce_attempt);
	}
	uint64_t suspects = reduce_suspects(w->reduce);
	if (suspects != w->told_suspects) {
		w->told_suspects = suspects;
		round_on_suspects(w->core, s->now_us, w->reduce_attempt, suspects);
	}
}

static void timer(struct sim *s, int host, void *arg) {
	(void)arg;
	struct sim_worker *w = &s->workers[host];
	if (s->now_us < w->timer_us)
		return;
	w->timer_us = INT64_MAX;
	if (w->reduce != NULL && reduce_deadline_us(w->reduce) <= s->now_us)
		reduce_tick(w->reduce, s->now_us);
	worker_turn(s, host);
}

static void set_timer(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	int64_t at = round_deadline_us(w->core);
	int64_t reduce_at = w->reduce != NULL ? reduce_deadline_us(w->reduce) : INT64_MAX;
	int64_t fetch_at = fetch_deadline_us(w);
	at = reduce_at < at ? reduce_at : at;
	int64_t peers_at = peers_deadline_us(s, host);
	at = fetch_at < at ? fetch_at : at;
	at = peers_at < at ? peers_at : at;
	if (at >= w->timer_us)
		return;
	w->timer_us = at > s->now_us ? at : s->now_us + 1;
	sim_at(s, w->timer_us, host, w->life, timer, NULL);
}

void worker_turn(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->core == NULL)
		return;
	struct round_action a;
	struct report rep;
	for (int turns = 0;; turns++) {
		if (turns == MANY_ACTIONS) {
			sim_fail(s, "w%d: its round core asks without end", host);
			return;
		}
		tell_round_about_reduce(s, w);
		if (!round_next_action(w->core, s->now_us, &a))
			break;
		act(s, host, &a);
	}
	fetch_pump(s, host);
	peers_pump(s, host);
	tell_round_about_reduce(s, w);
	if (round_next_report(w->core, s->now_us, &rep))
		send_report(s, host, &rep);
	set_timer(s, host);
}

static void on_reply(struct sim *s, int host, const struct packet *p) {
	struct sim_worker *w = &s->workers[host];
	struct http_head head;
	memcpy(&head, p->data, sizeof head);
	const uint8_t *body = p->data + sizeof head;
	size_t n = p->n - sizeof head;
	if (head.life != w->life)
		return;
	if (!head.ok) {
		if (head.what == HTTP_DOCUMENT && w->core != NULL && head.poll == w->poll)
			poll_fails_at(s, host, s->now_us + RETRY_US);
	} else if (head.what == HTTP_JOIN && !w->joined) {
		on_joined(s, host, body, n);
	} else if (head.what == HTTP_DOCUMENT && w->core != NULL) {
		on_document(s, host, &head, body, n);
	}
}

void worker_receive(struct sim *s, const struct packet *p) {
	if (p->kind == PACKET_REPLY)
		on_reply(s, p->dst, p);
	else
		peers_receive(s, p);
	worker_turn(s, p->dst);
}

void worker_release(struct sim_worker *w) {
	fetch_end(w);
	trainer_unload(w);
	disk_release(&w->disk);
	free(w->core_memory);
	free(w->reduce_memory);
}
