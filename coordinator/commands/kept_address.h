/* kept_address.h: DIR/address, lines `listen = HOST:PORT` and `advertise = HOST:PORT`: where the
 * last `serve` of the run listened, so that the next one listens there by itself. */
#ifndef RV_COORDINATOR_COMMANDS_KEPT_ADDRESS_H
#define RV_COORDINATOR_COMMANDS_KEPT_ADDRESS_H

#include "net/address.h"

struct kept_address {
	char listen[NET_ADDR_BYTES], advertise[NET_ADDR_BYTES]; /* "": none */
};
/* Reads the file; without it *out stays. RV_E_INVALID, RV_E_IO: it is damaged; the text says what
 * to do. */
enum rv_err kept_address_read(const char *path, struct kept_address *out, struct rv_errtext *et);
/* Writes the file, unless it has that content. RV_E_FULL, RV_E_IO. */
enum rv_err kept_address_write(const char *path, const struct kept_address *a, struct rv_errtext *et);

#endif
