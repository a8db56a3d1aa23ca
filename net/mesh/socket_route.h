/* socket_route.h: how a socket gets connected by each kind of route; internal to the socket pipe
 * (net/mesh/pipe.h: connect and connected). */
#ifndef RV_NET_MESH_SOCKET_ROUTE_H
#define RV_NET_MESH_SOCKET_ROUTE_H

#include "net/mesh/pipe.h"

enum rv_err socket_route_connect(void *ctx, const struct route *to, int receive_bytes, int *fd, struct rv_errtext *et);
enum rv_err socket_route_connected(void *ctx, int fd, const struct route *to, short *events, struct rv_errtext *et);

#endif
