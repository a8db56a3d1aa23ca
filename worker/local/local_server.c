/* local_server.c: see local_server.h. The thread runs libevent's loop and nothing else; it shares
 * the status, under a lock, and the mailbox. */
#include "worker/local/local_server.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/json_limits.h"
#include "base/os_threads.h"
#include "net/address.h"
#include "net/http_server/query.h"
#include "net/http_server/reply.h"
#include "worker/local/guard.h"
#include "worker/local/local_chart.h"
#include "worker/local/local_page.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

enum { BACKLOG = 16, IDLE_TIMEOUT_S = 60, BODY_CONTAINERS = 64, BODY_VALUES = 256 };

/* A command whose request is held until its answer. */
struct waiting {
	struct local_server *server;
	struct evhttp_request *rq; /* NULL: this place is free */
	uint64_t ticket;
	int64_t until_us;
};

struct local_server {
	struct local_place place;
	struct event_base *base;
	struct evhttp *http;
	struct event *answers, *timer;
	struct mailbox *mailbox;
	struct waiting waiting[MAILBOX_MOST];
	struct {
		struct sample_child *child; /* NULL: none runs */
		struct event *readable;
		struct evhttp_request *rq; /* NULL: its client has gone */
		int64_t until_us;
	} sample;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of what follows */
	json_t *status;
	struct sample_plan plan; /* of samples; program "": there are none */
	char why_no_samples[256];
};

/* ---- replies ---- */

/* Sends JSON, or 503 if there was no memory for it; takes the reference. */
static void reply_json(struct evhttp_request *rq, json_t *value) {
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	json_decref(value);
	if (text)
		reply(rq, STATUS_OK, "application/json", text, strlen(text));
	else
		reply_text(rq, STATUS_UNAVAILABLE, "no memory");
	free(text);
}

static void reply_answer(struct evhttp_request *rq, bool ok, const char *text) {
	reply_json(rq, json_pack("{s:b, s:s}", "ok", ok, "text", text));
}

/* ---- the page ---- */

static void serve_page(struct local_server *s, struct evhttp_request *rq) {
	(void)s;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(rq);
	/* Charts colour their lines by style attributes. */
	(void)evhttp_add_header(
		headers, "Content-Security-Policy",
		"default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
		"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	(void)evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	(void)evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
	reply(rq, STATUS_OK, "text/html; charset=utf-8", local_page_html, local_page_html_bytes);
}

static void serve_style(struct local_server *s, struct evhttp_request *rq) {
	(void)s;
	reply(rq, STATUS_OK, "text/css; charset=utf-8", local_page_css, local_page_css_bytes);
}

static void serve_script(struct local_server *s, struct evhttp_request *rq) {
	(void)s;
	reply(rq, STATUS_OK, "text/javascript; charset=utf-8", local_page_js, local_page_js_bytes);
}

/* ---- the status ---- */

static void serve_status(struct local_server *s, struct evhttp_request *rq) {
	(void)pthread_mutex_lock(&s->lock);
	char *text = json_dumps(s->status, JSON_COMPACT);
	(void)pthread_mutex_unlock(&s->lock);
	if (text)
		reply(rq, STATUS_OK, "application/json", text, strlen(text));
	else
		reply_text(rq, STATUS_UNAVAILABLE, "no memory");
	free(text);
}

static void serve_chart(struct local_server *s, struct evhttp_request *rq) {
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(rq));
	uint64_t width = LOCAL_CHART_WIDTH_LEAST;
	if (query_number(query, query ? strlen(query) : 0, "width", &width) == QUERY_INVALID) {
		reply_text(rq, STATUS_BAD_REQUEST, "chart: width must be a number of pixels");
		return;
	}
	(void)pthread_mutex_lock(&s->lock);
	char *text = local_chart_draw(s->status, width > LOCAL_CHART_WIDTH_MOST ? LOCAL_CHART_WIDTH_MOST : (int)width);
	(void)pthread_mutex_unlock(&s->lock);
	if (text)
		reply(rq, STATUS_OK, "image/svg+xml", text, strlen(text));
	else
		reply_text(rq, STATUS_UNAVAILABLE, "no memory");
	free(text);
}

/* ---- commands ---- */

static struct waiting *waiting_of(struct local_server *s, uint64_t ticket) {
	for (struct waiting *w = s->waiting; w < s->waiting + MAILBOX_MOST; w++)
		if (w->rq && w->ticket == ticket)
			return w;
	return NULL;
}

/* Frees the place. Returns the request, which its connection no longer ends. */
static struct evhttp_request *release(struct waiting *w) {
	struct evhttp_request *rq = w->rq;
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), NULL, NULL);
	w->rq = NULL;
	return rq;
}

/* The client has gone; what it asked for and is not begun is not done. */
static void on_closed(struct evhttp_connection *ec, void *waiting) {
	struct waiting *w = waiting;
	(void)ec;
	(void)mailbox_give_up(w->server->mailbox, w->ticket);
	reply_drop(w->rq);
	w->rq = NULL;
}

static void hold(struct local_server *s, struct evhttp_request *rq, uint64_t ticket) {
	struct waiting *w = s->waiting;
	while (w < s->waiting + MAILBOX_MOST && w->rq)
		w++;
	RV_ASSERT(w < s->waiting + MAILBOX_MOST); /* each holds a place of the mailbox, too */
	*w = (struct waiting){
		.server = s, .rq = rq, .ticket = ticket, .until_us = rv_clock_monotonic_us() + LOCAL_COMMAND_S * RV_US_PER_S};
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), on_closed, w);
}

/* Parses a body that is an object with the text `field`. NULL: it is none. */
static json_t *parse_body(struct evhttp_request *rq, const char *field, struct rv_errtext *et) {
	struct evbuffer *in = evhttp_request_get_input_buffer(rq);
	const size_t n = evbuffer_get_length(in);
	const void *body = n > 0 ? (const void *)evbuffer_pullup(in, -1) : "";
	if (!body || rv_json_check_limits(body, n, BODY_CONTAINERS, BODY_VALUES, et) != RV_OK)
		return NULL;
	json_t *o = json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_string(json_object_get(o, field)))
		return o;
	json_decref(o);
	(void)rv_fail(et, RV_E_INVALID, "the body must be a JSON object with the text \"%s\"", field);
	return NULL;
}

static void serve_command(struct local_server *s, struct evhttp_request *rq) {
	struct rv_errtext et = {0};
	uint64_t ticket;
	json_t *command = parse_body(rq, "command", &et);
	if (!command)
		reply_text(rq, STATUS_BAD_REQUEST, et.text);
	else if (!mailbox_post(s->mailbox, command, &ticket))
		reply_text(rq, STATUS_UNAVAILABLE, "too many commands at once");
	else
		hold(s, rq, ticket);
}

/* ---- samples ---- */

/* Ends the sample under way, and answers who asked for it. */
static void end_sample(struct local_server *s, bool late) {
	struct local_answer a;
	if (s->sample.readable)
		event_free(s->sample.readable);
	sample_child_end(s->sample.child, late, &a);
	struct evhttp_request *rq = s->sample.rq;
	s->sample.child = NULL;
	s->sample.readable = NULL;
	s->sample.rq = NULL;
	if (!rq)
		return;
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), NULL, NULL);
	reply_answer(rq, a.ok, a.text);
}

static void on_sample(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct local_server *s = server;
	if (!sample_child_read(s->sample.child))
		end_sample(s, false);
}

/* The page was closed: nobody waits for the text. */
static void on_reader_gone(struct evhttp_connection *ec, void *server) {
	struct local_server *s = server;
	(void)ec;
	reply_drop(s->sample.rq);
	s->sample.rq = NULL;
	end_sample(s, true);
}

static void begin_sample(struct local_server *s, struct evhttp_request *rq, const char *prompt) {
	struct rv_errtext et = {0};
	struct sample_plan plan;
	(void)pthread_mutex_lock(&s->lock);
	plan = s->plan;
	if (!plan.program[0])
		(void)rv_fail(&et, RV_E_BUSY, "%s", s->why_no_samples);
	(void)pthread_mutex_unlock(&s->lock);
	if (!plan.program[0] || sample_child_start(&plan, prompt, &s->sample.child, &et) != RV_OK) {
		reply_answer(rq, false, et.text);
		return;
	}
	s->sample.rq = rq;
	s->sample.until_us = rv_clock_monotonic_us() + SAMPLE_S * RV_US_PER_S;
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), on_reader_gone, s);
	s->sample.readable = event_new(s->base, sample_child_fd(s->sample.child), EV_READ | EV_PERSIST, on_sample, s);
	if (!s->sample.readable || event_add(s->sample.readable, NULL) != 0)
		end_sample(s, true);
}

static void serve_sample(struct local_server *s, struct evhttp_request *rq) {
	struct rv_errtext et = {0};
	json_t *request = parse_body(rq, "prompt", &et);
	if (!request)
		reply_text(rq, STATUS_BAD_REQUEST, et.text);
	else if (s->sample.child)
		reply_answer(rq, false, "one is being written already");
	else
		begin_sample(s, rq, json_string_value(json_object_get(request, "prompt")));
	json_decref(request);
}

static void on_answers(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct local_server *s = server;
	struct local_answer a;
	uint64_t ticket;
	while (mailbox_collect(s->mailbox, &ticket, &a)) {
		struct waiting *w = waiting_of(s, ticket);
		if (w)
			reply_answer(release(w), a.ok, a.text);
	}
	if (mailbox_is_closed(s->mailbox))
		(void)event_base_loopbreak(s->base);
}

static void on_timer(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct local_server *s = server;
	const int64_t now_us = rv_clock_monotonic_us();
	if (s->sample.child && now_us >= s->sample.until_us)
		end_sample(s, true);
	for (struct waiting *w = s->waiting; w < s->waiting + MAILBOX_MOST; w++) {
		if (!w->rq || now_us < w->until_us)
			continue;
		const bool undone = mailbox_give_up(s->mailbox, w->ticket);
		reply_answer(release(w), false,
					 undone ? "the worker is busy and has not taken the command: nothing was done, try again"
							: "the worker is still at it: look at its status");
	}
}

/* ---- routes ---- */

static const struct route {
	enum evhttp_cmd_type method;
	const char *path;
	bool open; /* needs no token */
	void (*serve)(struct local_server *s, struct evhttp_request *rq);
} routes[] = {
	{EVHTTP_REQ_GET, "/", true, serve_page},
	{EVHTTP_REQ_GET, "/page.css", true, serve_style},
	{EVHTTP_REQ_GET, "/page.js", true, serve_script},
	{EVHTTP_REQ_GET, "/v1/status", false, serve_status},
	{EVHTTP_REQ_GET, "/v1/chart", false, serve_chart},
	{EVHTTP_REQ_POST, "/v1/command", false, serve_command},
	{EVHTTP_REQ_POST, "/v1/sample", false, serve_sample},
};

static const struct route *find_route(struct evhttp_request *rq) {
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(rq);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	for (size_t i = 0; path && i < sizeof routes / sizeof routes[0]; i++)
		if (strcmp(routes[i].path, path) == 0)
			return &routes[i];
	return NULL;
}

/* Sets *out to the header's value, and *repeated if it came more than once. */
static void take_header(const struct evkeyvalq *headers, const char *name, const char **out, bool *repeated) {
	const struct evkeyval *h;
	TAILQ_FOREACH(h, headers, next) {
		if (strcasecmp(h->key, name) != 0)
			continue;
		*repeated |= *out != NULL;
		*out = h->value;
	}
}

static enum guard_verdict check(const struct local_server *s, struct evhttp_request *rq, const struct route *r) {
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(rq);
	struct guard_request g = {0};
	take_header(headers, "Host", &g.host, &g.repeated);
	take_header(headers, "Origin", &g.origin, &g.repeated);
	take_header(headers, "Sec-Fetch-Site", &g.fetch_site, &g.repeated);
	take_header(headers, "Authorization", &g.authorization, &g.repeated);
	return guard_check(&g, s->place.port, s->place.token, r && r->open);
}

static void on_request(struct evhttp_request *rq, void *server) {
	struct local_server *s = server;
	const struct route *r = find_route(rq);
	const enum guard_verdict v = check(s, rq, r);
	if (v != GUARD_PASSES)
		reply_text(rq, v == GUARD_NO_TOKEN ? STATUS_UNAUTHORIZED : STATUS_FORBIDDEN, guard_text(v));
	else if (!r)
		reply_text(rq, STATUS_NOT_FOUND, "not found; / is the page");
	else if (evhttp_request_get_command(rq) != r->method)
		reply_text(rq, STATUS_METHOD, r->method == EVHTTP_REQ_POST ? "POST only" : "GET only");
	else
		r->serve(s, rq);
}

/* ---- life ---- */

/* Listens on 127.0.0.1. Returns the socket and sets the port; -1 with errno. */
static int listen_on(uint16_t port, uint16_t *out) {
	struct address at = {.host = "127.0.0.1", .port = port}, bound;
	int fd = address_listen(&at, 0, BACKLOG, &bound);
	*out = fd >= 0 ? bound.port : 0;
	return fd;
}

static enum rv_err open_socket(struct local_server *s, const char *dir, uint16_t port, int *fd, struct rv_errtext *et) {
	struct local_place last;
	*fd = -1;
	if (port == 0 && local_file_read(dir, &last, NULL) == RV_OK)
		*fd = listen_on(last.port, &s->place.port);
	if (*fd < 0)
		*fd = listen_on(port, &s->place.port);
	if (*fd >= 0)
		return RV_OK;
	if (errno == EADDRINUSE)
		return rv_fail(et, RV_E_BUSY, "port %u of 127.0.0.1 is taken: choose another --local-port, or leave it out",
					   port);
	return rv_fail_errno(et, errno, "cannot listen on port %u of 127.0.0.1", port);
}

static enum rv_err make_http(struct local_server *s, const char *dir, uint16_t port, struct rv_errtext *et) {
	s->http = evhttp_new(s->base);
	if (!s->http)
		return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
	evhttp_set_max_headers_size(s->http, LOCAL_HEADERS_MOST_BYTES);
	evhttp_set_max_body_size(s->http, LOCAL_BODY_MOST_BYTES);
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
	evhttp_set_timeout(s->http, IDLE_TIMEOUT_S);
	evhttp_set_gencb(s->http, on_request, s);
	int fd;
	RV_TRY(open_socket(s, dir, port, &fd, et));
	if (evhttp_accept_socket(s->http, fd) == 0)
		return RV_OK;
	(void)close(fd);
	return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
}

static enum rv_err make_events(struct local_server *s, struct rv_errtext *et) {
	const struct timeval second = {.tv_sec = 1};
	s->base = event_base_new();
	if (!s->base)
		return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
	s->answers = event_new(s->base, mailbox_receiver_fd(s->mailbox), EV_READ | EV_PERSIST, on_answers, s);
	s->timer = event_new(s->base, -1, EV_PERSIST, on_timer, s);
	if (!s->answers || !s->timer || event_add(s->answers, NULL) != 0 || event_add(s->timer, &second) != 0)
		return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
	return RV_OK;
}

static void *run(void *server) {
	os_thread_name("local");
	(void)event_base_dispatch(((struct local_server *)server)->base);
	return NULL;
}

/* Starts the thread. Signals are the owner's. */
static enum rv_err start(struct local_server *s, struct rv_errtext *et) {
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	s->started = pthread_create(&s->thread, NULL, run, s) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!s->started)
		return rv_fail(et, RV_E_NOMEM, "no thread for the worker's page");
	return RV_OK;
}

static enum rv_err set_up(struct local_server *s, const char *dir, uint16_t port, struct rv_errtext *et) {
	uint8_t random[LOCAL_TOKEN_RANDOM_BYTES];
	randombytes_buf(random, sizeof random);
	rv_hex_encode(random, sizeof random, s->place.token);
	s->place.pid = getpid();
	s->status = json_pack("{s:s}", "state", "starting");
	if (!s->status)
		return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
	RV_TRY(mailbox_new(&s->mailbox, et));
	RV_TRY(make_events(s, et));
	RV_TRY(make_http(s, dir, port, et));
	RV_TRY(local_file_write(dir, &s->place, et));
	return start(s, et);
}

enum rv_err local_server_new(const char *dir, uint16_t port, struct local_server **out, struct rv_errtext *et) {
	struct local_server *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory for the worker's page");
	(void)pthread_mutex_init(&s->lock, NULL);
	enum rv_err e = set_up(s, dir, port, et);
	if (e == RV_OK)
		*out = s;
	else
		local_server_free(s);
	return e;
}

void local_server_free(struct local_server *s) {
	if (!s)
		return;
	if (s->started) {
		mailbox_close(s->mailbox);
		(void)pthread_join(s->thread, NULL);
	}
	for (struct waiting *w = s->waiting; w < s->waiting + MAILBOX_MOST; w++)
		if (w->rq)
			(void)release(w); /* evhttp_free ends it */
	if (s->sample.child)
		end_sample(s, true);
	if (s->http)
		evhttp_free(s->http);
	if (s->answers)
		event_free(s->answers);
	if (s->timer)
		event_free(s->timer);
	if (s->base)
		event_base_free(s->base);
	mailbox_free(s->mailbox);
	json_decref(s->status);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- the owner's side ---- */

void local_server_url(const struct local_server *s, char out[LOCAL_URL_BYTES]) {
	local_file_url(&s->place, out);
}

void local_server_publish(struct local_server *s, json_t *status) {
	if (!status)
		return;
	(void)pthread_mutex_lock(&s->lock);
	json_t *last = s->status;
	s->status = status;
	(void)pthread_mutex_unlock(&s->lock);
	json_decref(last);
}

void local_server_plan_samples(struct local_server *s, const struct sample_plan *plan, const char *why_not) {
	(void)pthread_mutex_lock(&s->lock);
	s->plan = plan ? *plan : (struct sample_plan){.memory_bytes = 0};
	(void)snprintf(s->why_no_samples, sizeof s->why_no_samples, "%s", why_not);
	(void)pthread_mutex_unlock(&s->lock);
}

struct mailbox *local_server_mailbox(struct local_server *s) {
	return s->mailbox;
}
