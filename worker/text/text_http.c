/* text_http.c: see text_http.h. */
#include "worker/text/text_http.h"

#include "base/assert.h"
#include "base/os_sockets.h"
#include "net/ca_file.h"
#include "train/text/published/mirror_hosts.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	MAX_REDIRECTS = 3,
	CONNECT_MS = 10000,
	LEAST_BYTES_PER_S = 1000, /* over LEAST_S, of any answer */
	LEAST_S = 20,
	RESUMES_MAX = 4,
	RESUME_LEAST_BYTES = 1 << 16, /* of progress, for another try at once */
	FIRST_BYTES = 1 << 16,        /* of a buffer that grows */
	URL_BYTES = TEXT_URL_BYTES + TEXT_HTTP_NAME_BYTES + 2,
	S_US = 1000000
};

struct transfer {
	struct text_http *http;
	uint32_t id; /* 0: free */
	CURL *easy;
	struct curl_slist *headers;
	struct text_mirror mirror;
	char url[URL_BYTES];
	uint64_t begin, end, size; /* as in the request; `begin` moves with what has been delivered */
	uint8_t *buffer;           /* of the range under way */
	size_t got, cap;
	uint64_t skip;    /* of the body: what a server without ranges sends before */
	uint64_t resumed; /* begin + got when the transfer under way began */
	int resumes;
	bool checked;    /* status and lengths of the answer */
	bool is_private; /* the connection was refused: the address is narrower than allowed */
	bool is_foreign; /* the same: a redirect to a host that nobody agreed to */
	bool no_memory, ended;
	struct rv_errtext wrong; /* what no honest server answers; "": nothing */
	char curl_text[CURL_ERROR_SIZE];
};

struct text_http {
	struct text_http_owner owner;
	struct text_keys keys;
	const char *hosts;
	enum address_reach met;
	int64_t most_per_s;
	CURLM *multi;
	struct transfer at[TEXT_HTTP_REQUESTS];
};

/* ---- life ---- */

enum rv_err text_http_new(const struct text_http_config *cfg, struct text_http **out, struct rv_errtext *et) {
	*out = NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return rv_fail(et, RV_E_UNSUPPORTED, "libcurl does not start");
	struct text_http *h = calloc(1, sizeof *h);
	if (!h) {
		curl_global_cleanup();
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch text");
	}
	h->owner = cfg->owner;
	h->keys = *cfg->keys;
	h->hosts = cfg->hosts;
	h->met = cfg->met;
	h->most_per_s = cfg->most_per_s;
	h->multi = curl_multi_init();
	if (!h->multi) {
		text_http_free(h);
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch text");
	}
	*out = h;
	return RV_OK;
}

static void stop(struct transfer *t) {
	if (t->easy) {
		curl_multi_remove_handle(t->http->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	t->easy = NULL;
	curl_slist_free_all(t->headers);
	t->headers = NULL;
}

static void release(struct transfer *t) {
	stop(t);
	free(t->buffer);
	*t = (struct transfer){0};
}

void text_http_free(struct text_http *h) {
	if (!h)
		return;
	for (int i = 0; i < TEXT_HTTP_REQUESTS; i++)
		if (h->at[i].id != 0)
			release(&h->at[i]);
	curl_multi_cleanup(h->multi);
	free(h);
	curl_global_cleanup();
}

/* ---- an answer ---- */

static long status_of(const struct transfer *t) {
	long status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool wrong(struct transfer *t, const char *what, uint64_t is, uint64_t must) {
	(void)rv_fail(&t->wrong, RV_E_PROTOCOL, "%.300s: %s %llu, must be %llu", t->url, what, (unsigned long long)is,
				  (unsigned long long)must);
	return false;
}

static bool check_partial(struct transfer *t) {
	struct curl_header *line;
	uint64_t first, last, total;
	if (curl_easy_header(t->easy, "Content-Range", 0, CURLH_HEADER, -1, &line) != CURLHE_OK ||
		!text_content_range(line->value, &first, &last, &total)) {
		(void)rv_fail(&t->wrong, RV_E_PROTOCOL, "%.300s: a partial answer without a valid Content-Range", t->url);
		return false;
	}
	if (first != t->begin + t->got)
		return wrong(t, "it sends bytes from", first, t->begin + t->got);
	if (last != t->end - 1)
		return wrong(t, "it sends bytes up to", last, t->end - 1);
	return total == UINT64_MAX || total == t->size || wrong(t, "its size is", total, t->size);
}

/* A server without ranges sends all of it: what was not asked for is skipped. */
static bool check_whole(struct transfer *t) {
	curl_off_t length = -1;
	curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	if (t->size == 0)
		return length <= (curl_off_t)t->end || wrong(t, "its size is", (uint64_t)length, t->end);
	if (length >= 0 && (uint64_t)length != t->size)
		return wrong(t, "its size is", (uint64_t)length, t->size);
	t->skip = t->begin + t->got;
	if (t->end - t->begin < t->size)
		t->http->owner.on_whole(t->http->owner.ctx, t->id);
	return true;
}

/* Looks at the head when the first byte of the body comes. Bodies of faults are not read. */
static bool check_answer(struct transfer *t) {
	const long status = status_of(t);
	t->checked = true;
	if (status == 206 && t->size != 0)
		return check_partial(t);
	return status == 200 && check_whole(t);
}

static bool make_room(struct transfer *t, size_t n) {
	if (t->got + n <= t->cap)
		return true;
	size_t cap = t->cap ? t->cap : FIRST_BYTES;
	while (cap < t->got + n)
		cap *= 2;
	uint8_t *buffer = realloc(t->buffer, cap);
	t->no_memory = !buffer;
	if (!buffer)
		return false;
	t->buffer = buffer;
	t->cap = cap;
	return true;
}

/* Returns the bytes of the range under way, or the most of a file of unknown size. */
static uint64_t range_left(const struct transfer *t) {
	const uint64_t left = t->end - t->begin;
	return (t->size == 0 || left < TEXT_RANGE_BYTES ? left : TEXT_RANGE_BYTES) - t->got;
}

/* Hands a full range over. Returns false if nothing more is to come. */
static bool deliver(struct transfer *t) {
	const size_t n = t->got;
	const bool last = t->begin + n == t->end;
	t->begin += n;
	t->got = 0;
	t->ended = !t->http->owner.on_range(t->http->owner.ctx, t->id, t->buffer, n, last) || last;
	return !t->ended;
}

/* Returns false if the transfer is to end: all is here, or too much, or nobody wants it. */
static bool take(struct transfer *t, const uint8_t *bytes, size_t n) {
	while (n > 0) {
		const uint64_t left = range_left(t);
		const size_t part = n < left ? n : (size_t)left;
		if (part == 0)
			return wrong(t, "it is longer than", t->end, t->end);
		if (!make_room(t, part))
			return false;
		memcpy(t->buffer + t->got, bytes, part);
		t->got += part;
		bytes += part;
		n -= part;
		if (t->size != 0 && part == left && !deliver(t))
			return true; /* what may still come is not read */
	}
	t->http->owner.on_progress(t->http->owner.ctx, t->id, t->size ? (uint32_t)t->got : 0);
	return true;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx) {
	struct transfer *t = ctx;
	const size_t bytes = size * n;
	if (t->ended || (!t->checked && !check_answer(t)))
		return CURL_WRITEFUNC_ERROR;
	const size_t before = bytes < t->skip ? bytes : (size_t)t->skip;
	t->skip -= before;
	if (bytes > before && !take(t, (const uint8_t *)data + before, bytes - before))
		return CURL_WRITEFUNC_ERROR;
	return bytes;
}

/* ---- a request ---- */

/* Returns true if the URL is at the mirror's host, or at another one that was agreed to: a mirror
 * does not make workers connect elsewhere. */
static bool may_follow(const struct transfer *t, const char *url) {
	char own[MIRROR_HOST_BYTES], host[MIRROR_HOST_BYTES];
	return mirror_host(t->mirror.url, own) && mirror_host(url, host) &&
		   (strcmp(own, host) == 0 || mirror_hosts_have(t->http->hosts, url));
}

static bool is_foreign_now(struct transfer *t) {
	const char *url = NULL;
	curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
	return url == NULL || !may_follow(t, url);
}

/* Refuses a host before its name is looked up: a look-up tells its owner who asks. */
static int begin_lookup(void *resolver, void *reserved, void *ctx) {
	struct transfer *t = ctx;
	(void)resolver, (void)reserved;
	t->is_foreign = is_foreign_now(t);
	return t->is_foreign;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to) {
	struct transfer *t = ctx;
	struct sockaddr_storage sa = {0};
	struct address a;
	(void)purpose;
	if (to->addrlen > sizeof sa)
		return CURL_SOCKET_BAD;
	memcpy(&sa, &to->addr, to->addrlen);
	address_of_socket(&sa, &a);
	t->is_private = !t->mirror.is_own && !address_is_dialable(&a, t->http->met);
	t->is_foreign = is_foreign_now(t);
	return t->is_private || t->is_foreign ? CURL_SOCKET_BAD : os_socket_open(to->family, to->socktype);
}

/* The first option that libcurl refuses stays in *worst: without one of them, a request might go
 * where it must not. */
#define SET(easy, option, value, worst)                                                                                \
	do {                                                                                                               \
		CURLcode rc_ = curl_easy_setopt(easy, option, value);                                                          \
		if (rc_ != CURLE_OK)                                                                                           \
			*(worst) = rc_;                                                                                            \
	} while (0)

static void add_header(struct transfer *t, const char *line, CURLcode *worst) {
	struct curl_slist *more = curl_slist_append(t->headers, line);
	if (more)
		t->headers = more;
	else
		*worst = CURLE_OUT_OF_MEMORY;
}

static void set_signature(struct transfer *t, CURLcode *worst) {
	char provider[96], user[2 * TEXT_KEY_BYTES + 1], token[TEXT_TOKEN_BYTES + 32];
	const struct text_keys *k = &t->http->keys;
	if (!t->mirror.is_signed)
		return;
	(void)snprintf(provider, sizeof provider, "aws:amz:%s:s3", k->region);
	(void)snprintf(user, sizeof user, "%s:%s", k->id, k->secret);
	SET(t->easy, CURLOPT_AWS_SIGV4, provider, worst);
	SET(t->easy, CURLOPT_USERPWD, user, worst);
	add_header(t, "x-amz-content-sha256: UNSIGNED-PAYLOAD", worst);
	(void)snprintf(token, sizeof token, "x-amz-security-token: %s", k->token);
	if (k->token[0])
		add_header(t, token, worst);
	SET(t->easy, CURLOPT_HTTPHEADER, t->headers, worst);
}

static void set_options(struct transfer *t, CURLcode *worst) {
	char range[64];
	CURL *c = t->easy;
	SET(c, CURLOPT_URL, t->url, worst);
	SET(c, CURLOPT_PRIVATE, t, worst);
	SET(c, CURLOPT_PROTOCOLS_STR, "http,https", worst);
	SET(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https", worst);
	SET(c, CURLOPT_FOLLOWLOCATION, t->mirror.is_store ? 0L : 1L, worst);
	SET(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS, worst);
	SET(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1, worst);
	SET(c, CURLOPT_PROXY, "", worst);
	SET(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED, worst);
	SET(c, CURLOPT_NOSIGNAL, 1L, worst);
	SET(c, CURLOPT_USERAGENT, "rivulet/" RV_VERSION, worst);
	SET(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS, worst);
	SET(c, CURLOPT_LOW_SPEED_LIMIT, (long)LEAST_BYTES_PER_S, worst);
	SET(c, CURLOPT_LOW_SPEED_TIME, (long)LEAST_S, worst);
	SET(c, CURLOPT_RESOLVER_START_FUNCTION, begin_lookup, worst);
	SET(c, CURLOPT_RESOLVER_START_DATA, t, worst);
	SET(c, CURLOPT_OPENSOCKETFUNCTION, open_socket, worst);
	SET(c, CURLOPT_OPENSOCKETDATA, t, worst);
	SET(c, CURLOPT_WRITEFUNCTION, on_body, worst);
	SET(c, CURLOPT_WRITEDATA, t, worst);
	SET(c, CURLOPT_ERRORBUFFER, t->curl_text, worst);
	SET(c, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)t->http->most_per_s, worst);
	if (*worst == CURLE_OK)
		*worst = ca_file_use(c);
	set_signature(t, worst);
	(void)snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)(t->begin + t->got),
				   (unsigned long long)(t->end - 1));
	if (t->size != 0 && (t->begin + t->got > 0 || t->end < t->size))
		SET(c, CURLOPT_RANGE, range, worst);
}

/* Requests what is missing. */
static bool begin(struct transfer *t) {
	t->checked = t->is_private = t->is_foreign = false;
	t->skip = 0;
	t->resumed = t->begin + t->got;
	t->curl_text[0] = '\0';
	t->easy = curl_easy_init();
	CURLcode worst = CURLE_OK;
	if (!t->easy)
		return false;
	set_options(t, &worst);
	return worst == CURLE_OK && curl_multi_add_handle(t->http->multi, t->easy) == CURLM_OK;
}

void text_http_set_most(struct text_http *h, int64_t most_per_s) {
	h->most_per_s = most_per_s;
}

enum rv_err text_http_start(struct text_http *h, const struct text_http_request *rq, struct rv_errtext *et) {
	struct transfer *t = NULL;
	RV_ASSERT(rq->id != 0 && rq->bytes > 0 && (rq->size != 0 ? rq->begin + rq->bytes <= rq->size : rq->begin == 0));
	RV_ASSERT(rq->begin % TEXT_RANGE_BYTES == 0);
	for (int i = 0; i < TEXT_HTTP_REQUESTS && !t; i++)
		if (h->at[i].id == 0)
			t = &h->at[i];
	if (!t)
		return rv_fail(et, RV_E_FULL, "%d requests for text under way", TEXT_HTTP_REQUESTS);
	*t = (struct transfer){.http = h,
						   .id = rq->id,
						   .mirror = *rq->mirror,
						   .begin = rq->begin,
						   .end = rq->begin + rq->bytes,
						   .size = rq->size};
	const int n = snprintf(t->url, sizeof t->url, "%s/%s", rq->mirror->url, rq->name);
	if (n > 0 && (size_t)n < sizeof t->url && begin(t))
		return RV_OK;
	release(t);
	return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to fetch it", rq->mirror->url);
}

void text_http_cancel(struct text_http *h, uint32_t id) {
	for (int i = 0; i < TEXT_HTTP_REQUESTS; i++)
		if (id != 0 && h->at[i].id == id)
			release(&h->at[i]);
}

/* ---- the end of a transfer ---- */

static enum text_failure failure_of_status(long status) {
	if (status == 429 || status == 503)
		return TEXT_BUSY;
	if (status >= 500)
		return TEXT_CUT;
	return status >= 400 && status != 416 ? TEXT_GONE : TEXT_WRONG;
}

static enum text_failure failure_of(const struct transfer *t, CURLcode rc, struct rv_errtext *et) {
	const char *text = t->curl_text[0] ? t->curl_text : curl_easy_strerror(rc);
	const long status = status_of(t);
	if (t->wrong.text[0]) {
		*et = t->wrong;
		return TEXT_WRONG;
	}
	if (t->is_private) {
		(void)rv_fail(et, RV_E_AUTH, "%.300s: at a private address, which a mirror may not have here", t->url);
		return TEXT_WRONG;
	}
	if (t->is_foreign) {
		(void)rv_fail(et, RV_E_AUTH, "%.300s: leads to a host that nobody here has agreed to", t->url);
		return TEXT_WRONG;
	}
	if (rc == CURLE_TOO_MANY_REDIRECTS || rc == CURLE_UNSUPPORTED_PROTOCOL) {
		(void)rv_fail(et, RV_E_PROTOCOL, "%.300s: %s", t->url, text);
		return TEXT_WRONG;
	}
	if (status != 0 && status != 200 && status != 206) {
		(void)rv_fail(et, RV_E_IO, "%.300s: status %ld", t->url, status);
		return failure_of_status(status);
	}
	(void)rv_fail(et, RV_E_CLOSED, "%.300s: %s", t->url, rc == CURLE_OK ? "it ended early" : text);
	return rc == CURLE_OK ? TEXT_WRONG : TEXT_CUT;
}

/* The status of a fault comes without a body, or with one that was not read. */
static bool may_resume(struct transfer *t, enum text_failure why) {
	return why == TEXT_CUT && t->size != 0 && t->begin + t->got >= t->resumed + RESUME_LEAST_BYTES &&
		   t->resumes++ < RESUMES_MAX;
}

static void finish_unknown(struct transfer *t) {
	t->ended = true;
	(void)t->http->owner.on_range(t->http->owner.ctx, t->id, t->buffer, t->got, true);
}

static void end(struct transfer *t, CURLcode rc) {
	struct text_http *h = t->http;
	const uint32_t id = t->id;
	struct rv_errtext text = {0};
	curl_off_t retry_s = 0;
	if (t->size == 0 && rc == CURLE_OK && status_of(t) == 200 && !t->wrong.text[0])
		finish_unknown(t);
	if (t->ended && !t->wrong.text[0]) {
		release(t);
		return;
	}
	const enum text_failure why = failure_of(t, rc, &text);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_s);
	stop(t);
	if (may_resume(t, why) && begin(t))
		return;
	release(t);
	h->owner.on_failed(h->owner.ctx, id, why, retry_s > 0 && retry_s < 86400 ? retry_s * S_US : 0, text.text);
}

/* Frees the places of transfers of which all was handed over: a mirror need not end its answer. */
static void release_ended(struct text_http *h) {
	for (int i = 0; i < TEXT_HTTP_REQUESTS; i++)
		if (h->at[i].id != 0 && h->at[i].ended && !h->at[i].wrong.text[0])
			release(&h->at[i]);
}

enum rv_err text_http_poll(struct text_http *h, int timeout_ms, struct rv_errtext *et) {
	int running, left;
	if (curl_multi_poll(h->multi, NULL, 0, timeout_ms, NULL) != CURLM_OK)
		return rv_fail(et, RV_E_IO, "waiting for mirrors failed");
	if (curl_multi_perform(h->multi, &running) != CURLM_OK)
		return rv_fail(et, RV_E_IO, "libcurl failed");
	for (const CURLMsg *m = curl_multi_info_read(h->multi, &left); m; m = curl_multi_info_read(h->multi, &left)) {
		struct transfer *t = NULL;
		if (m->msg != CURLMSG_DONE)
			continue;
		const CURLcode rc = m->data.result;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		end(t, rc);
	}
	release_ended(h);
	return RV_OK;
}

void text_http_wakeup(struct text_http *h) {
	curl_multi_wakeup(h->multi);
}
