/* map_port.c: map_port PROTOCOL PORT: asks the router for TCP PORT by one protocol ("PCP",
 * "NAT-PMP", "UPnP") or as a worker does ("any"), prints the result as a line, and removes the
 * mapping when its input ends. For tests of net/portmap with real routers. */
#include "net/portmap/portmap.h"
#include "net/portmap/protocol.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *protocol, const char *host, unsigned port, const char *text) {
	(void)printf("%s %s %u %s\n", protocol, host, port, text);
	(void)fflush(stdout);
}

static void wait_for_end(void) {
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static int by(const struct portmap_protocol *p, uint16_t port) {
	struct portmap_lease l = {.inside = port, .outside = port, .seconds = 3600, .nonce = {1, 2, 3}};
	struct rv_errtext et = {0};
	char host[INET_ADDRSTRLEN] = "-";
	enum rv_err e = p->map(&l, &et);
	if (e != RV_OK) {
		say("none", "-", 0, et.text);
		return 1;
	}
	say(p->name, inet_ntop(AF_INET, &l.address, host, sizeof host), l.outside, "");
	wait_for_end();
	p->unmap(&l);
	return 0;
}

/* As a worker: a line for each change. */
static int as_a_worker(uint16_t port) {
	struct portmap *p;
	struct portmap_state state;
	struct rv_errtext et = {0};
	if (portmap_start(port, &p, &et) != RV_OK)
		return 1;
	while (!portmap_look(p, &state))
		(void)usleep(10000);
	say(state.protocol != NULL ? state.protocol : "none", state.protocol != NULL ? state.outside.host : "-",
		state.outside.port, state.text);
	wait_for_end();
	portmap_stop(p);
	return 0;
}

int main(int argc, char **argv) {
	static const struct portmap_protocol *const all[] = {&portmap_pcp, &portmap_natpmp, &portmap_upnp};
	if (argc != 3)
		return 2;
	uint16_t port = (uint16_t)strtoul(argv[2], NULL, 10);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (strcmp(argv[1], all[i]->name) == 0)
			return by(all[i], port);
	return as_a_worker(port);
}
