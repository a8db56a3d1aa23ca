/* http_client.c: libcurl's multi interface as the worker's line and wait (net/http_client.h). */
#include "net/http_client.h"

#include "base/assert.h"
#include "base/os_sockets.h"
#include "net/stranded.h"
#include "net/tls.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	DEFAULT_CONNECT_MS = 10000,
	DEFAULT_TIMEOUT_MS = 30000,
	KEEPALIVE_S = 4,
	UNACKNOWLEDGED_MS = 10000,
	FIRST_REPLY_BYTES = 4096,
	MAX_POLL_FDS = 512,
	MAX_SOCKETS = 32, /* known by their descriptor; libcurl keeps a few idle ones */
	MAX_WAIT_MS = 60000,
	URL_BYTES = NET_ADDR_BYTES + HTTP_MAX_PATH_BYTES + 16
};

struct request {
	uint32_t id; /* 0: free */
	CURL *easy;
	struct curl_slist *headers;
	uint8_t *body; /* copy of what is posted */
	uint8_t *reply;
	size_t reply_bytes, reply_cap, max_reply_bytes;
	bool too_long, no_memory;
	void (*done)(void *ctx, const struct http_reply *reply);
	void *ctx;
	char curl_text[CURL_ERROR_SIZE];
};

struct http_client {
	CURLM *multi;
	struct http_traffic traffic;
	struct identity identity;
	struct run_trust trust;
	char addr[NET_ADDR_BYTES];
	const char *name;
	int64_t connect_timeout_ms;
	int unacknowledged_ms;
	uint32_t last_id;
	int sockets[MAX_SOCKETS]; /* open ones of libcurl's; n_sockets of them */
	int n_sockets;
	struct address met, own; /* ends of the connection of the last answer; no host: none came */
	struct request requests[HTTP_MAX_REQUESTS];
	struct curl_waitfd fds[MAX_POLL_FDS];
};

/* ---- life ---- */

enum rv_err http_client_new(const struct http_client_config *cfg, struct http_client **out, struct rv_errtext *et) {
	*out = NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return rv_fail(et, RV_E_UNSUPPORTED, "libcurl does not start");
	struct http_client *c = calloc(1, sizeof *c);
	enum rv_err e = RV_OK;
	if (c == NULL) {
		curl_global_cleanup();
		return rv_fail(et, RV_E_NOMEM, "no memory for the HTTPS client");
	}
	c->name = cfg->server_name != NULL ? cfg->server_name : "coordinator";
	c->connect_timeout_ms = cfg->connect_timeout_ms > 0 ? cfg->connect_timeout_ms : DEFAULT_CONNECT_MS;
	c->unacknowledged_ms = UNACKNOWLEDGED_MS;
	c->identity = *cfg->identity;
	c->trust = cfg->trust;
	if (!address_format(&cfg->server, c->addr))
		e = rv_fail(et, RV_E_INVALID, "%s: the address is too long", c->name);
	else if ((c->multi = curl_multi_init()) == NULL)
		e = rv_fail(et, RV_E_NOMEM, "no memory for the HTTPS client");
	if (e != RV_OK)
		http_client_free(c);
	else
		*out = c;
	return e;
}

const struct run_trust *http_client_trust(const struct http_client *c) {
	return &c->trust;
}

void http_client_set_unacknowledged(struct http_client *c, int64_t ms) {
	RV_ASSERT(ms > 0 && ms <= INT_MAX);
	c->unacknowledged_ms = (int)ms;
}

static void request_release(struct http_client *c, struct request *r) {
	if (r->easy != NULL) {
		curl_multi_remove_handle(c->multi, r->easy);
		curl_easy_cleanup(r->easy);
	}
	curl_slist_free_all(r->headers);
	free(r->body);
	free(r->reply);
	*r = (struct request){0};
}

void http_client_free(struct http_client *c) {
	if (c == NULL)
		return;
	for (int i = 0; i < HTTP_MAX_REQUESTS; i++)
		request_release(c, &c->requests[i]);
	curl_multi_cleanup(c->multi);
	identity_release(&c->identity);
	free(c);
	curl_global_cleanup();
}

/* ---- starting a request ---- */

/* libcurl's write callback: gathers the reply up to its limit. */
static size_t take_reply(char *data, size_t size, size_t n, void *ctx) {
	struct request *r = ctx;
	size_t bytes = size * n;
	if (bytes > r->max_reply_bytes - r->reply_bytes) {
		r->too_long = true;
		return CURL_WRITEFUNC_ERROR;
	}
	size_t need = r->reply_bytes + bytes + 1;
	if (need > r->reply_cap) {
		size_t cap = r->reply_cap > 0 ? r->reply_cap : FIRST_REPLY_BYTES;
		while (cap < need)
			cap *= 2;
		uint8_t *reply = realloc(r->reply, cap);
		if (reply == NULL) {
			r->no_memory = true;
			return CURL_WRITEFUNC_ERROR;
		}
		r->reply = reply;
		r->reply_cap = cap;
	}
	memcpy(r->reply + r->reply_bytes, data, bytes);
	r->reply_bytes += bytes;
	r->reply[r->reply_bytes] = '\0';
	return bytes;
}

/* The first option that libcurl refuses stays in *worst. */
#define SET(easy, option, value, worst)                                                                                \
	do {                                                                                                               \
		CURLcode rc_ = curl_easy_setopt(easy, option, value);                                                          \
		if (rc_ != CURLE_OK)                                                                                           \
			*(worst) = rc_;                                                                                            \
	} while (0)

/* Sets the client's certificate and key in libcurl's TLS context, and whom it believes. */
static CURLcode set_tls(CURL *easy, void *ssl_ctx, void *client) {
	struct http_client *c = client;
	(void)easy;
	tls_trust(ssl_ctx, &c->trust);
	return tls_identify(ssl_ctx, &c->identity) ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
}

/* That the key serves the run is the whole of the trust (set_tls): no authority, no name, no proxy,
 * no environment. */
static void set_trust(struct http_client *c, CURL *easy, CURLcode *worst) {
	SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3, worst);
	SET(easy, CURLOPT_SSL_VERIFYPEER, 0L, worst);
	SET(easy, CURLOPT_SSL_VERIFYHOST, 0L, worst);
	SET(easy, CURLOPT_SSL_CTX_FUNCTION, set_tls, worst);
	SET(easy, CURLOPT_SSL_CTX_DATA, c, worst);
	SET(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L, worst);
	SET(easy, CURLOPT_PROXY, "", worst);
	SET(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED, worst);
	SET(easy, CURLOPT_PROTOCOLS_STR, "https", worst);
}

/* libcurl 7.88 has no option for it. Without it Linux sends nine probes, 40 s of them. */
static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
	struct http_client *c = ctx;
	(void)purpose;
	os_socket_limit_unacknowledged(fd, c->unacknowledged_ms);
	if (c->n_sockets < MAX_SOCKETS)
		c->sockets[c->n_sockets++] = fd;
	return CURL_SOCKOPT_OK;
}

static int close_socket(void *ctx, curl_socket_t fd) {
	struct http_client *c = ctx;
	for (int i = 0; i < c->n_sockets; i++)
		if (c->sockets[i] == fd)
			c->sockets[i--] = c->sockets[--c->n_sockets];
	return close(fd);
}

/* libcurl finds the other end closed, on a connection that is in use and on an idle one alike. */
void http_client_drop_stranded(struct http_client *c) {
	for (int i = 0; i < c->n_sockets; i++)
		if (socket_is_stranded(c->sockets[i]))
			(void)shutdown(c->sockets[i], SHUT_RDWR);
}

void http_client_drop_all(struct http_client *c) {
	for (int i = 0; i < c->n_sockets; i++)
		(void)shutdown(c->sockets[i], SHUT_RDWR);
}

static void set_transfer(struct http_client *c, struct request *r, const struct http_request *rq, CURLcode *worst) {
	CURL *easy = r->easy;
	char url[URL_BYTES];
	snprintf(url, sizeof url, "https://%s%s", c->addr, rq->path);
	SET(easy, CURLOPT_URL, url, worst);
	SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1, worst);
	SET(easy, CURLOPT_FOLLOWLOCATION, 0L, worst);
	SET(easy, CURLOPT_NOSIGNAL, 1L, worst);
	/* A request that waits for its answer sends nothing: only this finds out that the other host
	 * has vanished, or has started anew and knows nothing of the connection. */
	SET(easy, CURLOPT_TCP_KEEPALIVE, 1L, worst);
	SET(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S, worst);
	SET(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S, worst);
	SET(easy, CURLOPT_SOCKOPTFUNCTION, set_socket, worst);
	SET(easy, CURLOPT_SOCKOPTDATA, c, worst);
	SET(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket, worst);
	SET(easy, CURLOPT_CLOSESOCKETDATA, c, worst);
	SET(easy, CURLOPT_USERAGENT, "rivulet/" RV_VERSION, worst);
	SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms, worst);
	SET(easy, CURLOPT_TIMEOUT_MS, (long)(rq->timeout_ms > 0 ? rq->timeout_ms : DEFAULT_TIMEOUT_MS), worst);
	SET(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)rq->max_reply_bytes, worst);
	SET(easy, CURLOPT_WRITEFUNCTION, take_reply, worst);
	SET(easy, CURLOPT_WRITEDATA, r, worst);
	SET(easy, CURLOPT_ERRORBUFFER, r->curl_text, worst);
	SET(easy, CURLOPT_PRIVATE, r, worst);
}

static void set_range(struct request *r, const struct http_request *rq, CURLcode *worst) {
	char range[64];
	if (rq->range_bytes == 0)
		return;
	snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)rq->range_begin,
			 (unsigned long long)(rq->range_begin + rq->range_bytes - 1));
	SET(r->easy, CURLOPT_RANGE, range, worst);
}

static enum rv_err set_body(struct request *r, const struct http_request *rq, CURLcode *worst) {
	if (rq->body == NULL)
		return RV_OK;
	r->body = malloc(rq->body_bytes > 0 ? rq->body_bytes : 1);
	r->headers = curl_slist_append(NULL, "Content-Type: application/octet-stream");
	struct curl_slist *more = r->headers != NULL ? curl_slist_append(r->headers, "Expect:") : NULL;
	if (r->body == NULL || more == NULL)
		return RV_E_NOMEM;
	if (rq->body_bytes > 0)
		memcpy(r->body, rq->body, rq->body_bytes);
	SET(r->easy, CURLOPT_POST, 1L, worst);
	SET(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_bytes, worst);
	SET(r->easy, CURLOPT_POSTFIELDS, r->body, worst);
	SET(r->easy, CURLOPT_HTTPHEADER, r->headers, worst);
	return RV_OK;
}

static enum rv_err request_start(struct http_client *c, struct request *r, const struct http_request *rq,
								 struct rv_errtext *et) {
	CURLcode worst = CURLE_OK;
	r->done = rq->done;
	r->ctx = rq->ctx;
	r->max_reply_bytes = rq->max_reply_bytes;
	r->easy = curl_easy_init();
	if (r->easy == NULL || set_body(r, rq, &worst) != RV_OK)
		return rv_fail(et, RV_E_NOMEM, "no memory for a request");
	set_transfer(c, r, rq, &worst);
	set_range(r, rq, &worst);
	set_trust(c, r->easy, &worst);
	if (worst != CURLE_OK)
		return rv_fail(et, RV_E_UNSUPPORTED, "this libcurl lacks something that is needed: %s",
					   curl_easy_strerror(worst));
	if (curl_multi_add_handle(c->multi, r->easy) != CURLM_OK)
		return rv_fail(et, RV_E_NOMEM, "no memory for a request");
	return RV_OK;
}

enum rv_err http_client_start(struct http_client *c, const struct http_request *rq, uint32_t *id,
							  struct rv_errtext *et) {
	struct request *r = NULL;
	if (rq->path[0] != '/' || strlen(rq->path) >= HTTP_MAX_PATH_BYTES)
		return rv_fail(et, RV_E_INVALID, "path \"%.64s\": must start with '/' and be shorter than %d", rq->path,
					   HTTP_MAX_PATH_BYTES);
	for (int i = 0; i < HTTP_MAX_REQUESTS && r == NULL; i++)
		if (c->requests[i].id == 0)
			r = &c->requests[i];
	if (r == NULL)
		return rv_fail(et, RV_E_FULL, "%d requests to the %s are under way", HTTP_MAX_REQUESTS, c->name);
	enum rv_err e = request_start(c, r, rq, et);
	if (e != RV_OK) {
		request_release(c, r);
		return e;
	}
	c->last_id = c->last_id == UINT32_MAX ? 1 : c->last_id + 1;
	r->id = c->last_id;
	if (id != NULL)
		*id = r->id;
	return RV_OK;
}

void http_client_cancel(struct http_client *c, uint32_t id) {
	for (int i = 0; i < HTTP_MAX_REQUESTS; i++)
		if (id != 0 && c->requests[i].id == id)
			request_release(c, &c->requests[i]);
}

/* ---- ending a request ---- */

static enum rv_err explain(const struct http_client *c, const struct request *r, CURLcode rc, struct rv_errtext *et) {
	const char *detail = r->curl_text[0] != '\0' ? r->curl_text : curl_easy_strerror(rc);
	if (r->too_long || rc == CURLE_FILESIZE_EXCEEDED)
		return rv_fail(et, RV_E_RANGE, "%s %s: the reply is longer than %zu bytes", c->name, c->addr,
					   r->max_reply_bytes);
	if (r->no_memory || rc == CURLE_OUT_OF_MEMORY)
		return rv_fail(et, RV_E_NOMEM, "%s %s: no memory for the reply", c->name, c->addr);
	switch (rc) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return rv_fail(et, RV_E_NOTFOUND, "%s %s: the host's name is not known (%s)", c->name, c->addr, detail);
	case CURLE_COULDNT_CONNECT:
		return rv_fail(et, RV_E_CLOSED, "%s %s refused the connection: is it running? (%s)", c->name, c->addr, detail);
	case CURLE_OPERATION_TIMEDOUT:
		return rv_fail(et, RV_E_TIMEOUT, "%s %s does not answer (%s)", c->name, c->addr, detail);
	case CURLE_PEER_FAILED_VERIFICATION:
		return rv_fail(
			et, RV_E_AUTH,
			"%s %s has another key than the invite link says: it is not this run's, or the run's operator has "
			"replaced that key; ask for a new link",
			c->name, c->addr);
	case CURLE_SSL_CONNECT_ERROR:
		return rv_fail(et, RV_E_PROTOCOL, "%s %s: no TLS 1.3 connection (%s)", c->name, c->addr, detail);
	default:
		return rv_fail(et, RV_E_CLOSED, "%s %s: %s", c->name, c->addr, detail);
	}
}

static void note_end(struct request *r, CURLINFO of_ip, CURLINFO of_port, struct address *out) {
	char *ip = NULL;
	long port = 0;
	curl_easy_getinfo(r->easy, of_ip, &ip);
	curl_easy_getinfo(r->easy, of_port, &port);
	if (ip == NULL || ip[0] == '\0' || strlen(ip) >= sizeof out->host)
		return;
	*out = (struct address){.port = (uint16_t)port};
	memcpy(out->host, ip, strlen(ip));
}

static void note_ends(struct http_client *c, struct request *r) {
	note_end(r, CURLINFO_PRIMARY_IP, CURLINFO_PRIMARY_PORT, &c->met);
	note_end(r, CURLINFO_LOCAL_IP, CURLINFO_LOCAL_PORT, &c->own);
}

bool http_client_met(const struct http_client *c, struct address *out) {
	*out = c->met;
	return c->met.host[0] != '\0';
}

bool http_client_own(const struct http_client *c, struct address *out) {
	*out = c->own;
	return c->own.host[0] != '\0';
}

static void count_bytes(struct http_client *c, CURL *easy) {
	long request = 0, headers = 0;
	curl_off_t up = 0, down = 0;
	curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request);
	curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &headers);
	curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
	curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	c->traffic.tx_bytes += (uint64_t)request + (uint64_t)up;
	c->traffic.rx_bytes += (uint64_t)headers + (uint64_t)down;
}

struct http_traffic http_client_traffic(const struct http_client *c) {
	return c->traffic;
}

/* The request is over and free before its callback runs, so that the callback can start the next
 * one. */
static void finish(struct http_client *c, struct request *r, CURLcode rc) {
	struct rv_errtext et = {0};
	long status = 0;
	struct http_reply reply = {.text = et.text};
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	count_bytes(c, r->easy);
	if (rc != CURLE_OK)
		reply.err = explain(c, r, rc, &et);
	else
		reply.status = (int)status;
	if (rc == CURLE_OK)
		note_ends(c, r);
	uint8_t *body = r->reply;
	reply.body = body != NULL ? body : (const uint8_t *)"";
	reply.body_bytes = rc == CURLE_OK ? r->reply_bytes : 0;
	r->reply = NULL;
	void (*done)(void *, const struct http_reply *) = r->done;
	void *ctx = r->ctx;
	request_release(c, r);
	done(ctx, &reply);
	free(body);
}

/* Returns how many callbacks it called. */
static int finish_all(struct http_client *c) {
	CURLMsg *msg;
	int left, n = 0;
	while ((msg = curl_multi_info_read(c->multi, &left)) != NULL) {
		struct request *r;
		if (msg->msg != CURLMSG_DONE)
			continue;
		CURLcode rc = msg->data.result; /* msg dies with the handle */
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &r);
		finish(c, r, rc);
		n++;
	}
	return n;
}

/* ---- the wait ---- */

static void fds_to_curl(struct http_client *c, const struct pollfd *fds, int n) {
	for (int i = 0; i < n; i++) {
		short events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
							   (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
		c->fds[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = events};
	}
}

enum rv_err http_client_poll(struct http_client *c, struct pollfd *fds, int n_fds, int64_t timeout_us,
							 struct rv_errtext *et) {
	RV_ASSERT(n_fds >= 0 && n_fds <= MAX_POLL_FDS);
	bool long_wait = timeout_us < 0 || timeout_us > MAX_WAIT_MS * INT64_C(1000);
	int timeout_ms = long_wait ? MAX_WAIT_MS : (int)((timeout_us + 999) / 1000);
	int running;
	CURLMcode rc = curl_multi_perform(c->multi, &running);
	if (finish_all(c) > 0)
		timeout_ms = 0; /* the caller has news to act on */
	fds_to_curl(c, fds, n_fds);
	if (rc == CURLM_OK)
		rc = curl_multi_poll(c->multi, c->fds, (unsigned)n_fds, timeout_ms, NULL);
	/* libcurl keeps errors and hang-ups to itself: ask once more, without waiting. */
	if (n_fds > 0)
		(void)poll(fds, (nfds_t)n_fds, 0);
	if (rc == CURLM_OK)
		rc = curl_multi_perform(c->multi, &running);
	finish_all(c);
	return rc == CURLM_OK ? RV_OK : rv_fail(et, RV_E_IO, "waiting for the network: %s", curl_multi_strerror(rc));
}

void http_client_wakeup(struct http_client *c) {
	(void)curl_multi_wakeup(c->multi);
}
