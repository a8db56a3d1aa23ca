/* fleet_lines.c: see fleet_lines.h. A request has a line of its own: libevent would queue a second
 * one behind a long poll. A line whose connection failed is made anew for its next request:
 * libevent does not connect an SSL object twice. */
#include "bench/fleet_lines.h"

#include "base/assert.h"
#include "net/tls.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LINES = 3, STATUS_OK = 200, STATUS_IM_USED = 226, MS_PER_S = 1000, US_PER_MS = 1000 };

/* A connection, and the request under way on it. */
struct line {
	struct fleet_lines *all;
	struct evhttp_connection *ec; /* NULL: none */
	bool failed;                  /* to be made anew */
	struct evhttp_request *rq;    /* NULL: free */
	uint32_t id;
	bool is_document;
	void (*done)(void *ctx, const struct http_reply *reply);
	void *ctx;
};

struct fleet_lines {
	struct event_base *base;
	const struct address *server;
	SSL_CTX *tls;
	uint32_t last_id;
	struct line lines[LINES];
	struct fleet_traffic closed; /* and the counts of requests */
};

enum rv_err fleet_lines_new(struct event_base *base, const struct address *server, struct run_trust *trust,
							const struct identity *identity, struct fleet_lines **out, struct rv_errtext *et) {
	struct fleet_lines *l = calloc(1, sizeof *l);
	if (l == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a member's connections");
	*l = (struct fleet_lines){.base = base, .server = server};
	for (int i = 0; i < LINES; i++)
		l->lines[i].all = l;
	enum rv_err e = tls_context_new(identity, TLS_CLIENTS_MUST, &l->tls, et);
	if (e != RV_OK) {
		fleet_lines_free(l);
		return e;
	}
	tls_trust(l->tls, trust);
	*out = l;
	return RV_OK;
}

static SSL *ssl_of(const struct line *k) {
	return bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(k->ec));
}

static void add_traffic(const struct line *k, struct fleet_traffic *t) {
	if (k->ec == NULL)
		return;
	t->tx_bytes += BIO_number_written(SSL_get_wbio(ssl_of(k)));
	t->rx_bytes += BIO_number_read(SSL_get_rbio(ssl_of(k)));
}

struct fleet_traffic fleet_lines_traffic(const struct fleet_lines *l) {
	struct fleet_traffic t = l->closed;
	for (int i = 0; i < LINES; i++)
		add_traffic(&l->lines[i], &t);
	return t;
}

static void hang_up(struct line *k) {
	add_traffic(k, &k->all->closed);
	if (k->ec != NULL)
		evhttp_connection_free(k->ec);
	k->ec = NULL;
	k->failed = false;
}

void fleet_lines_free(struct fleet_lines *l) {
	if (l == NULL)
		return;
	for (int i = 0; i < LINES; i++)
		hang_up(&l->lines[i]);
	SSL_CTX_free(l->tls);
	free(l);
}

static enum rv_err connect_line(struct line *k, struct rv_errtext *et) {
	const struct fleet_lines *l = k->all;
	SSL *ssl = SSL_new(l->tls);
	struct bufferevent *bev = NULL;
	if (ssl != NULL)
		bev = bufferevent_openssl_socket_new(l->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a connection");
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	k->ec = evhttp_connection_base_bufferevent_new(l->base, NULL, bev, l->server->host, l->server->port);
	return k->ec != NULL ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a connection");
}

static void count(struct line *k, const struct http_reply *r) {
	struct fleet_traffic *t = &k->all->closed;
	t->requests++;
	t->faults += r->err != RV_OK;
	if (!k->is_document || (r->status != STATUS_OK && r->status != STATUS_IM_USED))
		return;
	t->documents++;
	t->document_bytes += r->body_bytes;
}

static void on_done(struct evhttp_request *rq, void *line) {
	struct line *k = line;
	struct http_reply r = {.err = RV_E_IO, .text = "the connection failed"};
	if (rq != NULL && evhttp_request_get_response_code(rq) != 0) {
		struct evbuffer *in = evhttp_request_get_input_buffer(rq);
		size_t n = evbuffer_get_length(in);
		(void)evbuffer_add(in, "", 1);
		r = (struct http_reply){.status = evhttp_request_get_response_code(rq),
								.body = evbuffer_pullup(in, -1),
								.body_bytes = n,
								.text = ""};
	}
	k->rq = NULL;
	k->failed = r.err != RV_OK;
	count(k, &r);
	k->done(k->ctx, &r);
}

static struct line *free_line(struct fleet_lines *l, bool is_document) {
	if (is_document)
		return l->lines[0].rq == NULL ? &l->lines[0] : NULL;
	for (int i = 1; i < LINES; i++)
		if (l->lines[i].rq == NULL)
			return &l->lines[i];
	return NULL;
}

static enum rv_err prepare(struct line *k, const struct http_request *rq, struct rv_errtext *et) {
	if (k->failed)
		hang_up(k);
	if (k->ec == NULL)
		RV_TRY(connect_line(k, et));
	evhttp_connection_set_max_body_size(k->ec, (ev_ssize_t)rq->max_reply_bytes);
	const struct timeval tv = {.tv_sec = rq->timeout_ms / MS_PER_S, .tv_usec = rq->timeout_ms % MS_PER_S * US_PER_MS};
	evhttp_connection_set_timeout_tv(k->ec, &tv);
	k->rq = evhttp_request_new(on_done, k);
	if (k->rq == NULL || evhttp_add_header(evhttp_request_get_output_headers(k->rq), "Host", k->all->server->host) != 0)
		return rv_fail(et, RV_E_NOMEM, "no memory for a request");
	if (rq->body != NULL)
		(void)evbuffer_add(evhttp_request_get_output_buffer(k->rq), rq->body, rq->body_bytes);
	return RV_OK;
}

enum rv_err fleet_lines_start(void *lines, const struct http_request *rq, uint32_t *id, struct rv_errtext *et) {
	struct fleet_lines *l = lines;
	bool is_document = strncmp(rq->path, "/v1/document", sizeof "/v1/document" - 1) == 0;
	struct line *k = free_line(l, is_document);
	if (k == NULL)
		return rv_fail(et, RV_E_FULL, "all of a member's %d connections are in use", LINES);
	RV_TRY(prepare(k, rq, et));
	k->done = rq->done;
	k->ctx = rq->ctx;
	k->is_document = is_document;
	*id = k->id = ++l->last_id;
	if (evhttp_make_request(k->ec, k->rq, rq->body != NULL ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, rq->path) == 0)
		return RV_OK;
	k->rq = NULL; /* libevent has freed it */
	k->failed = true;
	return rv_fail(et, RV_E_IO, "the request could not be sent");
}

void fleet_lines_cancel(void *lines, uint32_t id) {
	struct fleet_lines *l = lines;
	for (int i = 0; i < LINES; i++) {
		struct line *k = &l->lines[i];
		if (k->rq == NULL || k->id != id)
			continue;
		k->rq = NULL; /* before its callback can be called */
		hang_up(k);
	}
}
