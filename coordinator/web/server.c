/* server.c: see server.h. evhttp parses; connections.c adds TLS; api.c answers; a timer drives
 * deadlines. */
#include "coordinator/web/server.h"

#include "base/clock.h"
#include "base/signals.h"
#include "coordinator/web/api.h"
#include "coordinator/web/connections.h"
#include "net/tls.h"

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SWEEP_US = RV_US_PER_S, IDLE_TIMEOUT_S = 60 };

struct server {
	struct server_config cfg;
	struct event_base *base;
	struct event *timer, *signal;
	struct event *joins; /* active while joins gather: after the requests that are at hand */
	SSL_CTX *tls;
	struct connections *connections;
	struct evhttp *http;
	struct evconnlistener *listener; /* owned by http once bound */
	struct api *api;
	struct relay_server *relay; /* NULL: none */
	struct banned banned;       /* as the relay knows it */
	bool full;
	int64_t swept_us;
};

/* ---- time ---- */

static int64_t min64(int64_t a, int64_t b) {
	return a < b ? a : b;
}

static void arm_timer(struct server *s) {
	int64_t now_us = rv_clock_monotonic_us();
	int64_t at = min64(min64(service_deadline_us(s->cfg.service), api_deadline_us(s->api)), s->swept_us + SWEEP_US);
	int64_t in_us = at > now_us ? at - now_us : 0;
	struct timeval tv = {.tv_sec = in_us / RV_US_PER_S, .tv_usec = in_us % RV_US_PER_S};
	(void)event_add(s->timer, &tv);
}

static void tell_relay_of_bans(struct server *s) {
	const struct banned *banned = service_banned(s->cfg.service);
	if (s->relay == NULL || banned_equal(banned, &s->banned))
		return;
	s->banned = *banned;
	relay_server_ban(s->relay, banned);
}

/* ---- certificates ---- */

/* Makes a context with the serving key and what browsers are shown. The caller frees it. */
static enum rv_err make_tls(struct server *s, SSL_CTX **out, struct rv_errtext *et) {
	const struct run_keys *keys = s->cfg.keys;
	RV_TRY(tls_context_new(&keys->serving, TLS_CLIENTS_MAY, out, et));
	enum rv_err e = web_cert_use(&s->cfg.web, *out, et);
	if (e == RV_OK && !tls_identify_serving(*out, &keys->serving, &keys->cert))
		e = rv_fail(et, RV_E_NOMEM, "no memory for the coordinator's certificate: %s", tls_error_text());
	if (e == RV_OK)
		return RV_OK;
	SSL_CTX_free(*out);
	*out = NULL;
	return e;
}

/* Shows browsers the certificate that its files hold now; the earlier one, while they hold none. */
static void renew_web_cert(struct server *s) {
	struct rv_errtext et = {0};
	SSL_CTX *next = NULL;
	if (!web_cert_changed(&s->cfg.web))
		return;
	if (make_tls(s, &next, &et) != RV_OK) {
		rv_event(s->cfg.events, RV_WARN, "web_cert", RV_NO_FIELDS,
				 "browsers are shown the earlier certificate until the files change again: %s", et.text);
		return;
	}
	connections_use(s->connections, next);
	SSL_CTX_free(s->tls); /* open connections hold it */
	s->tls = next;
	rv_event(s->cfg.events, RV_INFO, "web_cert", RV_NO_FIELDS, "browsers are shown the new certificate of %s",
			 s->cfg.web.cert);
}

/* ---- the loop ---- */

/* Moves the timer after a request was served. */
static void on_changed(void *server) {
	struct server *s = server;
	if (service_fault(s->cfg.service, NULL) != RV_OK)
		server_stop(s);
	tell_relay_of_bans(s);
	if (service_joins_gather(s->cfg.service))
		event_active(s->joins, EV_TIMEOUT, 0);
	arm_timer(s);
}

static void on_joins(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct server *s = server;
	int64_t now_us = rv_clock_monotonic_us();
	service_write_joins(s->cfg.service, now_us);
	api_tick(s->api, now_us);
	on_changed(s);
}

static void on_timer(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct server *s = server;
	int64_t now_us = rv_clock_monotonic_us();
	service_tick(s->cfg.service, now_us);
	api_tick(s->api, now_us);
	if (now_us - s->swept_us >= SWEEP_US) {
		s->swept_us = now_us;
		connections_sweep(s->connections, now_us);
		renew_web_cert(s);
		if (!s->full)
			(void)evconnlistener_enable(s->listener); /* after on_accept_error */
		if (s->cfg.on_sweep != NULL)
			s->cfg.on_sweep(s->cfg.ctx, now_us);
	}
	on_changed(s);
}

static void on_signal(evutil_socket_t fd, short what, void *server) {
	(void)what;
	if (rv_signals_take((int)fd) != 0)
		server_stop(server);
}

/* ---- accepting ---- */

static void on_full(void *server, bool full) {
	struct server *s = server;
	s->full = full;
	if (s->listener == NULL)
		return; /* shutting down */
	if (full)
		(void)evconnlistener_disable(s->listener);
	else
		(void)evconnlistener_enable(s->listener);
}

/* Pauses until the next sweep rather than spin: most likely out of file descriptors. */
static void on_accept_error(struct evconnlistener *listener, void *server) {
	(void)server;
	(void)evconnlistener_disable(listener);
}

static void be_quiet(int severity, const char *text) {
	(void)severity, (void)text; /* clients that break off are not logged */
}

static enum rv_err make_api(struct server *s, struct rv_errtext *et) {
	struct api_config cfg = {.service = s->cfg.service,
							 .connections = s->connections,
							 .text = s->cfg.text,
							 .text_bytes_per_s = s->cfg.text_bytes_per_s,
							 .events = s->cfg.events,
							 .changed = on_changed,
							 .owner = s};
	memcpy(cfg.run_key, s->cfg.keys->serving.key, sizeof cfg.run_key);
	return api_new(&cfg, &s->api, et);
}

static enum rv_err make_http(struct server *s, struct rv_errtext *et) {
	s->http = evhttp_new(s->base);
	if (s->http == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server");
	evhttp_set_max_headers_size(s->http, API_MAX_HEADER_BYTES);
	evhttp_set_max_body_size(s->http, API_MAX_BODY_BYTES); /* members': api_serve */
	evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_timeout(s->http, IDLE_TIMEOUT_S);
	evhttp_set_bevcb(s->http, connections_make, s->connections);
	evhttp_set_gencb(s->http, api_serve, s->api);
	struct evconnlistener *l =
		evconnlistener_new(s->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, s->cfg.listen_fd);
	if (l == NULL || evhttp_bind_listener(s->http, l) == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server's socket");
	s->listener = l;
	s->cfg.listen_fd = -1;
	evconnlistener_set_error_cb(l, on_accept_error);
	return RV_OK;
}

static enum rv_err make_events(struct server *s, struct rv_errtext *et) {
	s->base = event_base_new();
	if (s->base == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the event loop");
	s->timer = evtimer_new(s->base, on_timer, s);
	if (s->cfg.signal_fd >= 0)
		s->signal = event_new(s->base, s->cfg.signal_fd, EV_READ | EV_PERSIST, on_signal, s);
	s->joins = event_new(s->base, -1, 0, on_joins, s);
	if (s->timer == NULL || s->joins == NULL ||
		(s->cfg.signal_fd >= 0 && (s->signal == NULL || event_add(s->signal, NULL) != 0)))
		return rv_fail(et, RV_E_NOMEM, "no memory for the event loop");
	return RV_OK;
}

static enum rv_err make_relay(struct server *s, struct rv_errtext *et) {
	struct relay_server_config relay = s->cfg.relay;
	if (relay.ports.fd[RELAY_MAIN_PORT] < 0)
		return RV_OK;
	relay.identity = &s->cfg.keys->serving;
	memcpy(relay.root, s->cfg.keys->root, sizeof relay.root);
	s->cfg.relay.ports = RELAY_NO_PORTS; /* the relay closes them */
	RV_TRY(relay_server_new(s->base, &relay, &s->relay, et));
	service_show_relay(s->cfg.service, relay_server_totals(s->relay));
	return RV_OK;
}

enum rv_err server_new(const struct server_config *cfg, struct server **out, struct rv_errtext *et) {
	struct server *s = calloc(1, sizeof *s);
	*out = NULL;
	if (s == NULL) {
		(void)close(cfg->listen_fd);
		struct relay_ports ports = cfg->relay.ports;
		relay_ports_close(&ports);
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server");
	}
	s->cfg = *cfg;
	event_set_log_callback(be_quiet);
	enum rv_err e = make_events(s, et);
	if (e == RV_OK)
		e = make_tls(s, &s->tls, et);
	if (e == RV_OK)
		e = connections_new(s->tls, cfg->max_connections, on_full, s, &s->connections, et);
	if (e == RV_OK)
		connections_at(s->connections, service_advertised(cfg->service));
	if (e == RV_OK)
		e = make_api(s, et);
	if (e == RV_OK)
		e = make_http(s, et);
	if (e == RV_OK)
		e = make_relay(s, et);
	if (e != RV_OK)
		server_free(s);
	else
		*out = s;
	return e;
}

enum rv_err server_run(struct server *s, struct rv_errtext *et) {
	arm_timer(s);
	(void)event_base_dispatch(s->base);
	return service_fault(s->cfg.service, et);
}

void server_stop(struct server *s) {
	(void)event_base_loopbreak(s->base);
}

/* Runs libevent's deferred callbacks, which free connections, some in two steps. */
static void run_deferred(struct server *s) {
	enum { TURNS = 16 };
	for (int i = 0; i < TURNS && s->connections != NULL && connections_count(s->connections) > 0; i++)
		(void)event_base_loop(s->base, EVLOOP_NONBLOCK);
}

void server_free(struct server *s) {
	if (s == NULL)
		return;
	s->listener = NULL;
	if (s->api != NULL)
		api_end_waiting(s->api);
	if (s->http != NULL)
		evhttp_free(s->http);
	if (s->timer != NULL) /* before what it ticks: events are run below */
		event_free(s->timer);
	if (s->joins != NULL)
		event_free(s->joins);
	api_free(s->api);
	service_show_relay(s->cfg.service, NULL);
	relay_server_free(s->relay);
	if (s->cfg.listen_fd >= 0)
		(void)close(s->cfg.listen_fd);
	relay_ports_close(&s->cfg.relay.ports);
	if (s->signal != NULL)
		event_free(s->signal);
	if (s->base != NULL) {
		run_deferred(s);
		event_base_free(s->base);
	}
	connections_free(s->connections);
	SSL_CTX_free(s->tls);
	free(s);
}
