/* socket_info.c: see socket_info.h. A file of its own: <linux/tcp.h>, which counts acknowledged bytes, does not go
 * together with <netinet/tcp.h>. */
#include "net/socket_info.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void socket_look(int fd, struct socket_info *out) {
	struct tcp_info info = {0};
	socklen_t n = sizeof info;
	int unsent = 0;
	*out = (struct socket_info){0};
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
		out->acked = info.tcpi_bytes_acked;
	if (ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && unsent > 0)
		out->unsent = (size_t)unsent;
}
