/* listen_socket.h: the coordinator's port, with a helpful fault if it is taken. */
#ifndef RV_COORDINATOR_LISTEN_SOCKET_H
#define RV_COORDINATOR_LISTEN_SOCKET_H

#include "base/err.h"
#include "net/address.h"

/* Opens a non-blocking, close-on-exec socket that listens at the numeric address `at` (port 0: any
 * free one; host "": all). `option`: the one that chooses the port, for texts. *bound: with the
 * actual port. RV_E_BUSY names the process that has the port, if it is visible; RV_E_INVALID: not a
 * numeric address; RV_E_IO. */
enum rv_err listen_socket_open(const struct address *at, const char *option, int *fd, struct address *bound,
							   struct rv_errtext *et);

#endif
