/* internal.h: connections of a relay: relay_server.c (accepts, does what the core decides),
 * station.c (TLS and frames), splice.c (bytes both ways). No other file includes it. */
#ifndef RV_NET_RELAY_SERVER_INTERNAL_H
#define RV_NET_RELAY_SERVER_INTERNAL_H

#include "net/relay_server/relay_server.h"

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <openssl/types.h>

/* Bytes that were read from one end of a link and not yet written to the other. */
struct flow {
	uint8_t *bytes; /* NET_RELAY_BUFFER_BYTES; NULL: no link */
	size_t at, end;
	bool ended; /* the end of the stream was read */
	bool shut;  /* and passed on */
};

struct connection {
	struct relay_server *server;
	int number; /* the core's */
	enum relay_port port;
	int fd; /* -1: the bufferevent's */
	struct event *readable, *writable;
	size_t n_preamble;
	uint8_t preamble[RELAY_PREAMBLE_BYTES];
	struct bufferevent *station; /* NULL: not TLS */
	struct connection *other;    /* end of the link; NULL: not joined */
	struct flow flow;            /* what this end sent */
	bool paused;                 /* not read before the next tick */
};

struct relay_server;

/* One of its ports. */
struct relay_listener {
	struct relay_server *server;
	enum relay_port port;
	struct evconnlistener *listener; /* NULL: none */
};

struct relay_server {
	struct event_base *base;
	struct relay_listener listeners[RELAY_PORTS];
	struct event *timer;
	SSL_CTX *tls;
	struct relay_core *core;
	struct connection *connections[RELAY_CONNECTIONS];
};

/* Does the core's actions. Any connection may be freed by it. */
void relay_server_act(struct relay_server *s);
/* Frees a connection that has ended, tells the core, and does what follows. */
void relay_server_lost(struct connection *c);

/* ---- station.c ---- */

/* Begins TLS on a connection; false: no memory. */
bool station_begin(struct connection *c);
void station_send(struct connection *c, const struct relay_frame *m);
/* Returns the least round trip time that TCP has measured lately, in microseconds. */
uint32_t station_rtt_us(const struct connection *c);

/* ---- splice.c ---- */

/* Joins two plain connections; false: no memory, and nothing has changed. */
bool splice_begin(struct connection *a, struct connection *b);
/* Reads on where the rate or a budget had stopped it. */
void splice_resume(struct connection *c);

#endif
