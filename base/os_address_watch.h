/* os_address_watch.h: reports when this machine gains or loses an address: a laptop moves to
 * another Wi-Fi, a provider gives a new address, a cable is plugged in. Otherwise TCP notices only
 * by its timeouts. */
#ifndef RV_BASE_OS_ADDRESS_WATCH_H
#define RV_BASE_OS_ADDRESS_WATCH_H

#include <stdbool.h>

/* Returns a file descriptor, which the caller closes, that becomes readable when something has
 * changed; -1 if the system does not report changes (a sandbox): then only timeouts remain. */
int os_address_watch_open(void);
/* Reads what there is, without blocking. Returns true if an address came or went since the last
 * call. */
bool os_address_watch_take(int fd);

#endif
