/* splice.c: a link: what one end sends is written to the other, with a buffer of
 * NET_RELAY_BUFFER_BYTES each way. An end is read while its buffer has room, so the sender's TCP
 * waits for the receiver's. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/os_sockets.h"
#include "net/relay_server/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool is_empty(const struct flow *f) {
	return f->at == f->end;
}

/* Waits for what can be done next with this end. */
static void wait_for_more(struct connection *c) {
	bool room = !c->flow.ended && !c->paused && c->flow.end < NET_RELAY_BUFFER_BYTES;
	bool unsent = !is_empty(&c->other->flow);
	(void)(room ? event_add(c->readable, NULL) : event_del(c->readable));
	(void)(unsent ? event_add(c->writable, NULL) : event_del(c->writable));
}

/* Passes the end of the stream of `from` on. Returns false if that was the last of the link. */
static bool pass_end(struct connection *from) {
	if (from->flow.ended && is_empty(&from->flow) && !from->flow.shut) {
		from->flow.shut = true;
		(void)shutdown(from->other->fd, SHUT_WR);
	}
	return !from->flow.shut || !from->other->flow.shut;
}

/* Writes what `from` sent to the other end, as far as it takes it. Returns false on a fault. */
static bool flush(struct connection *from) {
	struct flow *f = &from->flow;
	while (!is_empty(f)) {
		ssize_t n = os_socket_send(from->other->fd, f->bytes + f->at, f->end - f->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		f->at += (size_t)n;
	}
	f->at = f->end = 0;
	return true;
}

/* Writes what `from` sent, and waits for more. The link may be gone after it. */
static void advance(struct connection *from) {
	if (!flush(from) || !pass_end(from)) {
		relay_server_lost(from);
		return;
	}
	wait_for_more(from);
	wait_for_more(from->other);
}

static void compact(struct flow *f) {
	memmove(f->bytes, f->bytes + f->at, f->end - f->at);
	f->end -= f->at;
	f->at = 0;
}

/* Counts n bytes. Returns false if the link is gone, because a budget is spent. */
static bool count(struct connection *c, size_t n) {
	struct relay_server *s = c->server;
	int number = c->number;
	relay_forwarded(s->core, rv_clock_monotonic_us(), number, n);
	relay_server_act(s);
	return s->connections[number] == c;
}

/* Callbacks of libevent for an end of a link. */
static void splice_readable(evutil_socket_t fd, short what, void *connection) {
	(void)what;
	struct connection *c = connection;
	struct flow *f = &c->flow;
	compact(f);
	size_t allowed = relay_allowance(c->server->core, rv_clock_monotonic_us(), c->number);
	size_t room = NET_RELAY_BUFFER_BYTES - f->end, most = allowed < room ? allowed : room;
	c->paused = allowed == 0;
	if (most == 0) {
		wait_for_more(c);
		return;
	}
	ssize_t n = recv(fd, f->bytes + f->end, most, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n < 0) {
		relay_server_lost(c);
		return;
	}
	f->end += (size_t)n;
	f->ended = n == 0;
	if (n == 0 || count(c, (size_t)n))
		advance(c);
}

static void splice_writable(evutil_socket_t fd, short what, void *connection) {
	(void)fd, (void)what;
	struct connection *c = connection;
	advance(c->other);
}

void splice_resume(struct connection *c) {
	if (!c->paused)
		return;
	c->paused = false;
	wait_for_more(c);
}

static bool prepare(struct connection *c) {
	event_free(c->readable);
	c->flow = (struct flow){.bytes = malloc(NET_RELAY_BUFFER_BYTES)};
	c->readable = event_new(c->server->base, c->fd, EV_READ | EV_PERSIST, splice_readable, c);
	c->writable = event_new(c->server->base, c->fd, EV_WRITE | EV_PERSIST, splice_writable, c);
	return c->flow.bytes != NULL && c->readable != NULL && c->writable != NULL;
}

bool splice_begin(struct connection *a, struct connection *b) {
	RV_ASSERT(a->fd >= 0 && b->fd >= 0 && a->other == NULL && b->other == NULL);
	if (!prepare(a) || !prepare(b))
		return false;
	a->other = b;
	b->other = a;
	a->flow.bytes[a->flow.end++] = RELAY_GO; /* before what `a` sends */
	b->flow.bytes[b->flow.end++] = RELAY_GO;
	if (!flush(a) || !flush(b))
		return false;
	wait_for_more(a);
	wait_for_more(b);
	return true;
}
