/* connections.c: see connections.h. An SSL object lives exactly as long as its connection, so the record of a
 * connection hangs on it as "ex data" and is freed with it. */
#include "coordinator/connections.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/tls.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
	FIRST_REQUEST_US = 15 * RV_US_PER_S, /* handshake and first request */
	NEXT_REQUEST_US = 60 * RV_US_PER_S,  /* more than a long poll and a pause */
};

struct connection {
	struct connections *all;
	struct connection *next, *prev;
	SSL *ssl;
	int64_t deadline_us;
	bool known; /* has shown a key that belongs here */
};

struct connections {
	SSL_CTX *ctx;
	int ex_index;
	int count, max;
	struct connection *first;
	void (*on_full)(void *owner, bool full);
	void *owner;
};

/* OpenSSL frees the SSL object. */
static void forget(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx, long argl, void *argp) {
	(void)parent, (void)ad, (void)idx, (void)argl, (void)argp;
	struct connection *k = ptr;
	if (k == NULL)
		return;
	struct connections *c = k->all;
	if (k->prev != NULL)
		k->prev->next = k->next;
	else
		c->first = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	free(k);
	if (c->count-- == c->max)
		c->on_full(c->owner, false);
}

enum rv_err connections_new(SSL_CTX *ctx, int max, void (*on_full)(void *owner, bool full), void *owner,
							struct connections **out, struct rv_errtext *et) {
	struct connections *c = calloc(1, sizeof *c);
	*out = c;
	if (c == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the connections");
	*c = (struct connections){.ctx = ctx, .max = max, .on_full = on_full, .owner = owner};
	c->ex_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, forget);
	RV_ASSERT(c->ex_index >= 0);
	return RV_OK;
}

void connections_free(struct connections *c) {
	if (c == NULL)
		return;
	RV_ASSERT(c->count == 0);
	(void)CRYPTO_free_ex_index(CRYPTO_EX_INDEX_SSL, c->ex_index);
	free(c);
}

int connections_count(const struct connections *c) {
	return c->count;
}

/* evhttp reads the end, and frees it all. */
static bool end(const struct connection *k) {
	int fd = SSL_get_fd(k->ssl);
	return fd >= 0 && shutdown(fd, SHUT_RDWR) == 0;
}

/* Of those that showed no key of ours. Strangers cannot keep members out by holding every connection. */
static void end_oldest_stranger(const struct connections *c) {
	const struct connection *oldest = NULL;
	for (const struct connection *k = c->first; k != NULL; k = k->next)
		if (!k->known)
			oldest = k; /* the list begins with the newest */
	if (oldest != NULL)
		(void)end(oldest);
}

struct bufferevent *connections_make(struct event_base *base, void *connections) {
	struct connections *c = connections;
	SSL *ssl = SSL_new(c->ctx);
	struct connection *k = calloc(1, sizeof *k);
	RV_ASSERT(ssl != NULL && k != NULL); /* not to be answered in plain text */
	*k = (struct connection){
		.all = c, .next = c->first, .ssl = ssl, .deadline_us = rv_clock_monotonic_us() + FIRST_REQUEST_US};
	if (c->first != NULL)
		c->first->prev = k;
	c->first = k;
	RV_ASSERT(SSL_set_ex_data(ssl, c->ex_index, k) == 1);
	if (++c->count == c->max) {
		c->on_full(c->owner, true);
		end_oldest_stranger(c);
	}
	struct bufferevent *bev =
		bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	RV_ASSERT(bev != NULL);
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1); /* HTTP says itself where a message ends */
	return bev;
}

static SSL *ssl_of(struct evhttp_request *rq) {
	struct evhttp_connection *ec = evhttp_request_get_connection(rq);
	return bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(ec));
}

void connections_touch(struct connections *c, struct evhttp_request *rq, bool known, int64_t now_us) {
	struct connection *k = SSL_get_ex_data(ssl_of(rq), c->ex_index);
	k->deadline_us = now_us + NEXT_REQUEST_US;
	k->known = known;
}

void connections_sweep(struct connections *c, int64_t now_us) {
	for (struct connection *k = c->first; k != NULL; k = k->next)
		if (now_us >= k->deadline_us)
			(void)end(k);
}

bool connections_key(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES]) {
	return tls_peer_key(ssl_of(rq), key);
}
