/* relay_reflection.c: see relay_reflection.h. */
#include "worker/reach/relay_reflection.h"

#include "base/clock.h"
#include "base/os_sockets.h"

#include <errno.h>
#include <string.h>

enum {
	ANSWER_US = 4 * RV_US_PER_S, /* three packets: TCP repeats the first after 1 and 3 s */
	KEEPALIVE_IDLE_S = 15,       /* home routers forget a silent connection after minutes, some after one */
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3
};

void relay_reflection_end(struct relay_reflection *f) {
	relay_dial_end(&f->dial);
	f->is_shown = f->is_seen = false;
	f->n_in = 0;
}

static void lost(struct relay_reflection *f) {
	relay_reflection_end(f);
	f->owner->lost(f->owner->ctx, &f->which);
}

void relay_reflection_begin(struct relay_reflection *f, int64_t now_us, const struct relay_dial_to *to,
							const uint8_t token[NET_TOKEN_BYTES]) {
	relay_reflection_end(f);
	memcpy(f->token, token, sizeof f->token);
	f->until_us = now_us + ANSWER_US;
	relay_dial_begin(&f->dial, f->shared, now_us, to);
}

/* Shows the token: the first bytes on a fresh connection, for which there is room in its
 * buffer. */
static bool show_token(struct relay_reflection *f) {
	struct relay_preamble shown = {.kind = RELAY_REFLECT};
	uint8_t preamble[RELAY_PREAMBLE_BYTES];
	int fd = f->dial.fd;
	os_socket_keep_alive(fd, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);
	memcpy(shown.token, f->token, sizeof shown.token);
	relay_preamble_encode(&shown, preamble);
	f->is_shown = os_socket_send(fd, preamble, sizeof preamble) == (ssize_t)sizeof preamble;
	return f->is_shown;
}

/* Takes what has come. Returns false if it is not what a relay sends. */
static bool take_answer(struct relay_reflection *f) {
	struct relay_frame m;
	size_t used;
	if (f->is_seen || relay_frame_decode(f->in, f->n_in, &m, &used, NULL) != RV_OK)
		return false;
	if (used == 0)
		return true;
	bool is_answer = m.type == RELAY_SEEN && used == f->n_in && memcmp(m.seen.nonce, f->token, sizeof f->token) == 0;
	if (!is_answer)
		return false;
	f->is_seen = true;
	f->owner->seen(f->owner->ctx, &f->which, &m.seen.at);
	return true;
}

/* Returns false if the connection has ended. */
static bool receive(struct relay_reflection *f) {
	ssize_t n = recv(f->dial.fd, f->in + f->n_in, sizeof f->in - f->n_in, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
	f->n_in += (size_t)n;
	return n > 0 && take_answer(f);
}

void relay_reflection_handle(struct relay_reflection *f, int64_t now_us, short revents) {
	bool good = true;
	if (f->dial.state == RELAY_DIAL_NONE)
		return;
	if (f->dial.state != RELAY_DIAL_OPEN)
		relay_dial_step(&f->dial, f->shared, now_us, revents != 0);
	if (f->dial.state == RELAY_DIAL_OPEN && !f->is_shown)
		good = show_token(f);
	else if (f->dial.state == RELAY_DIAL_OPEN && revents != 0)
		good = receive(f);
	if (!good || f->dial.state == RELAY_DIAL_FAILED || (!f->is_seen && now_us >= f->until_us))
		lost(f);
}

bool relay_reflection_pollfd(const struct relay_reflection *f, struct pollfd *out) {
	if (f->dial.fd < 0)
		return false;
	*out = (struct pollfd){.fd = f->dial.fd, .events = f->dial.state == RELAY_DIAL_OPEN ? POLLIN : POLLOUT};
	return true;
}

int64_t relay_reflection_deadline_us(const struct relay_reflection *f, int64_t now_us) {
	if (f->dial.state == RELAY_DIAL_NONE || f->is_seen)
		return INT64_MAX;
	return f->dial.state == RELAY_DIAL_FAILED ? now_us : f->until_us;
}
