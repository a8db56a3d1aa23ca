/* address_watch.h: reports when this machine gains or loses an address (rtnetlink(7)): a laptop
 * moves to another Wi-Fi, a provider gives a new address, a cable is plugged in. Otherwise TCP
 * notices only by its timeouts. */
#ifndef RV_NET_ADDRESS_WATCH_H
#define RV_NET_ADDRESS_WATCH_H

#include <stdbool.h>

/* Returns a file descriptor, which the caller closes, that becomes readable when something has
 * changed; -1 if the system does not report changes (a sandbox): then only timeouts remain. */
int address_watch_open(void);
/* Reads what there is, without blocking. Returns true if an address came or went since the last
 * call. */
bool address_watch_take(int fd);
/* Returns true if this machine no longer has the local address of a socket: nothing will come or go
 * there. */
bool socket_is_stranded(int fd);

#endif
