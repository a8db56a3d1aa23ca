/* relay_server.c: see relay_server.h. A connection's first byte decides: 0x16 is a TLS handshake
 * (RFC 8446 section 5.1), and so a station; anything else has to be a preamble. The second port
 * takes preambles only. */
#include "net/relay_server/relay_server.h"

#include "base/clock.h"
#include "base/os_sockets.h"
#include "net/relay_server/internal.h"
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
	/* A kept reflection is probed after 60 s, and is gone 60 s after its last answer. */
	KEEP_IDLE_S = 60,
	KEEP_EACH_S = 20,
	KEEP_PROBES = 3,
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
	(void)os_socket_send(c->fd, bytes, n);
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

/* Its end, or a byte that may not come. */
static void on_reflection_over(evutil_socket_t fd, short what, void *connection) {
	(void)fd, (void)what;
	relay_server_lost(connection);
}

/* Waits for the end of a reflection that the core keeps. */
static void keep_reflection(struct connection *c) {
	os_socket_keep_alive(c->fd, KEEP_IDLE_S, KEEP_EACH_S, KEEP_PROBES);
	event_free(c->readable);
	c->readable = event_new(c->server->base, c->fd, EV_READ, on_reflection_over, c);
	if (c->readable == NULL || event_add(c->readable, NULL) != 0)
		relay_server_lost(c);
}

static void take_preamble(struct connection *c) {
	struct relay_server *s = c->server;
	int number = c->number;
	struct relay_preamble m;
	if (relay_preamble_decode(c->preamble, &m, NULL) != RV_OK) {
		relay_server_lost(c);
		return;
	}
	(void)event_del(c->readable); /* what follows is read once the link is made */
	relay_take_preamble(s->core, rv_clock_monotonic_us(), number, &m);
	relay_server_act(s);
	if (m.kind == RELAY_REFLECT && s->connections[number] == c)
		keep_reflection(c);
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
	if (n > 0 && first && *to == TLS_HANDSHAKE && c->port == RELAY_MAIN_PORT) {
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

static void on_accept(struct evconnlistener *evl, evutil_socket_t fd, struct sockaddr *sa, int n, void *listener) {
	(void)evl;
	const struct relay_listener *l = listener;
	struct relay_server *s = l->server;
	struct sockaddr_storage from = {0};
	struct address at;
	memcpy(&from, sa, (size_t)n < sizeof from ? (size_t)n : sizeof from);
	address_of_socket(&from, &at);
	struct connection *c = calloc(1, sizeof *c);
	int number = c != NULL ? relay_accept(s->core, rv_clock_monotonic_us(), &at, l->port) : -1;
	relay_server_act(s);
	if (number < 0) {
		(void)close((int)fd);
		free(c);
		return;
	}
	*c = (struct connection){.server = s, .number = number, .port = l->port, .fd = (int)fd};
	s->connections[number] = c;
	if (!watch(c))
		relay_server_lost(c);
}

/* Pauses until the next tick rather than spin: most likely out of file descriptors. */
static void on_accept_error(struct evconnlistener *evl, void *listener) {
	(void)listener;
	(void)evconnlistener_disable(evl);
}

static void on_tick(evutil_socket_t fd, short what, void *server) {
	(void)fd, (void)what;
	struct relay_server *s = server;
	relay_tick(s->core, rv_clock_monotonic_us());
	relay_server_act(s);
	for (int i = 0; i < RELAY_CONNECTIONS; i++)
		if (s->connections[i] != NULL)
			splice_resume(s->connections[i]);
	for (int i = 0; i < RELAY_PORTS; i++)
		if (s->listeners[i].listener != NULL)
			(void)evconnlistener_enable(s->listeners[i].listener);
}

/* ---- life ---- */

static void any_bytes(void *ctx, void *out, size_t n) {
	(void)ctx;
	randombytes_buf(out, n);
}

static uint64_t unix_s(void *ctx) {
	(void)ctx;
	return (uint64_t)(rv_clock_wall_us() / RV_US_PER_S);
}

static uint32_t rtt_us(void *ctx, int connection) {
	const struct relay_server *s = ctx;
	const struct connection *c = s->connections[connection];
	return c != NULL && c->station != NULL ? station_rtt_us(c) : 0;
}

static void raise_file_limit(void) {
	struct rlimit limit;
	const rlim_t wanted = 2 * RELAY_CONNECTIONS;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* else accept() fails before the tables are full */
}

static enum rv_err listen_at(struct relay_server *s, enum relay_port port, int *fd, struct rv_errtext *et) {
	struct relay_listener *l = &s->listeners[port];
	*l = (struct relay_listener){.server = s, .port = port};
	if (*fd < 0)
		return RV_OK;
	l->listener = evconnlistener_new(s->base, on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, *fd);
	if (l->listener == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay's socket");
	*fd = -1;
	evconnlistener_set_error_cb(l->listener, on_accept_error);
	return RV_OK;
}

static enum rv_err set_up(struct relay_server *s, const struct relay_server_config *cfg, struct relay_ports *ports,
						  struct rv_errtext *et) {
	const struct timeval tick = {.tv_usec = RELAY_TICK_MS * RV_US_PER_MS};
	struct relay_config core = {.relay = cfg->identity,
								.second_port = cfg->ports.port[RELAY_SECOND_PORT],
								.bytes_per_day = cfg->bytes_per_day,
								.bytes_per_day_of_all = cfg->bytes_per_day_of_all,
								.bytes_per_s = cfg->bytes_per_s,
								.ctx = s,
								.random = any_bytes,
								.unix_s = unix_s,
								.rtt_us = rtt_us};
	memcpy(core.root, cfg->root, sizeof core.root);
	RV_TRY(tls_context_new(cfg->identity, TLS_CLIENTS_MUST, &s->tls, et));
	tls_accept_peer_protocol(s->tls); /* a member that probes a relay expects it to hold its key as a peer does */
	void *memory = malloc(relay_core_size());
	s->core = memory != NULL ? relay_core_init(memory, &core, rv_clock_monotonic_us()) : NULL;
	s->timer = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	if (s->core == NULL || s->timer == NULL || event_add(s->timer, &tick) != 0)
		return rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	raise_file_limit();
	for (int i = 0; i < RELAY_PORTS; i++)
		RV_TRY(listen_at(s, (enum relay_port)i, &ports->fd[i], et));
	return RV_OK;
}

enum rv_err relay_server_new(struct event_base *base, const struct relay_server_config *cfg, struct relay_server **out,
							 struct rv_errtext *et) {
	struct relay_server *s = calloc(1, sizeof *s);
	struct relay_ports ports = cfg->ports;
	*out = NULL;
	if (s != NULL)
		s->base = base;
	enum rv_err e = s != NULL ? set_up(s, cfg, &ports, et) : rv_fail(et, RV_E_NOMEM, "no memory for the relay");
	if (e == RV_OK) {
		*out = s;
		return RV_OK;
	}
	relay_ports_close(&ports);
	relay_server_free(s);
	return e;
}

void relay_server_free(struct relay_server *s) {
	if (s == NULL)
		return;
	for (int i = 0; i < RELAY_PORTS; i++)
		if (s->listeners[i].listener != NULL)
			evconnlistener_free(s->listeners[i].listener);
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

void relay_server_name_second(struct relay_server *s, uint16_t port) {
	relay_name_second(s->core, port);
}

void relay_server_ban(struct relay_server *s, const struct banned *members) {
	relay_ban(s->core, members);
	relay_server_act(s);
}

const struct relay_totals *relay_server_totals(const struct relay_server *s) {
	return relay_core_totals(s->core);
}
