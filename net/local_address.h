/* local_address.h: the address of this machine from which it reaches another one. */
#ifndef RV_NET_LOCAL_ADDRESS_H
#define RV_NET_LOCAL_ADDRESS_H

#include "net/address.h"

/* Fills in the source address that the system would choose for the numeric address `to`, without a
 * port: that of the interface to which its routes lead. Sends nothing. Returns false if no route
 * leads there. */
bool local_address_toward(const struct address *to, struct address *out);

#endif
