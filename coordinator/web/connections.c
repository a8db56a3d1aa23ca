/* connections.c: see connections.h. An SSL object lives exactly as long as its connection, so the
 * record of a connection hangs on it as "ex data" and is freed with it. The peer's address is known
 * only once evhttp has given it its socket, after it was made: it is looked up when the next one is
 * made, or at the next sweep. Those of one member, and strangers' of one address, share a chain of
 * a hash table: a request costs the same however many others are connected. */
#include "coordinator/web/connections.h"

#include "base/clock.h"
#include "coordinator/web/plain_http.h"
#include "net/tls.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

enum {
	PER_HOST_SHARE = 4,                  /* share of connections for strangers of one address: a fourth, */
	PER_HOST_MIN = 8,                    /* but at least this many: a browser opens six */
	STRANGERS_SHARE = 8,                 /* share kept for strangers, whatever members hold: an eighth */
	RESERVED_SHARE = 8,                  /* share kept for the operator: an eighth, */
	RESERVED_MAX = 8,                    /* but at most this many */
	FIRST_REQUEST_US = 15 * RV_US_PER_S, /* handshake and first request */
	NEXT_REQUEST_US = 60 * RV_US_PER_S,  /* more than a long poll and a pause */
	CHAINS = 4096
};

struct connection {
	struct connections *all;
	LIST_ENTRY(connection) link;
	LIST_ENTRY(connection) chained;
	bool in_chain;
	uint64_t number; /* grows: the oldest has the lowest */
	SSL *ssl;
	int64_t deadline_us;
	char site[NET_ADDR_BYTES]; /* of its address (address_site); "": not looked up yet */
	enum connection_role role;
	uint8_t key[NET_KEY_BYTES]; /* a member's */
	bool ended;                 /* shut down, not yet freed */
};

struct connections {
	SSL_CTX *ctx;
	int ex_index;
	int count, max;
	int n_open; /* of `count`, those that are not ended */
	uint64_t last_number, ended;
	LIST_HEAD(, connection) open;                 /* the newest first */
	LIST_HEAD(, connection) chains[CHAINS];       /* members' by key, strangers' by site */
	char place[NET_ADDR_BYTES];                   /* HOST:PORT, for those that come with plain HTTP */
	uint8_t chain_key[crypto_shorthash_KEYBYTES]; /* so that nobody can choose a chain */
	void (*on_full)(void *owner, bool full);
	void *owner;
};

static unsigned chain_of(const struct connections *c, enum connection_role role, const char *site, const uint8_t *key) {
	uint64_t hash;
	uint8_t out[crypto_shorthash_BYTES];
	_Static_assert(sizeof out == sizeof hash, "SipHash-2-4 has 64 bits");
	if (role == CONNECTION_MEMBER)
		(void)crypto_shorthash(out, key, NET_KEY_BYTES, c->chain_key);
	else
		(void)crypto_shorthash(out, (const uint8_t *)site, strlen(site), c->chain_key);
	memcpy(&hash, out, sizeof hash);
	return (unsigned)(hash % CHAINS);
}

static void unchain(struct connection *k) {
	if (k->in_chain)
		LIST_REMOVE(k, chained);
	k->in_chain = false;
}

/* Puts the connection where those of its member, or of its site, are. */
static void chain(struct connection *k) {
	struct connections *c = k->all;
	unchain(k);
	LIST_INSERT_HEAD(&c->chains[chain_of(c, k->role, k->site, k->key)], k, chained);
	k->in_chain = true;
}

static void drop(struct connection *k) {
	struct connections *c = k->all;
	LIST_REMOVE(k, link);
	unchain(k);
	c->n_open -= !k->ended;
	free(k);
	if (c->count-- == c->max)
		c->on_full(c->owner, false);
}

/* Forgets a connection whose SSL object OpenSSL frees. */
static void forget(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx, long argl, void *argp) {
	(void)parent, (void)ad, (void)idx, (void)argl, (void)argp;
	if (ptr != NULL)
		drop(ptr);
}

enum rv_err connections_new(SSL_CTX *ctx, int max, void (*on_full)(void *owner, bool full), void *owner,
							struct connections **out, struct rv_errtext *et) {
	struct connections *c = calloc(1, sizeof *c);
	*out = c;
	if (c == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the connections");
	*c = (struct connections){.ctx = ctx, .max = max, .on_full = on_full, .owner = owner};
	crypto_shorthash_keygen(c->chain_key);
	c->ex_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, forget);
	if (c->ex_index >= 0)
		return RV_OK;
	free(c);
	*out = NULL;
	return rv_fail(et, RV_E_NOMEM, "no memory for the connections");
}

void connections_free(struct connections *c) {
	if (c == NULL)
		return;
	while (!LIST_EMPTY(&c->open)) { /* not yet freed by libevent */
		(void)SSL_set_ex_data(LIST_FIRST(&c->open)->ssl, c->ex_index, NULL);
		drop(LIST_FIRST(&c->open));
	}
	(void)CRYPTO_free_ex_index(CRYPTO_EX_INDEX_SSL, c->ex_index);
	free(c);
}

void connections_at(struct connections *c, const struct address *place) {
	(void)address_format(place, c->place);
}

void connections_use(struct connections *c, SSL_CTX *ctx) {
	c->ctx = ctx;
}

int connections_count(const struct connections *c) {
	return c->count;
}

/* Ends a connection: evhttp reads the end, and frees it all. One without a socket ends with its
 * deadline. */
static void end(struct connection *k) {
	int fd = SSL_get_fd(k->ssl);
	if (fd >= 0)
		(void)shutdown(fd, SHUT_RDWR);
	else
		k->deadline_us = 0;
	k->all->n_open -= !k->ended;
	k->all->ended += !k->ended;
	k->ended = true;
}

/* Selects open connections of one role: a member's by `key`, or strangers' by `site`. */
struct wanted {
	enum connection_role role;
	const char *site;
	const uint8_t *key;
	const struct connection *but;
};

static bool is_wanted(const struct connection *k, const struct wanted *w) {
	if (k->role != w->role || k->ended || k == w->but)
		return false;
	return w->role == CONNECTION_MEMBER ? memcmp(k->key, w->key, NET_KEY_BYTES) == 0 : strcmp(k->site, w->site) == 0;
}

/* Finds the oldest of these connections. Returns how many there are. */
static int find(const struct connections *c, const struct wanted *w, struct connection **oldest) {
	struct connection *k;
	int n = 0;
	*oldest = NULL;
	LIST_FOREACH(k, &c->chains[chain_of(c, w->role, w->site, w->key)], chained) {
		if (!is_wanted(k, w))
			continue;
		*oldest = *oldest == NULL || k->number < (*oldest)->number ? k : *oldest;
		n++;
	}
	return n;
}

/* Finds the oldest of all strangers' connections. Returns how many there are. */
static int find_strangers(const struct connections *c, struct connection **oldest) {
	struct connection *k;
	int n = 0;
	*oldest = NULL;
	LIST_FOREACH(k, &c->open, link) {
		if (k->role != CONNECTION_STRANGER || k->ended)
			continue;
		*oldest = k; /* the list begins with the newest */
		n++;
	}
	return n;
}

/* Returns the oldest connection of the member that has most, or NULL: no member has any. */
static struct connection *find_of_greediest(const struct connections *c) {
	struct connection *k, *victim = NULL, *oldest;
	int most = 0;
	LIST_FOREACH(k, &c->open, link) {
		if (k->role != CONNECTION_MEMBER || k->ended)
			continue;
		int n = find(c, &(struct wanted){.role = CONNECTION_MEMBER, .key = k->key}, &oldest);
		victim = n > most ? oldest : victim;
		most = n > most ? n : most;
	}
	return victim;
}

/* Looks up the site; returns false if there is no socket yet. */
static bool look_up_site(struct connection *k) {
	struct sockaddr_storage sa;
	struct address from;
	socklen_t n = sizeof sa;
	int fd = SSL_get_fd(k->ssl);
	if (k->site[0] == '\0' && fd >= 0 && getpeername(fd, (struct sockaddr *)&sa, &n) == 0) {
		address_of_socket(&sa, &from);
		address_site(from.host, k->site);
		chain(k);
	}
	return k->site[0] != '\0';
}

static int most_of(int share, const struct connections *c) {
	int most = c->max / share;
	return most > 1 ? most : 1;
}

/* Ends strangers' connections beyond the limit of their address, so that no address keeps others
 * out. */
static void limit_hosts(const struct connections *c) {
	struct connection *k, *oldest;
	int per_host = c->max / PER_HOST_SHARE > PER_HOST_MIN ? c->max / PER_HOST_SHARE : PER_HOST_MIN;
	LIST_FOREACH(k, &c->open, link) {
		const struct wanted strangers = {.role = CONNECTION_STRANGER, .site = k->site};
		if (k->site[0] == '\0' && look_up_site(k) && find(c, &strangers, &oldest) > per_host)
			end(oldest);
	}
}

/* Ends connections until as many places are free as are reserved for the operator. */
static void keep_reserve(const struct connections *c) {
	int reserved = most_of(RESERVED_SHARE, c) < RESERVED_MAX ? most_of(RESERVED_SHARE, c) : RESERVED_MAX;
	for (int excess = c->n_open - (c->max - reserved); excess > 0; excess--) {
		struct connection *stranger, *member = NULL;
		if (find_strangers(c, &stranger) <= most_of(STRANGERS_SHARE, c))
			member = find_of_greediest(c);
		struct connection *victim = member != NULL ? member : stranger;
		if (victim == NULL)
			return; /* all are the operator's */
		end(victim);
	}
}

static struct connection *add(struct connections *c, SSL *ssl) {
	struct connection *k = calloc(1, sizeof *k);
	if (k == NULL || SSL_set_ex_data(ssl, c->ex_index, k) != 1) {
		free(k);
		return NULL;
	}
	*k = (struct connection){
		.all = c, .number = ++c->last_number, .ssl = ssl, .deadline_us = rv_clock_monotonic_us() + FIRST_REQUEST_US};
	LIST_INSERT_HEAD(&c->open, k, link);
	c->n_open++;
	if (++c->count == c->max)
		c->on_full(c->owner, true);
	limit_hosts(c);
	keep_reserve(c);
	return k;
}

/* Answers one that came with plain HTTP, when its handshake has failed. */
static void on_handshake(const SSL *ssl, int where, int result) {
	const struct connections *c = SSL_get_app_data(ssl);
	if (where == SSL_CB_ACCEPT_EXIT && result <= 0)
		plain_http_answer(ssl, c->place);
}

/* Makes a connection and takes over `ssl`. Returns NULL without memory. */
static struct bufferevent *make(struct event_base *base, struct connections *c, SSL *ssl) {
	struct connection *k = add(c, ssl);
	(void)SSL_up_ref(ssl); /* releases of libevent differ in whether a failed call below frees it */
	struct bufferevent *bev = NULL;
	if (k != NULL)
		bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (k != NULL && bev == NULL) {
		(void)SSL_set_ex_data(ssl, c->ex_index, NULL);
		drop(k);
	}
	SSL_free(ssl);
	return bev;
}

struct bufferevent *connections_make(struct event_base *base, void *connections) {
	struct connections *c = connections;
	SSL *ssl = SSL_new(c->ctx);
	if (ssl != NULL && SSL_set_app_data(ssl, c) == 1)
		SSL_set_info_callback(ssl, on_handshake);
	struct bufferevent *bev = ssl != NULL ? make(base, c, ssl) : NULL;
	if (bev != NULL)
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1); /* HTTP marks the end of a message itself */
	return bev;
}

static SSL *ssl_of(struct evhttp_request *rq) {
	struct evhttp_connection *ec = evhttp_request_get_connection(rq);
	return bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(ec));
}

bool connections_is_secure(struct evhttp_request *rq) {
	return ssl_of(rq) != NULL;
}

void connections_touch(struct connections *c, struct evhttp_request *rq, enum connection_role role, const uint8_t *key,
					   int64_t now_us) {
	struct connection *oldest, *k = SSL_get_ex_data(ssl_of(rq), c->ex_index);
	k->deadline_us = now_us + NEXT_REQUEST_US;
	bool same = k->role == role && (role != CONNECTION_MEMBER || memcmp(k->key, key, sizeof k->key) == 0);
	k->role = role;
	if (role == CONNECTION_MEMBER)
		memcpy(k->key, key, sizeof k->key);
	if (!same)
		chain(k);
	if (role != CONNECTION_MEMBER)
		return;
	const struct wanted others = {.role = CONNECTION_MEMBER, .key = key, .but = k};
	while (find(c, &others, &oldest) >= CONNECTIONS_PER_MEMBER)
		end(oldest);
}

void connections_extend(const struct connections *c, struct evhttp_request *rq, int64_t now_us) {
	struct connection *k = SSL_get_ex_data(ssl_of(rq), c->ex_index);
	k->deadline_us = now_us + NEXT_REQUEST_US;
}

bool connections_has_ended(const struct connections *c, struct evhttp_request *rq) {
	const struct connection *k = SSL_get_ex_data(ssl_of(rq), c->ex_index);
	return k->ended;
}

uint64_t connections_ended(const struct connections *c) {
	return c->ended;
}

void connections_sweep(struct connections *c, int64_t now_us) {
	limit_hosts(c);
	struct connection *k;
	LIST_FOREACH(k, &c->open, link) {
		if (now_us >= k->deadline_us)
			end(k);
	}
}

bool connections_key(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES]) {
	return tls_peer_key(ssl_of(rq), key);
}

static void host_of(int fd, int (*name)(int fd, struct sockaddr *sa, socklen_t *n), char out[NET_ADDR_BYTES]) {
	struct sockaddr_storage sa = {0};
	struct address at = {0};
	socklen_t n = sizeof sa;
	if (fd >= 0 && name(fd, (struct sockaddr *)&sa, &n) == 0)
		address_of_socket(&sa, &at);
	memcpy(out, at.host, NET_ADDR_BYTES);
}

void connections_ends(struct evhttp_request *rq, char far[NET_ADDR_BYTES], char own[NET_ADDR_BYTES]) {
	int fd = SSL_get_fd(ssl_of(rq));
	host_of(fd, getpeername, far);
	host_of(fd, getsockname, own);
}
