/* sim_worker.c: a worker's turns, its HTTP client, and what its session core says: the core's control. */
#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_US = SIM_S, POLL_TIMEOUT_US = 6 * SIM_S };

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

void worker_ask_to_join(struct sim *s, int host) {
	ask_to_join(s, host, NULL);
}

/* What a worker takes its line for: not quite what it is, and another time something else. */
static uint64_t measured(const struct sim *s, int host, double bytes_per_s) {
	enum { EVERY_US = 10 * SIM_S };
	float off = sim_noise(s->opt.seed, (uint64_t)host, (uint64_t)(s->now_us / EVERY_US));
	return off < -0.8f ? 0 : (uint64_t)(bytes_per_s * (1 + 0.5 * (double)off));
}

/* As in life: the first document says which version is spoken, and until then nothing is reported; the core's next
 * report tells all. */
static void send_report(void *ctx, struct report *rep) {
	struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	w->reports++;
	if (w->spoken == 0)
		return;
	uint8_t bytes[NET_MAX_REPORT_BYTES];
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	(void)snprintf(rep->addr, sizeof rep->addr, "w%d:7000", w->host);
	rep->up_bytes_per_s = measured(s, w->host, s->net.up[w->host].bytes_per_s);
	rep->down_bytes_per_s = measured(s, w->host, s->net.down[w->host].bytes_per_s);
	report_encode(rep, w->spoken, &out);
	RV_ASSERT(!out.failed);
	request(s, w->host, (struct http_head){.what = HTTP_REPORT, .version = w->spoken, .poll = w->reports}, bytes,
			rv_writer_len(&out));
}

static bool was_heard(void *ctx) {
	const struct sim_worker *w = ctx;
	return w->heard == w->reports;
}

/* The poll that `arg` numbers is over: no answer came in time, or the coordinator is down. */
static void poll_failed(struct sim *s, int host, void *arg) {
	uint64_t number = *(uint64_t *)arg;
	free(arg);
	if (number == s->workers[host].poll)
		worker_poll_documents(s, host);
}

static void poll_fails_at(struct sim *s, int host, int64_t at_us) {
	uint64_t *number = sim_alloc(sizeof *number);
	*number = s->workers[host].poll;
	sim_at(s, at_us, host, s->workers[host].life, poll_failed, number);
}

void worker_poll_documents(struct sim *s, int host) {
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
	if (document_decode(bytes, n, s->doc, &et) == RV_OK)
		(void)session_core_on_document(w->session, s->now_us, s->doc);
	else
		sim_fail(s, "w%d: a document that cannot be read: %s", host, et.text);
	if (head->poll == w->poll)
		worker_poll_documents(s, host);
}

/* ---- what the session core says ---- */

static void tell(void *ctx, const struct session_event *e) {
	struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	switch (e->type) {
	case SESSION_SAYS_WRONG_STATE:
		oracle_wrong_state(s, w->host, e->text);
		break;
	case SESSION_SAYS_REFUSED:
	case SESSION_SAYS_OLD_STORE:
		sim_fail(s, "w%d: document refused: %s", w->host, e->text);
		break;
	case SESSION_SAYS_FULL_HASH:
		oracle_full_hash(s, w->host, e->round, e->hash);
		break;
	case SESSION_SAYS_STANDSTILL:
		s->stats.standstills++;
		break;
	case SESSION_SAYS_DONE:
		oracle_finished(s, w->host);
		w->finished = true;
		break;
	case SESSION_SAYS_FETCHING:
		sim_say(s, w->host, "fetches %s %llu", e->id->kind == STATE_KIND_SNAPSHOT ? "snapshot" : "log",
				(unsigned long long)e->round);
		break;
	default:
		sim_say(s, w->host, "says %d: %s", e->type, e->text != NULL ? e->text : "");
	}
}

const struct session_control_ops sim_control_ops = {.report = send_report, .reported = was_heard, .tell = tell};

/* ---- turns ---- */

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
	int64_t at = session_core_deadline_us(w->session, s->now_us);
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

static void take_turn(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct session_seen seen = peers_seen(w);
	session_core_turn(w->session, s->now_us, &seen);
}

/* The all-reduce of a worker that is alone is done as soon as it begins. */
static bool has_news(const struct sim_worker *w, const struct session_seen *before) {
	const struct session_seen now = peers_seen(w);
	return now.reduced != before->reduced || now.suspects != before->suspects ||
		   now.reduce_attempt != before->reduce_attempt;
}

void worker_turn(struct sim *s, int host) {
	enum { MANY = 100 };
	struct sim_worker *w = &s->workers[host];
	if (w->session == NULL || w->ending)
		return;
	struct session_seen before;
	int turns = 0;
	do {
		before = peers_seen(w);
		take_turn(s, host);
		if (++turns == MANY)
			sim_fail(s, "w%d: its session turns without end", host);
	} while (!s->failed && has_news(w, &before));
	fetch_pump(s, host);
	peers_pump(s, host);
	before = peers_seen(w);
	take_turn(s, host);
	if (session_core_phase(w->session) == SESSION_ENDED)
		worker_end(s, host);
	else
		set_timer(s, host);
}

static void on_joined(struct sim *s, int host, const uint8_t *bytes, size_t n) {
	struct join_reply *m = sim_alloc(sizeof *m);
	struct rv_errtext et = {0};
	if (join_reply_decode(bytes, n, m, &et) != RV_OK)
		sim_fail(s, "w%d: join reply refused: %s", host, et.text);
	else
		worker_open(s, host, m->member);
	free(m);
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
	} else if (head.what == HTTP_REPORT) {
		w->heard = head.poll > w->heard ? head.poll : w->heard;
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
