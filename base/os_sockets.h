/* os_sockets.h: what systems do with sockets in ways of their own. Any thread; nothing here blocks.
 * If a system lacks an option, the call does nothing: connections then end later, or wait longer in
 * line. */
#ifndef RV_BASE_OS_SOCKETS_H
#define RV_BASE_OS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Facts about a TCP connection; zero: unknown. */
struct os_socket_facts {
	size_t waiting;        /* bytes written that are not sent yet, or on their way */
	uint64_t delivered;    /* bytes that the other side has acknowledged, selectively too, since the start */
	uint32_t least_rtt_us; /* shortest recent round trip */
	uint32_t rtt_us;       /* the round trip now, smoothed */
	uint64_t sent;         /* bytes sent since the start, each as often as it was sent */
	uint64_t resent;       /* the part of them that was sent before, and held to be lost */
	uint64_t doubled;      /* about the part of that which the other side got twice: it was late, not lost */
};

/* Returns a socket, non-blocking and close-on-exec, that the caller closes; -1 with errno. */
int os_socket_open(int family, int type);
/* Returns the next connection of a listener, non-blocking and close-on-exec, and its other end; -1
 * with errno (EAGAIN: there is none). */
int os_socket_accept(int listener, struct sockaddr_storage *from);
/* Sends as send(2) does, without SIGPIPE, also on a blocking socket only what it takes at once. */
ssize_t os_socket_send(int fd, const void *bytes, size_t n);
/* Probes the other end of a silent connection after `idle_s`, then every `interval_s`; `probes`
 * without an answer end it. */
void os_socket_keep_alive(int fd, int idle_s, int interval_s, int probes);
/* Ends a connection whose bytes nobody acknowledged for `ms` (RFC 5482). */
void os_socket_limit_unacknowledged(int fd, int ms);
/* Makes the socket unwritable while more than `bytes` of it are not sent yet. */
void os_socket_limit_unsent(int fd, int bytes);
/* Sets the congestion control, at any time; "" leaves the system's. `used` gets the one in use, ""
 * if unknown. */
void os_socket_control_congestion(int fd, const char *wanted, char used[16]);
/* Fills what the system knows of a TCP connection. */
void os_socket_look(int fd, struct os_socket_facts *out);

#endif
