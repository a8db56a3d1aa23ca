/* listen_socket.h: the coordinator's port, and a good answer when it is taken. Linux. */
#ifndef RV_COORDINATOR_LISTEN_SOCKET_H
#define RV_COORDINATOR_LISTEN_SOCKET_H

#include "base/err.h"
#include "net/address.h"

/* A non-blocking, close-on-exec socket that listens at the numeric address `at` (port 0: any free one; host "": all).
 * *bound: with the actual port. RV_E_BUSY names the process that has the port, when it may be seen; RV_E_INVALID: not a
 * numeric address; RV_E_IO. */
enum rv_err listen_socket_open(const struct address *at, int *fd, struct address *bound, struct rv_errtext *et);

#endif
