/* address.h: "host:port" texts, as people write them and as the wire carries them; IPv6 in
 * brackets. */
#ifndef RV_NET_ADDRESS_H
#define RV_NET_ADDRESS_H

#include "base/err.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
	char host[NET_ADDR_BYTES]; /* without brackets; "" in ":port" */
	uint16_t port;             /* 0 only where the caller allows it */
};

/* Splits "host:port", "[v6]:port", ":port". RV_E_INVALID names what is wrong. Does not resolve. */
enum rv_err address_parse(const char *text, struct address *out, struct rv_errtext *et);
/* Writes "host:port", with brackets where the host holds a colon. Returns false if it does not
 * fit. */
bool address_format(const struct address *a, char out[NET_ADDR_BYTES]);
/* Fills `out` from a numeric host; the name service is not asked. Returns false if the host is a
 * name. "" is the wildcard (of IPv6, which accepts IPv4 too). */
bool address_to_socket(const struct address *a, struct sockaddr_storage *out, socklen_t *out_bytes);
/* Looks up the name in `a` and copies the address with the first numeric host found; a numeric or
 * empty host is copied unchanged. Blocks, for seconds at worst: only for the start of a program.
 * RV_E_NOTFOUND: the name service knows no such name, or does not answer. */
enum rv_err address_resolve(const struct address *a, struct address *out, struct rv_errtext *et);
/* Opens a non-blocking, close-on-exec TCP socket that listens at the numeric address `a`; its
 * connections, which inherit its options, send without delay and have receive buffers of
 * `receive_bytes` (0: the system's choice). *bound: with the actual port. Returns -1 with errno;
 * EINVAL: the host is a name. */
int address_listen(const struct address *a, int receive_bytes, int backlog, struct address *bound);
/* Writes the numeric address of `sa`; an IPv4 address mapped into IPv6 becomes IPv4. */
void address_of_socket(const struct sockaddr_storage *sa, struct address *out);
/* Writes what limits count a numeric host by: itself, or of IPv6 its /64 ("2a12::/64"), which is
 * one subscriber's or less (RFC 6177). Any other text is copied. */
void address_site(const char *host, char out[NET_ADDR_BYTES]);

#endif
