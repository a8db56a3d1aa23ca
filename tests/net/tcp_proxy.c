/* tcp_proxy.c: see tcp_proxy.h. */
#include "tcp_proxy.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sa;
}

void proxy_init(struct tcp_proxy *p, uint16_t target) {
	*p = (struct tcp_proxy){.target = target};
	struct sockaddr_in sa = loopback(0);
	socklen_t n = sizeof sa;
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(p->listener >= 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(p->listener, PROXY_LINES), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&sa, &n), 0);
	p->port = ntohs(sa.sin_port);
	p->lines = calloc(PROXY_LINES, sizeof *p->lines);
	p->log = malloc(PROXY_LOG_BYTES);
	assert_true(p->lines != NULL && p->log != NULL);
	for (int i = 0; i < PROXY_LINES; i++)
		p->lines[i].client = p->lines[i].server = -1;
}

static void line_close(struct proxy_line *l, bool reset) {
	struct linger now = {.l_onoff = 1, .l_linger = 0};
	int *fds[2] = {&l->client, &l->server};
	for (int i = 0; i < 2; i++) {
		if (*fds[i] < 0)
			continue;
		if (reset)
			setsockopt(*fds[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close(*fds[i]);
		*fds[i] = -1;
	}
	l->up.at = l->up.end = l->down.at = l->down.end = 0;
	l->answered = l->frozen = false;
}

void proxy_freeze(struct tcp_proxy *p) {
	for (int i = 0; i < PROXY_LINES; i++)
		p->lines[i].frozen = p->lines[i].client >= 0;
}

void proxy_cut(struct tcp_proxy *p) {
	for (int i = 0; i < PROXY_LINES; i++)
		line_close(&p->lines[i], true);
}

void proxy_release(struct tcp_proxy *p) {
	proxy_cut(p);
	close(p->listener);
	free(p->lines);
	free(p->log);
}

static void take_new(struct tcp_proxy *p) {
	for (int i = 0; i < PROXY_LINES; i++) {
		struct proxy_line *l = &p->lines[i];
		if (l->client >= 0)
			continue;
		l->client = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (l->client < 0)
			return;
		struct sockaddr_in sa = loopback(p->target);
		l->server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (connect(l->server, (struct sockaddr *)&sa, sizeof sa) != 0 && errno != EINPROGRESS)
			line_close(l, true);
	}
}

static void note(struct tcp_proxy *p, const uint8_t *data, size_t n) {
	if (!p->record)
		return;
	assert_true(p->log_bytes + n <= PROXY_LOG_BYTES);
	memcpy(p->log + p->log_bytes, data, n);
	p->log_bytes += n;
}

bool proxy_holds(const struct tcp_proxy *p) {
	for (int i = 0; i < PROXY_LINES; i++)
		if (p->hold && p->lines[i].answered && p->lines[i].up.at < p->lines[i].up.end)
			return true;
	return false;
}

int proxy_open_lines(const struct tcp_proxy *p) {
	int n = 0;
	for (int i = 0; i < PROXY_LINES; i++)
		n += p->lines[i].client >= 0;
	return n;
}

/* False: the line is over. */
static bool move(struct tcp_proxy *p, struct proxy_half *h, int from, int to, bool from_client, bool held) {
	if (h->at == h->end) {
		ssize_t n = recv(from, h->buffer, sizeof h->buffer, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN))
			return false;
		h->at = 0;
		h->end = n > 0 ? (size_t)n : 0;
		if (n > 0 && from_client && p->flip_next) {
			h->buffer[n / 2] ^= 4;
			p->flip_next = false;
		}
		note(p, h->buffer, h->end);
	}
	if (h->at == h->end || held)
		return true;
	ssize_t n = send(to, h->buffer + h->at, h->end - h->at, MSG_NOSIGNAL);
	if (n > 0)
		h->at += (size_t)n;
	return n > 0 || errno == EAGAIN || errno == ENOTCONN;
}

void proxy_step(void *proxy) {
	struct tcp_proxy *p = proxy;
	take_new(p);
	for (int i = 0; i < PROXY_LINES; i++) {
		struct proxy_line *l = &p->lines[i];
		if (l->client < 0 || l->frozen)
			continue;
		for (int k = 0; k < 8; k++) {
			bool held = p->hold && l->answered;
			if (!move(p, &l->up, l->client, l->server, true, held) ||
				!move(p, &l->down, l->server, l->client, false, false)) {
				line_close(l, false);
				break;
			}
			l->answered |= l->down.end > 0;
		}
	}
}
