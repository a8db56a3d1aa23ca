/* reflection.c: see reflection.h. */
#include "worker/join/reflection.h"

#include "base/os_sockets.h"
#include "net/mesh/pipe.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static void connect_to(struct reflection *r, struct reflection_line *l, uint16_t port) {
	struct route to = {.kind = ROUTE_PUNCH, .at = r->relay, .local_port = r->local_port};
	to.at.port = port;
	l->fd = -1;
	l->ended = port == 0 || socket_pipe.connect(socket_pipe.ctx, &to, 0, &l->fd, NULL) != RV_OK;
}

void reflection_open(struct reflection *r, uint16_t local_port, const struct address *relay) {
	*r = (struct reflection){.local_port = local_port, .relay = *relay};
	randombytes_buf(r->nonce, sizeof r->nonce);
	r->lines[1].fd = -1;
	connect_to(r, &r->lines[0], relay->port);
	r->lines[1].ended = r->lines[0].ended;
}

void reflection_close(struct reflection *r) {
	for (int i = 0; i < REFLECTION_PORTS; i++) {
		if (r->lines[i].fd >= 0)
			close(r->lines[i].fd);
		r->lines[i].fd = -1;
		r->lines[i].ended = true;
	}
}

bool reflection_ended(const struct reflection *r) {
	return r->lines[0].ended && r->lines[1].ended;
}

/* Asks, once TCP is up: there is room for so little in a fresh socket. Returns false if the relay
 * does not answer. */
static bool send_preamble(const struct reflection *r, struct reflection_line *l) {
	struct relay_preamble shown = {.kind = RELAY_REFLECT};
	uint8_t bytes[RELAY_PREAMBLE_BYTES];
	memcpy(shown.token, r->nonce, sizeof shown.token);
	relay_preamble_encode(&shown, bytes);
	l->sent = true;
	return os_socket_send(l->fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
}

/* Takes the answer. Returns false when no more will come, with it or without. */
static bool receive(const struct reflection *r, struct reflection_line *l, struct relay_frame *m) {
	size_t used = 0;
	ssize_t n = recv(l->fd, l->in + l->n_in, sizeof l->in - l->n_in, 0);
	if (n < 0 && errno == EAGAIN)
		return true;
	l->n_in += n > 0 ? (size_t)n : 0;
	if (relay_frame_decode(l->in, l->n_in, m, &used, NULL) != RV_OK)
		return false;
	if (used == 0)
		return n > 0;
	if (m->type == RELAY_SEEN && memcmp(m->seen.nonce, r->nonce, sizeof r->nonce) == 0)
		l->seen = m->seen.at;
	return false;
}

static void step(struct reflection *r, struct reflection_line *l) {
	struct relay_frame m = {.type = 0};
	bool goes_on = l->sent ? receive(r, l, &m) : send_preamble(r, l);
	if (goes_on)
		return;
	l->ended = true;
	if (l == &r->lines[0])
		connect_to(r, &r->lines[1], l->seen.host[0] != '\0' ? m.seen.second_port : 0);
}

int reflection_pollfds(const struct reflection *r, struct pollfd fds[REFLECTION_PORTS]) {
	int n = 0;
	for (int i = 0; i < REFLECTION_PORTS; i++)
		if (!r->lines[i].ended && r->lines[i].fd >= 0)
			fds[n++] = (struct pollfd){.fd = r->lines[i].fd, .events = r->lines[i].sent ? POLLIN : POLLOUT};
	return n;
}

void reflection_handle(struct reflection *r, const struct pollfd *fds, int n) {
	for (int i = 0; i < n; i++)
		for (int k = 0; k < REFLECTION_PORTS; k++)
			if (fds[i].revents != 0 && fds[i].fd == r->lines[k].fd && !r->lines[k].ended)
				step(r, &r->lines[k]);
}
