/* socket_info.h: what the kernel knows of a TCP connection. Internal to net/. */
#ifndef RV_NET_SOCKET_INFO_H
#define RV_NET_SOCKET_INFO_H

#include <stddef.h>
#include <stdint.h>

struct socket_info {
	size_t unsent;  /* bytes that the socket has taken and not sent for the first time yet */
	uint64_t acked; /* bytes that the other side has acknowledged, of all time */
};
/* All zero when the kernel does not say. */
void socket_look(int fd, struct socket_info *out);

#endif
