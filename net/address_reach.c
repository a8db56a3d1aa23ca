/* address_reach.c: the ranges of the IANA special-purpose address registries
 * (net/address_reach.h). */
#include "net/address_reach.h"

#include <netinet/in.h>
#include <string.h>

struct range4 {
	uint32_t first;
	int bits;
	enum address_reach reach;
};

static enum address_reach reach4(uint32_t ip) {
	static const struct range4 ranges[] = {{0x00000000, 8, ADDRESS_UNUSABLE},  /* 0.0.0.0/8: this network */
										   {0x0a000000, 8, ADDRESS_PRIVATE},   /* 10.0.0.0/8 */
										   {0x64400000, 10, ADDRESS_PRIVATE},  /* 100.64.0.0/10 */
										   {0x7f000000, 8, ADDRESS_LOOPBACK},  /* 127.0.0.0/8 */
										   {0xa9fe0000, 16, ADDRESS_LINK},     /* 169.254.0.0/16 */
										   {0xac100000, 12, ADDRESS_PRIVATE},  /* 172.16.0.0/12 */
										   {0xc0a80000, 16, ADDRESS_PRIVATE},  /* 192.168.0.0/16 */
										   {0xe0000000, 4, ADDRESS_UNUSABLE},  /* 224.0.0.0/4: multicast */
										   {0xf0000000, 4, ADDRESS_UNUSABLE}}; /* 240.0.0.0/4: reserved, broadcast */
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if ((ip ^ ranges[i].first) >> (32 - ranges[i].bits) == 0)
			return ranges[i].reach;
	return ADDRESS_PUBLIC;
}

static uint32_t v4_at(const uint8_t *b) {
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static enum address_reach reach6(const struct in6_addr *a) {
	static const uint8_t translated[12] = {0x00, 0x64, 0xff, 0x9b}; /* 64:ff9b::/96 */
	const uint8_t *b = a->s6_addr;
	if (IN6_IS_ADDR_V4MAPPED(a) || memcmp(b, translated, sizeof translated) == 0)
		return reach4(v4_at(b + 12));
	if (IN6_IS_ADDR_LOOPBACK(a))
		return ADDRESS_LOOPBACK;
	if (IN6_IS_ADDR_LINKLOCAL(a))
		return ADDRESS_LINK;
	if ((b[0] & 0xfe) == 0xfc)
		return ADDRESS_PRIVATE;
	bool unusable = b[0] == 0 || IN6_IS_ADDR_MULTICAST(a) || IN6_IS_ADDR_SITELOCAL(a);
	return unusable ? ADDRESS_UNUSABLE : ADDRESS_PUBLIC;
}

enum address_reach address_reach(const struct address *a) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (a->host[0] == '\0' || !address_to_socket(a, &sa, &n))
		return ADDRESS_UNUSABLE;
	if (sa.ss_family == AF_INET)
		return reach4(ntohl(((const struct sockaddr_in *)&sa)->sin_addr.s_addr));
	return reach6(&((const struct sockaddr_in6 *)&sa)->sin6_addr);
}

bool address_is_dialable(const struct address *a, enum address_reach met) {
	enum address_reach r = address_reach(a);
	return a->port != 0 && r != ADDRESS_UNUSABLE && r <= met;
}

const char *address_reach_name(enum address_reach r) {
	static const char *const names[] = {"public", "private", "link-local", "loopback", "unusable"};
	return names[r];
}
