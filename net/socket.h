/* socket.h: the sockets of the mesh: non-blocking, close-on-exec, with the options that its traffic needs.
 * Internal to net/. */
#ifndef RV_NET_SOCKET_H
#define RV_NET_SOCKET_H

#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How far control may queue behind bulk in the kernel: bytes not sent yet, beyond which the socket is not writable. */
enum { SOCKET_NOTSENT_BYTES = 1 << 17 };

/* receive_bytes: the size of the receive buffer, also of what a listener accepts; 0: the system's choice. It has to be
 * known this early, because TCP settles the window's scale when it connects. */
/* `listen_on`: "host:port", numeric or "" for every address; port 0: any. Fills *port. RV_E_BUSY, RV_E_INVALID,
 * RV_E_IO.
 */
enum rv_err socket_listen(const char *listen_on, int receive_bytes, int *out_fd, uint16_t *port, struct rv_errtext *et);
/* Starts to connect. RV_E_UNSUPPORTED: the host is a name, not a number; RV_E_IO. */
enum rv_err socket_connect(const struct address *to, int receive_bytes, int *out_fd, struct rv_errtext *et);
/* After it became writable: RV_OK, RV_E_NOTFOUND (refused: nobody listens there), RV_E_IO. */
enum rv_err socket_connected(int fd, struct rv_errtext *et);
/* Returns true if this machine no longer has the local address of the socket: nothing will come or go there. */
bool socket_is_stranded(int fd);
/* -1 with errno. */
int socket_accept(int listener, struct address *from);
/* Options of a connected socket. */
void socket_tune(int fd);
/* At any time. `congestion`: "" leaves the system's. `used` gets what the kernel says. */
void socket_control_congestion(int fd, const char *congestion, char used[16]);

#endif
