/* relay_server.c: see relay_server.h. A connection's first byte decides: 0x16 is a TLS handshake
 * (RFC 8446 section 5.1), and so a station; anything else has to be a preamble. */
#include "coordinator/relay/relay_server.h"

#include "base/clock.h"
#include "coordinator/relay/internal.h"
#include "net/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TLS_HANDSHAKE = 0x16,
	FREEING_TURNS = 4 /* of the loop, in which libevent frees bufferevents */
};

/* ---- connections ---- */

static void connection_free(struct connection *c) {
	if (c->other != NULL)
		c->other->other = NULL;
	if (c->readable != NULL)
		event_free(c->readable);
	if (c->writable != NULL)
		event_free(c->writable);
	if (c->station != NULL)
		bufferevent_free(c->station);
	if (c->fd >= 0)
		(void)close(c->fd);
	free(c->flow.bytes);
	free(c);
}

/* Stops the events of an end whose other end is freed; its CLOSE follows. */
static void forget(struct connection *c) {
	if (c->other != NULL) {
		(void)event_del(c->other->readable);
		(void)event_del(c->other->writable);
	}
	c->server->connections[c->number] = NULL;
	connection_free(c);
}

void relay_server_lost(struct connection *c) {
	struct relay_server *s = c->server;
	int number = c->number;
	forget(c);
	relay_closed(s->core, number);
	relay_server_act(s);
}

/* ---- what the core decides ---- */

static void send_frame(struct connection *c, const struct relay_frame *m) {
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	if (c->station != NULL) {
		station_send(c, m);
		return;
	}
	size_t n = relay_frame_encode(m, bytes); /* a reflection: the buffer of a new socket has room for it */
	(void)send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns the connection that could not be joined; NULL: both were. */
static struct connection *act(struct relay_server *s, const struct relay_action *a) {
	struct connection *c = s->connections[a->connection];
	if (c == NULL)
		return NULL;
	if (a->type == RELAY_SEND)
		send_frame(c, &a->frame);
	else if (a->type == RELAY_CLOSE)
		forget(c);
	else if (!splice_begin(c, s->connections[a->other]))
		return c;
	return NULL;
}

void relay_server_act(struct relay_server *s) {
	struct relay_action a;
	int failed = -1;
	while (relay_next_action(s->core, &a)) {
		struct connection *c = act(s, &a);
		failed = c != NULL ? c->number : failed;
	}
	if (failed >= 0 && s->connections[failed] != NULL)
		relay_server_lost(s->connections[failed]);
}

/* ---- new connections ---- */

static void take_preamble(struct connection *c) {
	struct relay_server *s = c->server;
	struct relay_preamble m;
	if (relay_preamble_decode(c->preamble, &m, NULL) != RV_OK) {
		relay_server_lost(c);
		return;
	}
	(void)event_del(c->readable); /* what follows is read once the link is made */
	relay_take_preamble(s->core, rv_clock_monotonic_us(), c->number, &m);
	relay_server_act(s);
}

static void on_first_bytes(evutil_socket_t fd, short what, void *connection) {
	(void)what;
	struct connection *c = connection;
	uint8_t *to = c->preamble + c->n_preamble;
	bool first = c->n_preamble == 0;
	size_t most = first ? 1 : RELAY_PREAMBLE_BYTES - c->n_preamble;
	ssize_t n = recv(fd, to, most, first ? MSG_PEEK : 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && first && *to == TLS_HANDSHAKE) {
		(void)event_del(c->readable);
		if (!station_begin(c))
			relay_server_lost(c);
		return;
	}
	if (n > 0 && first)
		n = recv(fd, to, RELAY_PREAMBLE_BYTES, 0);
	if (n <= 0) {
		relay_server_lost(c);
		return;
	}
	c->n_preamble += (size_t)n;
	if (c->n_preamble == RELAY_PREAMBLE_BYTES)
		take_preamble(c);
}

static bool watch(struct connection *c) {
	int yes = 1;
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	c->readable = event_new(c->server->base, c->fd, EV_READ | EV_PERSIST, on_first_bytes, c);
	return c->readable != NULL && event_add(c->readable, NULL) == 0;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *sa, int n, void *server) {
	(void)listener;
	struct relay_server *s = server;
	struct sockaddr_storage from = {0};
	struct address at;
	memcpy(&from, sa, (size_t)n < sizeof from ? (size_t)n : sizeof from);
	address_of_socket(&from, &at);
	struct connection *c = calloc(1, sizeof *c);
	int number = c != NULL ? relay_accept(s->core, rv_clock_monotonic_us(), &at) : -1;
	relay_server_act(s);
	if (number < 0) {
		(void)close((int)fd);
		free(c);
		return;
	}
	*c = (struct connection){.server = s, .number = number, .fd = (int)fd};
	s->connections[number] = c;
	if (!watch(c))
		relay_server_lost(c);
}

/* Pauses until the next tick rather than spin: most likely out of file descriptors. */
static void on_accept_error(struct evconnlistener *listener, void *server) {
	(void)server;
	(void)evconnlistener_disable(listener);
}

static void on_tick(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct relay_server *s = server;
	relay_tick(s->core, rv_clock_monotonic_us());
	relay_server_act(s);
	for (int i = 0; i < RELAY_CONNECTIONS; i++)
		if (s->connections[i] != NULL)
			splice_resume(s->connections[i]);
	(void)evconnlistener_enable(s->listener);
}

/* ---- life ---- */

static void any_bytes(void *ctx, void *out, size_t n) {
	(void)ctx;
	randombytes_buf(out, n);
}

static void raise_file_limit(void) {
	struct rlimit limit;
	const rlim_t wanted = 2 * RELAY_CONNECTIONS;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* else accept() fails before the tables are full */
}

static enum rv_err set_up(struct relay_server *s, const struct relay_server_config *cfg, struct rv_errtext *et) {
	const struct timeval tick = {.tv_usec = RELAY_TICK_MS * RV_US_PER_MS};
	struct relay_config core = {
		.bytes_per_day = cfg->bytes_per_day, .bytes_per_s = cfg->bytes_per_s, .random = any_bytes};
	memcpy(core.run_key, cfg->run_key, sizeof core.run_key);
	RV_TRY(tls_context_new(cfg->identity, TLS_CLIENTS_MUST, &s->tls, et));
	void *memory = malloc(relay_core_size());
	s->core = memory != NULL ? relay_core_init(memory, &core, rv_clock_monotonic_us()) : NULL;
	s->timer = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	if (s->core == NULL || s->timer == NULL || event_add(s->timer, &tick) != 0)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	s->listener =
		evconnlistener_new(s->base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, cfg->listen_fd);
	if (s->listener == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay's socket");
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	raise_file_limit();
	return RV_OK;
}

enum rv_err relay_server_new(struct event_base *base, const struct relay_server_config *cfg, struct relay_server **out,
							 struct rv_errtext *et) {
	struct relay_server *s = calloc(1, sizeof *s);
	*out = NULL;
	if (s != NULL)
		s->base = base;
	enum rv_err e = s != NULL ? set_up(s, cfg, et) : rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	if (e == RV_OK) {
		*out = s;
		return RV_OK;
	}
	if (s == NULL || s->listener == NULL)
		(void)close(cfg->listen_fd);
	relay_server_free(s);
	return e;
}

void relay_server_free(struct relay_server *s) {
	if (s == NULL)
		return;
	if (s->listener != NULL)
		evconnlistener_free(s->listener);
	if (s->timer != NULL)
		event_free(s->timer);
	for (int i = 0; i < RELAY_CONNECTIONS; i++)
		if (s->connections[i] != NULL)
			connection_free(s->connections[i]);
	for (int i = 0; i < FREEING_TURNS; i++)
		(void)event_base_loop(s->base, EVLOOP_NONBLOCK);
	SSL_CTX_free(s->tls);
	free(s->core);
	free(s);
}

void relay_server_ban(struct relay_server *s, uint64_t members) {
	relay_ban(s->core, members);
	relay_server_act(s);
}

const struct relay_totals *relay_server_totals(const struct relay_server *s) {
	return relay_core_totals(s->core);
}
