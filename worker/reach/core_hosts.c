/* core_hosts.c: the hosts that a peer's candidates name, and how often a relay may have other ones
 * dialed (core_state.h). */
#include "base/gcra.h"
#include "worker/reach/core_state.h"

#include <netinet/in.h>
#include <string.h>

/* Openings that a relay may make this worker take part in: with one peer; and in all, to hosts
 * that no candidate of the peer has. */
static const struct gcra openings = {.each_us = 2 * RV_US_PER_S, .burst = 4};
static const struct gcra strange = {.each_us = 30 * RV_US_PER_S, .burst = 8};

/* Returns false if the host is a name. */
static bool host_bytes(const struct address *a, uint8_t out[HOST_BYTES]) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (a->host[0] == '\0' || !address_to_socket(a, &sa, &n))
		return false;
	memset(out, 0, HOST_BYTES);
	if (sa.ss_family == AF_INET6) {
		memcpy(out, &((struct sockaddr_in6 *)&sa)->sin6_addr, HOST_BYTES);
		return true;
	}
	out[10] = out[11] = 0xff; /* RFC 4291, section 2.5.5.2 */
	memcpy(out + 12, &((struct sockaddr_in *)&sa)->sin_addr, 4);
	return true;
}

void hosts_learn(struct pair *p, const struct member_ref *ref) {
	struct address a;
	p->n_hosts = 0;
	for (int i = 0; i < ref->n_candidates; i++)
		if (address_parse(ref->candidates[i].addr, &a, NULL) == RV_OK && host_bytes(&a, p->hosts[p->n_hosts]))
			p->n_hosts++;
}

bool hosts_have_ipv6(const struct pair *p) {
	static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	for (int i = 0; i < p->n_hosts; i++)
		if (memcmp(p->hosts[i], mapped, sizeof mapped) != 0)
			return true;
	return false;
}

static bool is_host_of(const struct pair *p, const struct address *at) {
	uint8_t host[HOST_BYTES];
	for (int i = 0; host_bytes(at, host) && i < p->n_hosts; i++)
		if (memcmp(host, p->hosts[i], HOST_BYTES) == 0)
			return true;
	return false;
}

bool hosts_may_open(struct reach_core *r, int64_t now_us, struct pair *p, const struct address *at) {
	return address_is_dialable(at, r->met) && gcra_take(&openings, &p->opens_until_us, now_us) &&
		   (is_host_of(p, at) || gcra_take(&strange, &r->strange_until_us, now_us));
}
