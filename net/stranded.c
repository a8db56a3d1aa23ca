/* stranded.c: see stranded.h. */
#include "net/stranded.h"

#include "base/os_sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <unistd.h>

/* The port is left to the system, so binding fails for want of the address only. */
bool socket_is_stranded(int fd) {
	struct sockaddr_storage sa = {0};
	socklen_t n = sizeof sa;
	if (getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
		return false;
	int probe = os_socket_open(sa.ss_family, SOCK_DGRAM);
	if (probe < 0)
		return false;
	_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "same place");
	((struct sockaddr_in *)&sa)->sin_port = 0;
	bool gone = bind(probe, (struct sockaddr *)&sa, n) != 0 && errno == EADDRNOTAVAIL;
	close(probe);
	return gone;
}
