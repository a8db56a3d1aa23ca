/* os_address_watch_linux.c: rtnetlink(7). */
#include "base/os_address_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES_BYTES = 8192 };

int os_address_watch_open(void) {
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

bool os_address_watch_take(int fd) {
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
