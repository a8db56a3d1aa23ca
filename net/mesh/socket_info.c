/* socket_info.c: see socket_info.h. A file of its own: <linux/tcp.h>, which counts acknowledged bytes, does not go
 * together with <netinet/tcp.h>. */
#include "net/mesh/socket_info.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void socket_look(int fd, struct socket_info *out) {
	struct tcp_info info = {0};
	socklen_t n = sizeof info;
	int queued = 0;
	*out = (struct socket_info){0};
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 || ioctl(fd, SIOCOUTQ, &queued) != 0 || queued < 0)
		return;
	uint64_t mss = info.tcpi_snd_mss, gone = (info.tcpi_sacked + (uint64_t)info.tcpi_lost) * mss;
	uint64_t bytes = (uint64_t)queued + info.tcpi_retrans * mss; /* what was lost and sent again is on its way */
	out->waiting = bytes > gone ? (size_t)(bytes - gone) : 0;
	out->delivered = info.tcpi_bytes_acked + info.tcpi_sacked * mss;
	out->least_rtt_us = info.tcpi_min_rtt;
}
