/* text_replies.c: see text_replies.h. evhttp sends what it is given as fast as the line takes it,
 * so a request is given its next part once the last one has left. */
#include "coordinator/web/text_replies.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/http_range.h"
#include "net/http_server/reply.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_AFTER_S "5"

struct text_reply {
	struct text_turn turn; /* the first member: its address is the reply's */
	struct text_replies *all;
	struct evhttp_request *rq;
	struct served_file file;
	int status;
	uint64_t first, left; /* of the file; bytes that are still to be sent */
	bool has_begun;       /* its head was sent */
};

_Static_assert(offsetof(struct text_reply, turn) == 0, "a turn's address is its reply's");

struct text_replies {
	struct text_replies_config cfg;
	struct text_turns turns;
	struct text_totals totals;
	uint8_t part[TEXT_PART_BYTES];
};

enum rv_err text_replies_new(const struct text_replies_config *cfg, struct text_replies **out, struct rv_errtext *et) {
	struct text_replies *r = calloc(1, sizeof *r);
	*out = r;
	if (r == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server");
	r->cfg = *cfg;
	text_turns_init(&r->turns, cfg->bytes_per_s);
	return RV_OK;
}

void text_replies_free(struct text_replies *r) {
	RV_ASSERT(r == NULL || r->turns.n == 0);
	free(r);
}

static void forget(struct text_reply *t) {
	text_turns_remove(&t->all->turns, &t->turn);
	t->all->totals.now--;
	served_file_close(&t->file);
	free(t);
}

/* Takes a request off the list, which its connection no longer ends. Returns it. */
static struct evhttp_request *release(struct text_reply *t) {
	struct evhttp_request *rq = t->rq;
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), NULL, NULL);
	forget(t);
	return rq;
}

void text_replies_end_all(struct text_replies *r) {
	while (!TAILQ_EMPTY(&r->turns.list))
		(void)release((struct text_reply *)(void *)TAILQ_FIRST(&r->turns.list));
}

static void on_closed(struct evhttp_connection *ec, void *reply) {
	struct text_reply *t = reply;
	(void)ec;
	reply_drop(t->rq);
	forget(t);
}

/* ---- taking ---- */

static void refuse(struct text_replies *r, struct evhttp_request *rq) {
	r->totals.refused++;
	(void)evhttp_add_header(evhttp_request_get_output_headers(rq), "Retry-After", RETRY_AFTER_S);
	reply_text(rq, STATUS_UNAVAILABLE,
			   "too many requests for text at once: try again in " RETRY_AFTER_S
			   " s, or fetch from a mirror or a member");
}

/* Ends an answer before its end: the connection is closed, so that nobody takes it for whole. */
static void break_off(struct text_reply *t) {
	struct evhttp_request *rq = t->rq;
	struct evhttp_connection *ec = evhttp_request_get_connection(rq);
	(void)release(t);
	evhttp_connection_free(ec);
}

/* Returns true if there is a place for a request of this member, or one was made. */
static bool has_place(struct text_replies *r, const uint8_t key[NET_KEY_BYTES]) {
	if (text_turns_admits(&r->turns, key))
		return true;
	struct text_turn *turn = text_turns_gives_way(&r->turns, key, rv_clock_monotonic_us());
	if (turn == NULL)
		return false;
	struct text_reply *t = (struct text_reply *)(void *)turn;
	if (t->has_begun)
		break_off(t);
	else
		refuse(r, release(t));
	return true;
}

/* Writes the head of the answer, but for its status. */
static void put_head(struct evhttp_request *rq, const struct text_reply *t, uint64_t n) {
	struct evkeyvalq *headers = evhttp_request_get_output_headers(rq);
	char text[HTTP_RANGE_TEXT_BYTES];
	(void)snprintf(text, sizeof text, "%" PRIu64, n);
	(void)evhttp_add_header(headers, "Content-Length", text);
	(void)evhttp_add_header(headers, "Content-Type", "application/octet-stream");
	(void)evhttp_add_header(headers, "Accept-Ranges", "bytes");
	(void)evhttp_add_header(headers, "Cache-Control", "no-store");
	if (t->status == STATUS_OK)
		return;
	http_range_text(t->status, t->first, t->left, t->file.bytes, text);
	(void)evhttp_add_header(headers, "Content-Range", text);
}

static struct http_range range_of(struct evhttp_request *rq) {
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(rq);
	const char *value = evhttp_find_header(headers, "Range");
	const bool has_condition = evhttp_find_header(headers, "If-Range") != NULL; /* no validator was given out */
	return value && !has_condition ? http_range_read(value, strlen(value)) : (struct http_range){.is_given = false};
}

/* Answers at once what has no bytes: HEAD, ranges outside the file. Returns false for others. */
static bool answer_head(struct evhttp_request *rq, struct text_reply *t) {
	const bool is_head = evhttp_request_get_command(rq) == EVHTTP_REQ_HEAD;
	const bool is_outside = t->status != STATUS_OK && t->status != STATUS_PARTIAL;
	if (!is_head && !is_outside)
		return false;
	put_head(rq, t, is_outside ? 0 : t->left);
	evhttp_send_reply(rq, t->status, NULL, NULL);
	served_file_close(&t->file);
	return true;
}

static void add(struct text_replies *r, const struct text_reply *as, const uint8_t key[NET_KEY_BYTES]) {
	struct text_reply *t = malloc(sizeof *t);
	if (t == NULL) {
		struct served_file file = as->file;
		served_file_close(&file);
		reply_text(as->rq, STATUS_UNAVAILABLE, "no memory");
		return;
	}
	*t = *as;
	text_turns_add(&r->turns, &t->turn, key);
	r->totals.now++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(t->rq), on_closed, t);
}

void text_replies_take(struct text_replies *r, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
					   const char *name) {
	struct text_reply t = {.all = r, .rq = rq};
	struct rv_errtext et = {0};
	if (r->cfg.text == NULL) {
		reply_text(rq, STATUS_NOT_FOUND, "this coordinator has no copy of the run's text");
		return;
	}
	if (!has_place(r, key)) {
		refuse(r, rq);
		return;
	}
	enum rv_err e = served_file_open(r->cfg.text, name, &t.file, &et);
	if (e != RV_OK) {
		reply_text(rq, reply_status_of(e), et.text);
		return;
	}
	const struct http_range range = range_of(rq);
	t.status = http_range_cut(&range, t.file.bytes, &t.first, &t.left);
	if (!answer_head(rq, &t))
		add(r, &t, key);
}

/* ---- sending ---- */

/* What text_turns_next looks for. */
struct search {
	const struct text_replies *r;
	enum served_state state;
};

static bool is_in_state(const void *ctx, const struct text_turn *turn) {
	const struct search *s = ctx;
	const struct text_reply *t = (const struct text_reply *)(const void *)turn;
	return served_text_state(s->r->cfg.text, t->file.shard) == s->state;
}

/* Returns the request whose turn it is, in this state of its shard; NULL: there is none. */
static struct text_reply *find(const struct text_replies *r, enum served_state state) {
	const struct search s = {.r = r, .state = state};
	return (struct text_reply *)(void *)text_turns_next(&r->turns, is_in_state, &s);
}

/* Marks that a part has left. */
static void on_left(struct evhttp_connection *ec, void *reply) {
	struct text_reply *t = reply;
	(void)ec;
	t->turn.leaves = false;
	t->all->cfg.changed(t->all->cfg.owner);
}

static void begin(struct text_reply *t) {
	put_head(t->rq, t, t->left);
	evhttp_send_reply_start(t->rq, t->status, NULL);
	t->has_begun = true;
	t->all->totals.files++;
}

/* Sends the next part, or the end behind the last one. */
static void send_part(struct text_reply *t, int64_t now_us) {
	struct text_replies *r = t->all;
	if (t->left == 0) {
		if (!t->has_begun)
			begin(t);
		evhttp_send_reply_end(release(t));
		return;
	}
	const size_t want = t->left < TEXT_PART_BYTES ? (size_t)t->left : TEXT_PART_BYTES;
	const ssize_t n = pread(t->file.fd, r->part, want, (off_t)t->first);
	struct evbuffer *out = evbuffer_new();
	if (n != (ssize_t)want || out == NULL || evbuffer_add(out, r->part, want) != 0) {
		if (out != NULL)
			evbuffer_free(out);
		break_off(t);
		return;
	}
	if (!t->has_begun)
		begin(t);
	t->first += want;
	t->left -= want;
	r->totals.bytes += want;
	text_turns_sent(&r->turns, &t->turn, now_us);
	connections_extend(r->cfg.connections, t->rq, now_us);
	evhttp_send_reply_chunk_with_cb(t->rq, out, on_left, t);
	evbuffer_free(out);
}

/* Checks a part of a shard that somebody waits for. */
static void check_some(struct text_replies *r, int64_t shard) {
	struct rv_errtext et = {0};
	if (served_text_check(r->cfg.text, shard, &et) == RV_OK)
		return;
	r->totals.damaged++;
	rv_event(r->cfg.events, RV_ERROR, "text_damaged", RV_NO_FIELDS, "%s", et.text);
}

void text_replies_tick(struct text_replies *r, int64_t now_us) {
	struct text_reply *t;
	while ((t = find(r, SERVED_DAMAGED)) != NULL)
		reply_text(release(t), STATUS_ERROR, "this copy of the file is damaged: fetch it elsewhere");
	if ((t = find(r, SERVED_UNCHECKED)) != NULL)
		check_some(r, t->file.shard);
	while (text_turns_ready_us(&r->turns) <= now_us && (t = find(r, SERVED_GOOD)) != NULL)
		send_part(t, now_us);
}

int64_t text_replies_deadline_us(const struct text_replies *r) {
	if (r->turns.n == 0)
		return INT64_MAX;
	if (find(r, SERVED_UNCHECKED) != NULL || find(r, SERVED_DAMAGED) != NULL)
		return 0;
	if (find(r, SERVED_GOOD) == NULL)
		return INT64_MAX;
	return text_turns_ready_us(&r->turns);
}

const struct text_totals *text_replies_totals(const struct text_replies *r) {
	return &r->totals;
}
