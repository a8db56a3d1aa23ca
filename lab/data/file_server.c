/* file_server.c: see file_server.h. */
#include "lab/data/file_server.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/os_file.h"
#include "base/os_sockets.h"
#include "lab/data/http_request.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BACKLOG = 128,
	HEAD_US = 10 * RV_US_PER_S, /* for a request's head, and between two requests */
	SEND_US = 30 * RV_US_PER_S, /* for a body, and in addition */
	LEAST_BYTES_PER_S = 8192,
	SEND_BYTES = 1 << 18,
	POLL_MS = 200
};

/* The connection of a thread. */
struct slot {
	struct file_server *server;
	pthread_t thread;
	struct in6_addr host; /* IPv4 as mapped, IPv6 by its /64; guarded by the server's mutex */
	bool is_open;         /* likewise */
};

struct file_server {
	int dir_fd, listen_fd, n_slots, n_threads;
	uint16_t port;
	atomic_bool stopping;
	atomic_uint_fast64_t requests, bytes;
	pthread_mutex_t mutex;
	struct slot slots[]; /* (n_slots) */
};

/* ---- a connection ---- */

/* Waits until the socket is ready. Returns false at the deadline, at an error or at the stop. */
static bool wait_for(const struct file_server *s, int fd, short events, int64_t deadline_us) {
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, POLL_MS);
		if (n > 0)
			return (p.revents & events) != 0;
		if ((n < 0 && errno != EINTR) || atomic_load(&s->stopping) || rv_clock_monotonic_us() > deadline_us)
			return false;
	}
}

static bool send_text(struct file_server *s, int fd, const char *text, size_t n, int64_t deadline_us) {
	while (n > 0 && wait_for(s, fd, POLLOUT, deadline_us)) {
		ssize_t k = os_socket_send(fd, text, n);
		if (k < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		text += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return n == 0;
}

static const char *phrase(enum http_status status) {
	switch (status) {
	case HTTP_OK:
		return "OK";
	case HTTP_PARTIAL:
		return "Partial Content";
	case HTTP_NOT_FOUND:
		return "Not Found";
	case HTTP_NOT_ALLOWED:
		return "Method Not Allowed";
	case HTTP_NOT_SATISFIABLE:
		return "Range Not Satisfiable";
	case HTTP_UNAVAILABLE:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

/* Sends the head of an answer; `range`: its Content-Range line, or "". */
static bool send_head(struct file_server *s, int fd, enum http_status status, uint64_t n, const char *range,
					  bool keeps_alive) {
	char head[512];
	int length =
		snprintf(head, sizeof head,
				 "HTTP/1.1 %d %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %" PRIu64
				 "\r\n%s%s%sAccept-Ranges: bytes\r\nConnection: %s\r\n\r\n",
				 (int)status, phrase(status), n, range, status == HTTP_UNAVAILABLE ? "Retry-After: 5\r\n" : "",
				 status == HTTP_NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "", keeps_alive ? "keep-alive" : "close");
	RV_ASSERT(length > 0 && length < (int)sizeof head);
	atomic_fetch_add(&s->requests, 1);
	return send_text(s, fd, head, (size_t)length, rv_clock_monotonic_us() + SEND_US);
}

/* Sends n bytes of a file. A file that became shorter ends the connection. */
static bool send_file(struct file_server *s, int fd, int file, uint64_t first, uint64_t n) {
	const int64_t deadline_us = rv_clock_monotonic_us() + SEND_US + (int64_t)(n / LEAST_BYTES_PER_S + 1) * RV_US_PER_S;
	off_t at = (off_t)first;
	while (n > 0 && wait_for(s, fd, POLLOUT, deadline_us) && rv_clock_monotonic_us() < deadline_us) {
		ssize_t k = os_file_send(fd, file, &at, n < SEND_BYTES ? (size_t)n : SEND_BYTES);
		if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		n -= k > 0 ? (uint64_t)k : 0;
		atomic_fetch_add(&s->bytes, k > 0 ? (uint64_t)k : 0);
	}
	return n == 0;
}

/* Opens a file of the directory. Returns -1 if there is none. */
static int open_file(const struct file_server *s, const char *name, uint64_t *bytes) {
	struct stat st;
	int file = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file >= 0 && (fstat(file, &st) != 0 || !S_ISREG(st.st_mode))) {
		(void)close(file);
		return -1;
	}
	*bytes = file >= 0 ? (uint64_t)st.st_size : 0;
	return file;
}

static bool answer_file(struct file_server *s, int fd, const struct http_request_head *q, int file, uint64_t bytes) {
	char range[HTTP_RANGE_TEXT_BYTES], line[HTTP_RANGE_TEXT_BYTES + 32] = "";
	uint64_t first, n;
	const enum http_status status = http_range_cut(&q->range, bytes, &first, &n);
	if (status != HTTP_OK) {
		http_range_text((int)status, first, n, bytes, range);
		(void)snprintf(line, sizeof line, "Content-Range: %s\r\n", range);
	}
	if (status == HTTP_NOT_SATISFIABLE)
		return send_head(s, fd, status, 0, line, q->keeps_alive);
	return send_head(s, fd, status, n, line, q->keeps_alive) && (!q->wants_body || send_file(s, fd, file, first, n));
}

/* Answers a request. Returns false if the connection is to be closed. */
static bool answer(struct file_server *s, int fd, const struct http_request_head *q) {
	uint64_t bytes = 0;
	if (q->fault == HTTP_BAD_REQUEST || q->fault == HTTP_NOT_ALLOWED) {
		(void)send_head(s, fd, q->fault, 0, "", false); /* a body may follow, which is not read */
		return false;
	}
	int file = q->fault == HTTP_OK ? open_file(s, q->name, &bytes) : -1;
	bool ok = file >= 0 ? answer_file(s, fd, q, file, bytes) : send_head(s, fd, HTTP_NOT_FOUND, 0, "", q->keeps_alive);
	if (file >= 0)
		(void)close(file);
	return ok && q->keeps_alive;
}

/* Reads and answers requests until the connection ends. */
static void converse(struct file_server *s, int fd) {
	char head[HTTP_HEAD_BYTES];
	size_t n = 0, length;
	int64_t deadline_us = rv_clock_monotonic_us() + HEAD_US;
	for (;;) {
		while ((length = http_head_length(head, n)) == 0) {
			ssize_t k =
				n < sizeof head && wait_for(s, fd, POLLIN, deadline_us) ? recv(fd, head + n, sizeof head - n, 0) : 0;
			if (k <= 0 || rv_clock_monotonic_us() > deadline_us)
				return;
			n += (size_t)k;
		}
		const struct http_request_head q = http_request_of(head, length);
		if (!answer(s, fd, &q) || atomic_load(&s->stopping))
			return;
		n -= length;
		memmove(head, head + length, n);
		deadline_us = rv_clock_monotonic_us() + HEAD_US;
	}
}

/* ---- the threads ---- */

/* Takes a place for the host, if it has less than half of them. */
static bool take_place(struct slot *mine, const struct in6_addr *host) {
	struct file_server *s = mine->server;
	int held = 0;
	pthread_mutex_lock(&s->mutex);
	for (int i = 0; i < s->n_slots; i++)
		held += s->slots[i].is_open && memcmp(&s->slots[i].host, host, sizeof *host) == 0;
	mine->is_open = held < (s->n_slots + 1) / 2;
	mine->host = *host;
	bool is_open = mine->is_open;
	pthread_mutex_unlock(&s->mutex);
	return is_open;
}

static void give_place(struct slot *mine) {
	pthread_mutex_lock(&mine->server->mutex);
	mine->is_open = false;
	pthread_mutex_unlock(&mine->server->mutex);
}

static void host_of(const struct sockaddr_storage *sa, struct in6_addr *host) {
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;
	*host = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	if (sa->ss_family != AF_INET6) {
		memset(host, 0, sizeof *host);
		memcpy(&host->s6_addr[12], &v4->sin_addr, 4);
	} else if (!IN6_IS_ADDR_V4MAPPED(host)) {
		memset(&host->s6_addr[8], 0, 8); /* a household has 2^64 addresses */
	}
}

static void serve_one(struct slot *mine) {
	struct file_server *s = mine->server;
	struct sockaddr_storage sa = {0};
	struct in6_addr host;
	const int on = 1;
	int fd = os_socket_accept(s->listen_fd, &sa);
	if (fd < 0)
		return; /* another thread took it, or it is gone */
	host_of(&sa, &host);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (take_place(mine, &host)) {
		converse(s, fd);
		give_place(mine);
	} else {
		(void)send_head(s, fd, HTTP_UNAVAILABLE, 0, "", false);
	}
	(void)close(fd);
}

static void *run_slot(void *slot) {
	struct slot *mine = slot;
	while (!atomic_load(&mine->server->stopping)) {
		struct pollfd p = {.fd = mine->server->listen_fd, .events = POLLIN};
		if (poll(&p, 1, POLL_MS) > 0)
			serve_one(mine);
	}
	return NULL;
}

/* ---- start and stop ---- */

/* Opens a socket that listens; for all addresses one of IPv6 that takes IPv4 too, where there is
 * IPv6. */
static int open_socket(const struct addrinfo *at) {
	const int on = 1, off = 0;
	int fd = os_socket_open(at->ai_family, SOCK_STREAM);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (at->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	const int why = errno;
	(void)close(fd);
	errno = why;
	return -1;
}

static enum rv_err open_port(struct file_server *s, const struct file_server_config *c, struct rv_errtext *et) {
	const char *host = c->listen[0] ? c->listen : "::";
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
	struct addrinfo *at = NULL;
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	char port[8];
	(void)snprintf(port, sizeof port, "%u", c->port);
	if (getaddrinfo(host, port, &hints, &at) != 0)
		return rv_fail(et, RV_E_INVALID, "listen = %.200s: must be a numeric address, such as 127.0.0.1 or ::1", host);
	s->listen_fd = open_socket(at);
	freeaddrinfo(at);
	if (s->listen_fd < 0 && !c->listen[0] && getaddrinfo("0.0.0.0", port, &hints, &at) == 0) {
		s->listen_fd = open_socket(at);
		freeaddrinfo(at);
	}
	if (s->listen_fd < 0)
		return rv_fail_errno(et, errno, "port %u: cannot listen (--port chooses another)", c->port);
	if (getsockname(s->listen_fd, (struct sockaddr *)&sa, &n) != 0)
		return rv_fail_errno(et, errno, "port %u", c->port);
	s->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
											 : ((struct sockaddr_in *)&sa)->sin_port);
	return RV_OK;
}

static enum rv_err start_threads(struct file_server *s, int wanted, struct rv_errtext *et) {
	s->n_slots = wanted;
	for (; s->n_threads < wanted; s->n_threads++) {
		struct slot *slot = &s->slots[s->n_threads];
		slot->server = s;
		if (pthread_create(&slot->thread, NULL, run_slot, slot) != 0)
			break;
	}
	return s->n_threads > 0 ? RV_OK : rv_fail(et, RV_E_NOMEM, "no thread to serve with");
}

enum rv_err file_server_start(const struct file_server_config *c, struct file_server **out, struct rv_errtext *et) {
	RV_ASSERT(c->connections >= 1 && c->connections <= FILE_SERVER_CONNECTIONS_MAX);
	struct file_server *s = calloc(1, sizeof *s + (size_t)c->connections * sizeof s->slots[0]);
	*out = s;
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to serve");
	s->listen_fd = -1;
	pthread_mutex_init(&s->mutex, NULL);
	s->dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum rv_err e = s->dir_fd >= 0 ? open_port(s, c, et) : rv_fail_errno(et, errno, "%.200s: open", c->dir);
	if (e == RV_OK)
		e = start_threads(s, c->connections, et);
	if (e != RV_OK) {
		file_server_stop(s);
		*out = NULL;
	}
	return e;
}

void file_server_stop(struct file_server *s) {
	if (!s)
		return;
	atomic_store(&s->stopping, true);
	for (int i = 0; i < s->n_threads; i++)
		(void)pthread_join(s->slots[i].thread, NULL);
	if (s->listen_fd >= 0)
		(void)close(s->listen_fd);
	if (s->dir_fd >= 0)
		(void)close(s->dir_fd);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

uint16_t file_server_port(const struct file_server *s) {
	return s->port;
}

struct file_server_counts file_server_counts(struct file_server *s) {
	struct file_server_counts c = {.requests = atomic_load(&s->requests), .bytes = atomic_load(&s->bytes)};
	pthread_mutex_lock(&s->mutex);
	for (int i = 0; i < s->n_slots; i++)
		c.connections += s->slots[i].is_open;
	pthread_mutex_unlock(&s->mutex);
	return c;
}
