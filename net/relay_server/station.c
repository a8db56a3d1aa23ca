/* station.c: a member's station: TLS, then frames. */
#include "base/clock.h"
#include "base/os_sockets.h"
#include "net/relay_server/internal.h"
#include "net/tls.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>

enum { READ_AHEAD_BYTES = 8 * NET_MAX_RELAY_FRAME_BYTES, UNSENT_MAX_BYTES = 32 * NET_MAX_RELAY_FRAME_BYTES };

/* Takes one frame; false: there is no whole one, or the connection is gone. */
static bool take_frame(struct connection *c) {
	struct relay_server *s = c->server;
	int number = c->number;
	struct evbuffer *in = bufferevent_get_input(c->station);
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	ev_ssize_t n = evbuffer_copyout(in, bytes, sizeof bytes);
	struct relay_frame m;
	size_t used = 0;
	if (n < 0 || relay_frame_decode(bytes, (size_t)n, &m, &used, NULL) != RV_OK) {
		relay_server_lost(c);
		return false;
	}
	if (used == 0)
		return false;
	(void)evbuffer_drain(in, used);
	relay_take_frame(s->core, rv_clock_monotonic_us(), number, &m);
	relay_server_act(s);
	return s->connections[number] == c;
}

static void on_read(struct bufferevent *station, void *connection) {
	(void)station;
	while (take_frame(connection))
		;
}

static void on_event(struct bufferevent *station, short what, void *connection) {
	struct connection *c = connection;
	uint8_t key[NET_KEY_BYTES];
	if ((what & BEV_EVENT_CONNECTED) != 0 && tls_peer_key(bufferevent_openssl_get_ssl(station), key))
		relay_authenticated(c->server->core, c->number, key);
	else
		relay_server_lost(c);
}

/* Callbacks are deferred: none runs while the core's actions are done. */
bool station_begin(struct connection *c) {
	SSL *ssl = SSL_new(c->server->tls);
	if (ssl == NULL)
		return false;
	(void)SSL_up_ref(ssl); /* releases of libevent differ in whether a failed call frees it */
	c->station = bufferevent_openssl_socket_new(c->server->base, c->fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
												BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	SSL_free(ssl);
	if (c->station == NULL)
		return false;
	c->fd = -1;
	bufferevent_setcb(c->station, on_read, NULL, on_event, c);
	bufferevent_setwatermark(c->station, EV_READ, 0, READ_AHEAD_BYTES);
	return bufferevent_enable(c->station, EV_READ | EV_WRITE) == 0;
}

void station_send(struct connection *c, const struct relay_frame *m) {
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	/* A member that does not read gets no more; its station ends when it sends nothing either. */
	if (evbuffer_get_length(bufferevent_get_output(c->station)) + n <= UNSENT_MAX_BYTES)
		(void)bufferevent_write(c->station, bytes, n);
}

/* The least one: others hold the pauses of acknowledgements (RFC 1122 4.2.3.2). */
uint32_t station_rtt_us(const struct connection *c) {
	struct os_socket_facts f;
	os_socket_look(bufferevent_getfd(c->station), &f);
	return f.least_rtt_us != 0 ? f.least_rtt_us : f.rtt_us;
}
