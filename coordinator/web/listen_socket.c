/* listen_socket.c: see listen_socket.h. */
#include "coordinator/web/listen_socket.h"

#include "base/os_ports.h"

#include <errno.h>

enum { BACKLOG = 1024 }; /* many workers come back at once */

static enum rv_err listen_failed(const struct address *at, const char *option, int errno_value, struct rv_errtext *et) {
	char holder[128];
	const char *host = at->host[0] ? at->host : "all addresses";
	if (errno_value == EADDRINUSE) {
		os_port_holder(at->port, holder, sizeof holder);
		return rv_fail(et, RV_E_BUSY, "port %u on %s is taken by %s: stop it, or choose another port with %s", at->port,
					   host, holder, option);
	}
	if (errno_value == EINVAL)
		return rv_fail(et, RV_E_INVALID, "%s: give a numeric address to listen on, such as 0.0.0.0 or 127.0.0.1",
					   at->host);
	if (errno_value == EACCES)
		return rv_fail(et, RV_E_IO, "port %u on %s: ports below 1024 need privileges: choose a higher one with %s",
					   at->port, host, option);
	if (errno_value == EADDRNOTAVAIL)
		return rv_fail(et, RV_E_INVALID, "%s is not an address of this machine: `ip addr` lists them", host);
	return rv_fail_errno(et, errno_value, "cannot listen on port %u of %s", at->port, host);
}

enum rv_err listen_socket_open(const struct address *at, const char *option, int *fd, struct address *bound,
							   struct rv_errtext *et) {
	*fd = address_listen(at, 0, BACKLOG, bound);
	return *fd >= 0 ? RV_OK : listen_failed(at, option, errno, et);
}
