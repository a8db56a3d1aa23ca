/* socket_info.h: what the kernel knows of a TCP connection. Internal to net/. */
#ifndef RV_NET_MESH_SOCKET_INFO_H
#define RV_NET_MESH_SOCKET_INFO_H

#include <stddef.h>
#include <stdint.h>

struct socket_info {
	size_t waiting;       /* bytes that the socket has taken and that are not sent yet, or on their way */
	uint64_t delivered;   /* bytes that the other side has acknowledged, selectively too, of all time */
	int64_t least_rtt_us; /* the shortest round trip of late; 0: not known yet */
};
/* All zero when the kernel does not say. */
void socket_look(int fd, struct socket_info *out);

#endif
