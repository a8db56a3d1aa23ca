/* relay_offers.c: relays that members run for others: offered in reports, tested by other members
 * (reach_tests.h), listed in documents (offered_relays.h). */
#include "coordinator/service/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- the list ---- */

/* Sets `live` to those of the listed that are. */
static void find_live(const struct service *s, uint64_t live[CORE_HERE_WORDS]) {
	const uint64_t *listed = s->offered.listed;
	set_clear(live, CORE_HERE_WORDS);
	for (int i = set_next(listed, 0, CORE_HERE_WORDS); i >= 0; i = set_next(listed, i + 1, CORE_HERE_WORDS)) {
		const struct core_member_view v = core_view(s->core, (uint32_t)i);
		if (v.alive && !v.banned)
			set_add(live, (uint32_t)i);
	}
}

void service_list_relays(struct service *s, int64_t now_us) {
	struct relay_ref offered[NET_MAX_RELAYS];
	uint64_t live[CORE_HERE_WORDS];
	if (s->offered.turns == 0)
		return; /* none was ever confirmed */
	find_live(s, live);
	int n = offered_relays_list(&s->offered, now_us, live, offered);
	core_list_relays(s->core, offered, n);
}

/* ---- offers ---- */

/* The host is the one at which the member is seen, as for its own address: it can offer nobody
 * else's. */
static struct relay_ref offer_of(const struct service *s, const struct member_sight *sight,
								 const uint8_t key[NET_KEY_BYTES], uint16_t port) {
	const struct member_facts facts = {.sight = sight, .site = s->cfg.site, .port = s->cfg.advertise.port};
	struct relay_ref at = {.addr = ""};
	char stated[16];
	(void)snprintf(stated, sizeof stated, ":%u", port);
	memcpy(at.key, key, sizeof at.key);
	if (port == 0 || member_address_seen(&facts, stated, at.addr, NULL) != RV_OK)
		at.addr[0] = '\0';
	return at;
}

static enum offered_finding finding_of(const struct reach_finding *found) {
	if (found->n_probers == 0 || found->results[0] == PROBE_NOT_KNOWN || found->results[0] == PROBE_UNABLE)
		return OFFERED_NOBODY;
	return found->results[0] == PROBE_OPEN ? OFFERED_REACHED : OFFERED_NOT_REACHED;
}

static void log_finding(struct service *s, uint32_t member, const char *addr, enum offered_finding found) {
	if (found == OFFERED_NOBODY)
		return;
	service_tell_operator(s, RV_INFO, "relay_offer", addr, "member %u runs a relay for others: %s", member,
						  found == OFFERED_REACHED ? "another member has reached it, so it may be listed"
												   : "no other member reaches it, so it is not listed");
}

/* Has the offer tested, by the same question until it is answered. */
static void test(struct service *s, int64_t now_us, uint32_t slot, const struct member_sight *sight) {
	const struct offered_relay *offer = &s->offered.members[slot];
	struct reach_question q = {.n = 1, .of_report = true};
	struct reach_finding found;
	memcpy(q.key, offer->at.key, sizeof q.key);
	memcpy(q.host, sight->host, sizeof q.host);
	memcpy(q.addrs[0].addr, offer->at.addr, sizeof q.addrs[0].addr);
	if (!service_probe_for(s, now_us, sight, &q, &found) || !found.done)
		return;
	bool was = offer->turn != 0;
	enum offered_finding now = finding_of(&found);
	offered_relays_tested(&s->offered, now_us, slot, now);
	if (was != (offer->turn != 0))
		log_finding(s, core_number(s->core, slot), offer->at.addr, now);
}

void service_take_offer(struct service *s, int64_t now_us, uint32_t slot, const struct member_sight *sight,
						const uint8_t key[NET_KEY_BYTES], uint16_t port) {
	const struct relay_ref at = offer_of(s, sight, key, port);
	offered_relays_take(&s->offered, now_us, slot, &at);
	if (offered_relays_due(&s->offered, now_us, slot))
		test(s, now_us, slot, sight);
	service_list_relays(s, now_us);
}
