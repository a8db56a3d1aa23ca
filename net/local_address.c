/* local_address.c: see local_address.h. */
#include "net/local_address.h"

#include "base/os_sockets.h"

#include <unistd.h>

bool local_address_toward(const struct address *to, struct address *out) {
	struct sockaddr_storage sa = {0};
	socklen_t n, room = sizeof sa;
	struct address at = *to;
	at.port = 9; /* any; connecting a datagram socket sends nothing */
	if (!address_to_socket(&at, &sa, &n))
		return false;
	int fd = os_socket_open(sa.ss_family, SOCK_DGRAM);
	if (fd < 0)
		return false;
	bool found =
		connect(fd, (const struct sockaddr *)&sa, n) == 0 && getsockname(fd, (struct sockaddr *)&sa, &room) == 0;
	(void)close(fd);
	if (!found)
		return false;
	address_of_socket(&sa, out);
	out->port = 0;
	return true;
}
