/* member_address.c: see member_address.h. */
#include "coordinator/service/member_address.h"

#include "net/address_reach.h"

#include <string.h>

static bool same_host(const char *a, const char *b) {
	struct address x = {0}, y = {0};
	struct sockaddr_storage sa;
	socklen_t n;
	memcpy(x.host, a, strlen(a) + 1);
	memcpy(y.host, b, strlen(b) + 1);
	if (!address_to_socket(&x, &sa, &n))
		return false; /* a name */
	address_of_socket(&sa, &x);
	if (!address_to_socket(&y, &sa, &n))
		return false;
	address_of_socket(&sa, &y);
	return strcmp(x.host, y.host) == 0;
}

static enum address_reach reach_of(const char *host) {
	struct address a = {0};
	memcpy(a.host, host, strlen(host) + 1);
	return address_reach(&a);
}

/* Returns the host to announce for a member seen at a host of a narrow range, which others reach
 * only at the coordinator's site. */
static const char *host_at_site(const struct member_sight *sight, const char *site, const char *stated,
								enum address_reach reach) {
	enum address_reach at_site = reach_of(site), own = reach_of(sight->own);
	if (reach == ADDRESS_LOOPBACK)
		return at_site <= ADDRESS_PRIVATE ? site : sight->host;
	/* A member behind the coordinator's router, with a forwarded port, is the operator's own
	 * machine. */
	if (at_site == ADDRESS_PUBLIC && (own != reach || same_host(stated, site)))
		return site;
	return own == ADDRESS_PUBLIC ? sight->own : sight->host;
}

enum rv_err member_address_choose(const struct member_sight *sight, const char *site, const char *stated,
								  char out[NET_ADDR_BYTES], bool *replaced, struct rv_errtext *et) {
	struct address a;
	enum address_reach reach = reach_of(sight->host);
	RV_TRY(address_parse(stated, &a, et));
	if (reach == ADDRESS_UNUSABLE)
		return rv_fail(et, RV_E_INVALID, "report: its sender is seen at '%s', an address that cannot be dialed",
					   sight->host);
	const char *host = sight->host;
	if (reach != ADDRESS_PUBLIC)
		host = host_at_site(sight, site, a.host[0] != '\0' ? a.host : "-", reach);
	*replaced = a.host[0] != '\0' && !same_host(a.host, host);
	memcpy(a.host, host, strlen(host) + 1);
	if (!address_format(&a, out))
		return rv_fail(et, RV_E_RANGE, "report: the address of its sender, '%s', is too long", sight->host);
	return RV_OK;
}
