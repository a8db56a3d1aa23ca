/* address_watch.c: see address_watch.h. */
#include "net/address_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES_BYTES = 8192 };

int address_watch_open(void) {
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool tells_of_addresses(const char *messages, size_t n) {
	for (const struct nlmsghdr *h = (const void *)messages; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
		if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
			return true;
	return false;
}

bool address_watch_take(int fd) {
	_Alignas(struct nlmsghdr) char messages[MESSAGES_BYTES];
	bool any = false;
	for (;;) {
		ssize_t n = recv(fd, messages, sizeof messages, 0);
		if (n > 0)
			any = tells_of_addresses(messages, (size_t)n) || any;
		else if (n < 0 && errno == ENOBUFS) /* more than the socket holds: something has changed */
			any = true;
		else if (n == 0 || errno != EINTR)
			return any;
	}
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
