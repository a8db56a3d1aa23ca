/* socket.c: sockets and their options (net/socket.h). */
#include "net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum {
	BACKLOG = 64,
	KEEPALIVE_IDLE_S = 15, /* also keeps the mappings of home routers alive */
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
	USER_TIMEOUT_MS = 20000 /* sent but not acknowledged for so long: the link is dead (RFC 5482) */
};

static void set_int(int fd, int level, int option, int value) {
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

static void limit_receive(int fd, int bytes) {
	if (bytes > 0)
		set_int(fd, SOL_SOCKET, SO_RCVBUF, bytes);
}

static int open_stream(int family) {
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Where there is no IPv6, every address means every IPv4 address. */
static int open_listener(const struct address *a, struct sockaddr_storage *sa, socklen_t *n) {
	int fd = open_stream(sa->ss_family);
	if (fd >= 0 || a->host[0] != '\0')
		return fd;
	struct address any4 = {.host = "0.0.0.0", .port = a->port};
	(void)address_to_socket(&any4, sa, n);
	return open_stream(sa->ss_family);
}

enum rv_err socket_listen(const char *listen_on, int receive_bytes, int *out_fd, uint16_t *port,
						  struct rv_errtext *et) {
	struct address a;
	struct sockaddr_storage sa;
	socklen_t n;
	RV_TRY(address_parse(listen_on, &a, et));
	if (!address_to_socket(&a, &sa, &n))
		return rv_fail(et, RV_E_INVALID, "listen \"%s\": the host must be a numeric address, or empty for all",
					   listen_on);
	int fd = open_listener(&a, &sa, &n);
	if (fd < 0)
		return rv_fail_errno(et, errno, "listen %s", listen_on);
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	limit_receive(fd, receive_bytes);
	if (sa.ss_family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(fd, (struct sockaddr *)&sa, n) != 0 || listen(fd, BACKLOG) != 0 ||
		getsockname(fd, (struct sockaddr *)&sa, &n) != 0) {
		int error = errno;
		close(fd);
		return rv_fail_errno(et, error, "cannot listen for peers on %s%s", listen_on,
							 error == EADDRINUSE ? " (choose another port)" : "");
	}
	address_of_socket(&sa, &a);
	*port = a.port;
	*out_fd = fd;
	return RV_OK;
}

enum rv_err socket_connect(const struct address *to, int receive_bytes, int *out_fd, struct rv_errtext *et) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (!address_to_socket(to, &sa, &n) || to->host[0] == '\0' || to->port == 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "\"%s\" port %u: a peer's address must be numeric", to->host, to->port);
	int fd = open_stream(sa.ss_family);
	if (fd < 0)
		return rv_fail_errno(et, errno, "socket");
	limit_receive(fd, receive_bytes);
	if (connect(fd, (struct sockaddr *)&sa, n) == 0 || errno == EINPROGRESS) {
		*out_fd = fd;
		return RV_OK;
	}
	int error = errno;
	close(fd);
	return error == ECONNREFUSED ? rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there")
								 : rv_fail_errno(et, error, "connect");
}

enum rv_err socket_connected(int fd, struct rv_errtext *et) {
	int error = 0;
	socklen_t n = sizeof error;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		error = errno;
	if (error == 0)
		return RV_OK;
	if (error == ECONNREFUSED)
		return rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there");
	rv_fail_errno(et, error, "connect");
	return RV_E_IO;
}

/* The port is left to the system, so binding fails for want of the address only. */
bool socket_is_stranded(int fd) {
	struct sockaddr_storage sa = {0};
	socklen_t n = sizeof sa;
	if (getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
		return false;
	int probe = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return false;
	_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "same place");
	((struct sockaddr_in *)&sa)->sin_port = 0;
	bool gone = bind(probe, (struct sockaddr *)&sa, n) != 0 && errno == EADDRNOTAVAIL;
	close(probe);
	return gone;
}

int socket_accept(int listener, struct address *from) {
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	int fd = accept4(listener, (struct sockaddr *)&sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		address_of_socket(&sa, from);
	return fd;
}

void socket_tune(int fd) {
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, SOCKET_NOTSENT_BYTES);
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void socket_control_congestion(int fd, const char *congestion, char used[16]) {
	if (congestion[0] != '\0')
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion));
	socklen_t n = 15;
	memset(used, 0, 16);
	(void)getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, used, &n);
}
