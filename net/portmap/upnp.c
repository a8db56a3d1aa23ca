/* upnp.c: UPnP IGD (WANIPConnection, WANPPPConnection), by libminiupnpc. */
#include "net/portmap/protocol.h"

#include <arpa/inet.h>
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <miniupnpc/upnperrors.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DISCOVER_MS = 2000,
	TTL = 2,
	PORTS_TRIED = 8,
	CONNECTED = 1, /* of UPNP_GetValidIGD */
	REFUSED = 606,
	CONFLICT = 718,
	PERMANENT_ONLY = 725,
	NO_PORTS = 728
};

struct gateway {
	struct UPNPUrls urls;
	struct IGDdatas data;
	char self[INET_ADDRSTRLEN];
};

/* Finds the router. On success FreeUPNPUrls ends it. */
static enum rv_err find(struct gateway *g, struct rv_errtext *et) {
	int error = 0;
	struct UPNPDev *devices = upnpDiscover(DISCOVER_MS, NULL, NULL, 0, 0, TTL, &error);
	if (devices == NULL)
		return rv_fail(et, RV_E_UNSUPPORTED, "no router answers UPnP");
	int kind = UPNP_GetValidIGD(devices, &g->urls, &g->data, g->self, sizeof g->self);
	freeUPNPDevlist(devices);
	if (kind == CONNECTED)
		return RV_OK;
	if (kind != 0)
		FreeUPNPUrls(&g->urls);
	if (kind == 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "no router answers UPnP");
	return rv_fail(
		et, RV_E_IO,
		"the router says that it is not on the internet: its line is down, or another router, most likely the "
		"provider's, is before it");
}

static int add(const struct gateway *g, uint16_t inside, uint16_t outside, uint32_t seconds) {
	char in[8], out[8], lease[12];
	(void)snprintf(in, sizeof in, "%u", inside);
	(void)snprintf(out, sizeof out, "%u", outside);
	(void)snprintf(lease, sizeof lease, "%u", seconds);
	return UPNP_AddPortMapping(g->urls.controlURL, g->data.first.servicetype, out, in, g->self, "rivulet-worker", "TCP",
							   NULL, lease);
}

/* Another machine of the house may have the port: the next ones are tried. A router that knows no
 * leases gets a mapping without an end, which unmap() removes. */
static enum rv_err add_some(const struct gateway *g, struct portmap_lease *l, struct rv_errtext *et) {
	uint16_t first = l->outside != 0 ? l->outside : l->inside;
	int error = CONFLICT;
	for (uint16_t i = 0; i < PORTS_TRIED && error == CONFLICT && first + i <= UINT16_MAX; i++) {
		l->outside = (uint16_t)(first + i);
		error = add(g, l->inside, l->outside, l->seconds);
		if (error != PERMANENT_ONLY)
			continue;
		l->seconds = 0;
		error = add(g, l->inside, l->outside, 0);
	}
	if (error == UPNPCOMMAND_SUCCESS)
		return RV_OK;
	const char *text = strupnperror(error);
	enum rv_err e = error == REFUSED ? RV_E_AUTH : error == CONFLICT || error == NO_PORTS ? RV_E_FULL : RV_E_IO;
	return rv_fail(et, e, "the router refuses UPnP: %s (code %d)", text != NULL ? text : "unknown", error);
}

static enum rv_err map(struct portmap_lease *l, struct rv_errtext *et) {
	struct gateway g = {0};
	char outside[INET6_ADDRSTRLEN + 1] = "";
	RV_TRY(find(&g, et));
	if (UPNP_GetExternalIPAddress(g.urls.controlURL, g.data.first.servicetype, outside) != UPNPCOMMAND_SUCCESS ||
		inet_pton(AF_INET, outside, &l->address) != 1)
		l->address.s_addr = 0;
	enum rv_err e = add_some(&g, l, et);
	FreeUPNPUrls(&g.urls);
	return e;
}

static void unmap(const struct portmap_lease *l) {
	struct gateway g = {0};
	char out[8];
	if (find(&g, NULL) != RV_OK)
		return;
	(void)snprintf(out, sizeof out, "%u", l->outside);
	(void)UPNP_DeletePortMapping(g.urls.controlURL, g.data.first.servicetype, out, "TCP", NULL);
	FreeUPNPUrls(&g.urls);
}

const struct portmap_protocol portmap_upnp = {.name = "UPnP", .map = map, .unmap = unmap};
