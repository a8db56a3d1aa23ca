/* socket_route.c: connects a socket to an address, from the mesh's own port, or by a relay
 * (net/mesh/socket_route.h). */
#include "net/mesh/socket_route.h"

#include "base/os_sockets.h"
#include "net/local_address.h"
#include "net/relay/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Binds to the port on which the mesh listens: the router has a mapping for it, and the other side
 * dials that. The listener has SO_REUSEPORT too (socket_pipe.c). Only at the address from which
 * `to` is reached: at the machine's other addresses somebody else may use the port. */
static bool bind_to(int fd, const struct address *to, uint16_t port) {
	struct address own;
	struct sockaddr_storage sa;
	socklen_t n;
	int on = 1;
	errno = EADDRNOTAVAIL; /* unless a call below says another reason */
	if (!local_address_toward(to, &own))
		return false;
	own.port = port;
	return address_to_socket(&own, &sa, &n) && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
		   setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 && bind(fd, (struct sockaddr *)&sa, n) == 0;
}

static enum rv_err refused(struct rv_errtext *et) {
	return rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there");
}

enum rv_err socket_route_connect(void *ctx, const struct route *to, int receive_bytes, int *out_fd,
								 struct rv_errtext *et) {
	(void)ctx;
	struct sockaddr_storage sa;
	socklen_t n;
	if (!address_to_socket(&to->at, &sa, &n) || to->at.host[0] == '\0' || to->at.port == 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "\"%s\" port %u: a peer's address must be numeric", to->at.host,
					   to->at.port);
	int fd = os_socket_open(sa.ss_family, SOCK_STREAM);
	if (fd < 0)
		return rv_fail_errno(et, errno, "socket");
	if (receive_bytes > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
	bool bound = to->kind != ROUTE_PUNCH || bind_to(fd, &to->at, to->local_port);
	if (bound && (connect(fd, (struct sockaddr *)&sa, n) == 0 || errno == EINPROGRESS)) {
		*out_fd = fd;
		return RV_OK;
	}
	int error = errno;
	close(fd);
	if (!bound) {
		rv_fail_errno(et, error, "cannot dial from port %u", to->local_port);
		return RV_E_IO; /* never RV_E_BUSY: no connection will come */
	}
	if (to->kind == ROUTE_PUNCH && error == EADDRNOTAVAIL)
		return rv_fail(et, RV_E_BUSY, "the other side's packet came first");
	return error == ECONNREFUSED ? refused(et) : rv_fail_errno(et, error, "connect");
}

static enum rv_err tcp_connected(int fd, struct rv_errtext *et) {
	int error = 0;
	socklen_t n = sizeof error;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		error = errno;
	if (error == 0)
		return RV_OK;
	if (error == ECONNREFUSED)
		return refused(et);
	rv_fail_errno(et, error, "connect");
	return RV_E_IO;
}

/* Shows the token: the first bytes on a fresh connection, for which there is room in its buffer. */
static enum rv_err show_token(int fd, const struct route *to, struct rv_errtext *et) {
	struct relay_preamble shown = {.kind = RELAY_DATA};
	uint8_t preamble[RELAY_PREAMBLE_BYTES];
	memcpy(shown.token, to->token, sizeof shown.token);
	relay_preamble_encode(&shown, preamble);
	if (os_socket_send(fd, preamble, sizeof preamble) == (ssize_t)sizeof preamble)
		return RV_E_BUSY;
	rv_fail_errno(et, errno, "showing the relay the call's token");
	return RV_E_IO;
}

/* Reads the relay's byte alone: what follows it is the other side's. */
static enum rv_err hear_relay(int fd, struct rv_errtext *et) {
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, 0);
	if (n == 1)
		return byte == RELAY_GO ? RV_OK
								: rv_fail(et, RV_E_PROTOCOL, "the relay answers %u, must be %d", byte, RELAY_GO);
	if (n == 0)
		return rv_fail(et, RV_E_CLOSED, "the relay ended the call: the other side did not come, or its token is old");
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return RV_E_BUSY;
	rv_fail_errno(et, errno, "waiting at the relay");
	return RV_E_IO;
}

enum rv_err socket_route_connected(void *ctx, int fd, const struct route *to, short *events, struct rv_errtext *et) {
	(void)ctx;
	if (*events == POLLIN)
		return hear_relay(fd, et);
	RV_TRY(tcp_connected(fd, et));
	if (to->kind != ROUTE_RELAY)
		return RV_OK;
	*events = POLLIN;
	return show_token(fd, to, et);
}
