/* os_sockets_linux.c: tcp(7), accept4(2). */
#include "base/os_sockets.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

static void set_int(int fd, int level, int option, int value) {
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

int os_socket_open(int family, int type) {
	return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int os_socket_accept(int listener, struct sockaddr_storage *from) {
	socklen_t n = sizeof *from;
	return accept4(listener, (struct sockaddr *)from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

ssize_t os_socket_send(int fd, const void *bytes, size_t n) {
	return send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void os_socket_keep_alive(int fd, int idle_s, int interval_s, int probes) {
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, probes);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void os_socket_limit_unacknowledged(int fd, int ms) {
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

void os_socket_limit_unsent(int fd, int bytes) {
	set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

void os_socket_control_congestion(int fd, const char *wanted, char used[16]) {
	if (wanted[0] != '\0')
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted, (socklen_t)strlen(wanted));
	socklen_t n = 15;
	memset(used, 0, 16);
	(void)getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, used, &n);
}

/* Lost bytes that were sent again are on their way. */
static size_t waiting_bytes(int fd, const struct tcp_info *info) {
	int queued = 0;
	if (ioctl(fd, SIOCOUTQ, &queued) != 0 || queued < 0)
		return 0;
	uint64_t mss = info->tcpi_snd_mss, gone = (info->tcpi_sacked + (uint64_t)info->tcpi_lost) * mss;
	uint64_t bytes = (uint64_t)queued + info->tcpi_retrans * mss;
	return bytes > gone ? (size_t)(bytes - gone) : 0;
}

void os_socket_look(int fd, struct os_socket_facts *out) {
	struct tcp_info info = {0};
	socklen_t n = sizeof info;
	*out = (struct os_socket_facts){0};
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
		return;
	out->waiting = waiting_bytes(fd, &info);
	out->delivered = info.tcpi_bytes_acked + info.tcpi_sacked * (uint64_t)info.tcpi_snd_mss;
	out->least_rtt_us = info.tcpi_min_rtt != UINT32_MAX ? info.tcpi_min_rtt : 0; /* as before the first answer */
	out->rtt_us = info.tcpi_rtt;
	out->sent = info.tcpi_bytes_sent;
	out->resent = info.tcpi_bytes_retrans;
	out->doubled = info.tcpi_dsack_dups * (uint64_t)info.tcpi_snd_mss;
}
