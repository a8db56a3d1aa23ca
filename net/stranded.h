/* stranded.h: sockets whose local address this machine has lost. base/os_address_watch.h reports
 * when to look. */
#ifndef RV_NET_STRANDED_H
#define RV_NET_STRANDED_H

#include <stdbool.h>

/* Returns true if this machine no longer has the local address of a socket: nothing will come or go
 * there. */
bool socket_is_stranded(int fd);

#endif
