/* reach.c: see reach.h. */
#include "worker/reach/reach.h"

#include "base/clock.h"
#include "net/tls.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOKUP_AGAIN_US = 50 * RV_US_PER_MS, OUT_BYTES = 8 * NET_MAX_RELAY_FRAME_BYTES };

/* A lookup that the C library does: it may outlive the connection that needed it. */
struct lookup {
	struct gaicb request, *list[1];
	char host[NET_ADDR_BYTES];
};

struct reach {
	struct reach_owner owner;
	struct peers *peers;
	char coordinator[NET_ADDR_BYTES];
	SSL_CTX *tls;
	struct reach_core *core;
	int64_t now_us; /* of the call under way */
	struct relay_ref relay;
	struct address at; /* numeric, once known */
	struct lookup *lookup;
	struct lookup *orphan; /* given up, but the name service's thread has not ended it yet */
	int fd;                /* -1: no connection */
	SSL *ssl;
	bool is_connected, is_secured; /* TCP; TLS, and the key is the relay's */
	short waits_for;
	char broken[128]; /* why connecting failed at once: for the next reach_handle; "": it did not */
	uint8_t in[NET_MAX_RELAY_FRAME_BYTES], out[OUT_BYTES];
	size_t n_in, n_out;
	uint64_t core_memory[];
};

/* ---- the connection's end ---- */

static void free_lookup(struct lookup *l) {
	if (l->request.ar_result != NULL)
		freeaddrinfo(l->request.ar_result);
	free(l);
}

static void end_lookup(struct reach *r) {
	struct lookup *l = r->lookup;
	r->lookup = NULL;
	if (l != NULL && gai_cancel(&l->request) == EAI_NOTCANCELED)
		r->orphan = l; /* to wait for it would take as long as the name service does */
	else if (l != NULL)
		free_lookup(l);
}

/* Returns true if no lookup is left that was given up. */
static bool free_orphan(struct reach *r) {
	if (r->orphan == NULL)
		return true;
	if (gai_error(&r->orphan->request) == EAI_INPROGRESS)
		return false;
	free_lookup(r->orphan);
	r->orphan = NULL;
	return true;
}

static void disconnect(void *ctx) {
	struct reach *r = ctx;
	end_lookup(r);
	SSL_free(r->ssl);
	r->ssl = NULL;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	r->is_connected = r->is_secured = false;
	r->n_in = r->n_out = 0;
	r->broken[0] = '\0';
}

static void lost(struct reach *r, const char *why) {
	disconnect(r);
	reach_core_lost(r->core, r->now_us, why);
}

static void fails(struct reach *r, const char *why) {
	(void)snprintf(r->broken, sizeof r->broken, "%s", why);
}

/* ---- connecting ---- */

static void dial(struct reach *r) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (!address_to_socket(&r->at, &sa, &n)) {
		fails(r, "its address is not usable");
		return;
	}
	r->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	r->waits_for = POLLOUT;
	if (r->fd < 0 || (connect(r->fd, (struct sockaddr *)&sa, n) != 0 && errno != EINPROGRESS))
		fails(r, strerror(errno));
}

static void look_up(struct reach *r) {
	if (!free_orphan(r)) {
		fails(r, "the name service does not answer");
		return;
	}
	struct lookup *l = calloc(1, sizeof *l);
	if (l == NULL) {
		fails(r, "no memory");
		return;
	}
	memcpy(l->host, r->at.host, sizeof l->host);
	l->request.ar_name = l->host;
	l->list[0] = &l->request;
	if (getaddrinfo_a(GAI_NOWAIT, l->list, 1, NULL) != 0) {
		free(l);
		fails(r, "the name service cannot be asked");
		return;
	}
	r->lookup = l;
}

static void begin(void *ctx, const struct relay_ref *to) {
	struct reach *r = ctx;
	struct sockaddr_storage sa;
	socklen_t n;
	disconnect(r);
	r->relay = *to;
	if (address_parse(to->addr, &r->at, NULL) != RV_OK)
		r->at = (struct address){0}; /* the document's check allows none such */
	uint16_t port = r->at.port;
	if (strcmp(r->at.host, r->coordinator) == 0 && r->owner.coordinator_at(r->owner.ctx, &r->at))
		r->at.port = port;
	if (!address_to_socket(&r->at, &sa, &n))
		look_up(r);
	else
		dial(r);
}

static void take_lookup(struct reach *r) {
	int error = gai_error(&r->lookup->request);
	if (error == EAI_INPROGRESS)
		return;
	uint16_t port = r->at.port;
	if (error == 0) {
		struct sockaddr_storage sa = {0};
		const struct addrinfo *first = r->lookup->request.ar_result;
		memcpy(&sa, first->ai_addr, first->ai_addrlen);
		address_of_socket(&sa, &r->at);
		r->at.port = port;
	}
	end_lookup(r);
	if (error != 0)
		lost(r, gai_strerror(error));
	else
		dial(r);
}

static void take_connection(struct reach *r) {
	int error = 0;
	socklen_t n = sizeof error;
	if (getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		error = errno;
	if (error != 0) {
		lost(r, strerror(error));
		return;
	}
	r->is_connected = true;
	r->ssl = SSL_new(r->tls);
	if (r->ssl == NULL || SSL_set_fd(r->ssl, r->fd) != 1) {
		lost(r, "no memory");
		return;
	}
	SSL_set_connect_state(r->ssl);
}

/* Returns true if the operation shall be tried again when the socket is ready; else the connection
 * is lost. */
static bool waits(struct reach *r, int rc) {
	int why = SSL_get_error(r->ssl, rc);
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		r->waits_for = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return true;
	}
	lost(r, why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL ? "it closed the connection" : tls_error_text());
	return false;
}

static void secure(struct reach *r) {
	uint8_t key[NET_KEY_BYTES];
	ERR_clear_error();
	int rc = SSL_do_handshake(r->ssl);
	if (rc <= 0) {
		(void)waits(r, rc);
		return;
	}
	if (!tls_peer_key(r->ssl, key) || memcmp(key, r->relay.key, NET_KEY_BYTES) != 0) {
		lost(r, "it does not hold the key that the document names");
		return;
	}
	r->is_secured = true;
	r->waits_for = POLLIN;
	reach_core_connected(r->core, r->now_us);
}

/* ---- frames ---- */

static void flush(struct reach *r) {
	while (r->is_secured && r->n_out > 0) {
		size_t n = 0;
		ERR_clear_error();
		int rc = SSL_write_ex(r->ssl, r->out, r->n_out, &n);
		if (rc <= 0) {
			(void)waits(r, rc);
			return;
		}
		r->n_out -= n;
		memmove(r->out, r->out + n, r->n_out);
	}
	if (r->is_secured)
		r->waits_for = POLLIN;
}

/* A relay that does not read gets no more; the next PING finds out. */
static void send_frame(void *ctx, const struct relay_frame *m) {
	struct reach *r = ctx;
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	if (!r->is_secured || r->n_out + n > sizeof r->out)
		return;
	memcpy(r->out + r->n_out, bytes, n);
	r->n_out += n;
}

/* Takes the frames that are whole. Returns false when the connection is gone. */
static bool take_frames(struct reach *r) {
	size_t used = 1;
	while (used > 0) {
		struct relay_frame m;
		struct rv_errtext et;
		if (relay_frame_decode(r->in, r->n_in, &m, &used, &et) != RV_OK) {
			lost(r, et.text);
			return false;
		}
		if (used == 0)
			break;
		r->n_in -= used;
		memmove(r->in, r->in + used, r->n_in);
		if (reach_core_frame(r->core, r->now_us, &m, &et) != RV_OK)
			return false;
	}
	return true;
}

static void receive(struct reach *r) {
	bool goes_on = true;
	while (goes_on && r->is_secured) {
		size_t n = 0;
		ERR_clear_error();
		int rc = SSL_read_ex(r->ssl, r->in + r->n_in, sizeof r->in - r->n_in, &n);
		if (rc <= 0) {
			(void)waits(r, rc);
			return;
		}
		r->n_in += n;
		goes_on = take_frames(r);
	}
}

/* ---- the core's other operations ---- */

static void ask_tickets(void *ctx, uint64_t peers) {
	const struct reach *r = ctx;
	r->owner.ask_tickets(r->owner.ctx, peers);
}

static void offer(void *ctx, uint32_t peer, const uint8_t token[NET_TOKEN_BYTES]) {
	const struct reach *r = ctx;
	struct route route = {.kind = ROUTE_RELAY, .at = r->at};
	memcpy(route.token, token, sizeof route.token);
	(void)peers_offer_route(r->peers, r->now_us, peer, &route);
}

static void tell(void *ctx, const struct reach_event *e) {
	const struct reach *r = ctx;
	r->owner.tell(r->owner.ctx, e);
}

/* ---- life ---- */

enum rv_err reach_new(const struct reach_shell_config *cfg, struct reach **out, struct rv_errtext *et) {
	struct reach *r = calloc(1, sizeof *r + reach_core_size());
	if (r == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the station at a relay");
	r->owner = cfg->owner;
	r->peers = cfg->peers;
	r->fd = -1;
	memcpy(r->coordinator, cfg->coordinator, sizeof r->coordinator);
	enum rv_err e = tls_context_new(cfg->identity, TLS_CLIENTS_MUST, &r->tls, et);
	if (e != RV_OK) {
		free(r);
		return e;
	}
	const struct reach_config core = {.ops = {.ctx = r,
											  .connect = begin,
											  .close = disconnect,
											  .send = send_frame,
											  .ask_tickets = ask_tickets,
											  .offer = offer,
											  .tell = tell},
									  .hello = cfg->hello,
									  .seed = cfg->seed};
	r->core = reach_core_init(r->core_memory, &core);
	*out = r;
	return RV_OK;
}

void reach_free(struct reach *r) {
	if (r == NULL)
		return;
	const struct relay_frame leave = {.type = RELAY_LEAVE};
	if (reach_core_state(r->core) == REACH_UP) {
		send_frame(r, &leave);
		flush(r);
	}
	disconnect(r);
	(void)free_orphan(r); /* one that is still under way is left: its thread writes to it */
	SSL_CTX_free(r->tls);
	free(r);
}

struct reach_core *reach_core_of(struct reach *r) {
	return r->core;
}

/* ---- the loop ---- */

bool reach_pollfd(const struct reach *r, struct pollfd *out) {
	if (r->fd < 0)
		return false;
	*out = (struct pollfd){.fd = r->fd, .events = (short)(r->waits_for | (r->is_secured ? POLLIN : 0))};
	return true;
}

void reach_handle(struct reach *r, int64_t now_us, short revents) {
	r->now_us = now_us;
	if (r->lookup != NULL)
		take_lookup(r);
	if (r->broken[0] != '\0') {
		char why[sizeof r->broken];
		memcpy(why, r->broken, sizeof why);
		lost(r, why);
	}
	if (revents != 0 && r->fd >= 0 && !r->is_connected)
		take_connection(r);
	if (revents != 0 && r->is_connected && !r->is_secured)
		secure(r);
	if (revents != 0 && r->is_secured)
		receive(r);
	reach_core_tick(r->core, now_us);
	flush(r);
}

int64_t reach_deadline_us(const struct reach *r, int64_t now_us) {
	int64_t at = reach_core_deadline_us(r->core);
	if (r->broken[0] != '\0')
		return now_us;
	return r->lookup != NULL && at > now_us + LOOKUP_AGAIN_US ? now_us + LOOKUP_AGAIN_US : at;
}
