/* houses.c: the hosts at which members were seen (SEEN and REFLECTED addresses). Two of one host
 * are most likely in one house, and dial each other's private addresses (candidates_share_host).
 *
 * A house is found by the hash of its host. It has the list of its members (a seat each) and the
 * number of those that are available: what one that comes, goes or moves changes for others is
 * found without looking at members elsewhere, and at its housemates only where the first or the
 * second one comes or goes. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

_Static_assert(CORE_SEATS_OF(NET_MAX_HERE) < UINT16_MAX, "a seat + 1, or a house + 1, is a uint16_t");

/* ---- hosts ---- */

/* Returns the bytes of the host in "host:port"; 0: the member was not seen there. */
static size_t host_bytes(const struct candidate_ref *at) {
	const char *end = strrchr(at->addr, ':');
	bool was_seen = at->kind == CANDIDATE_SEEN || at->kind == CANDIDATE_REFLECTED;
	return was_seen && end != NULL ? (size_t)(end - at->addr) : 0;
}

/* Returns the head of the list of the houses whose hosts have this hash (FNV-1a). */
static uint16_t *head_of(const struct core *c, const char *host, size_t n) {
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (uint8_t)host[i]) * UINT64_C(0x100000001b3);
	return &c->houses.heads[(hash ^ hash >> 32) % CORE_SEATS_OF(c->cfg.max_here)];
}

static struct core_member *member_at(const struct core *c, uint32_t seat) {
	return &c->members[seat / NET_MAX_CANDIDATES];
}

static const struct candidate_ref *address_at(const struct core *c, uint32_t seat) {
	return &member_at(c, seat)->places.at[seat % NET_MAX_CANDIDATES];
}

static bool is_of_host(const struct core *c, const struct core_house *h, const char *host, size_t n) {
	const struct candidate_ref *known = address_at(c, h->first - 1u);
	return host_bytes(known) == n && memcmp(known->addr, host, n) == 0;
}

/* Returns the place at which the house of a host is, or would be, listed by its hash. */
static uint16_t *find(const struct core *c, const char *host, size_t n) {
	uint16_t *at = head_of(c, host, n);
	while (*at != 0 && !is_of_host(c, &c->houses.at[*at - 1], host, n))
		at = &c->houses.at[*at - 1].next;
	return at;
}

/* ---- seats ---- */

static uint16_t take_house(struct core *c) {
	struct core_houses *all = &c->houses;
	uint16_t house = all->free;
	if (house == 0)
		house = ++all->n;
	else
		all->free = all->at[house - 1].next;
	RV_ASSERT(all->n <= CORE_SEATS_OF(c->cfg.max_here));
	all->at[house - 1] = (struct core_house){0};
	return house;
}

static bool is_in(const struct core *c, uint32_t slot, uint16_t house) {
	for (uint32_t i = 0; i < NET_MAX_CANDIDATES; i++)
		if (c->houses.seats[slot * NET_MAX_CANDIDATES + i].house == house)
			return true;
	return false;
}

static void sit(struct core *c, uint32_t seat, size_t n) {
	uint16_t *at = find(c, address_at(c, seat)->addr, n);
	if (*at != 0 && is_in(c, seat / NET_MAX_CANDIDATES, *at))
		return; /* one seat a member */
	if (*at == 0)
		*at = take_house(c);
	struct core_house *h = &c->houses.at[*at - 1];
	c->houses.seats[seat] = (struct core_seat){.house = *at, .after = h->first};
	if (h->first != 0)
		c->houses.seats[h->first - 1].before = (uint16_t)(seat + 1);
	h->first = (uint16_t)(seat + 1);
}

static void stand_up(struct core *c, uint32_t seat) {
	struct core_seat *s = &c->houses.seats[seat];
	const uint16_t house = s->house;
	const struct candidate_ref *address = address_at(c, seat);
	uint16_t *at = find(c, address->addr, host_bytes(address));
	RV_ASSERT(*at == house);
	struct core_house *h = &c->houses.at[house - 1];
	if (s->before != 0)
		c->houses.seats[s->before - 1].after = s->after;
	else
		h->first = s->after;
	if (s->after != 0)
		c->houses.seats[s->after - 1].before = s->before;
	*s = (struct core_seat){0};
	if (h->first != 0)
		return;
	RV_ASSERT(h->available == 0);
	*at = h->next;
	h->next = c->houses.free;
	c->houses.free = house;
}

/* ---- members ---- */

void core_houses_enter(struct core *c, uint32_t slot) {
	const struct core_places *p = &c->members[slot].places;
	for (uint32_t i = 0; i < p->n; i++)
		if (host_bytes(&p->at[i]) > 0)
			sit(c, slot * NET_MAX_CANDIDATES + i, host_bytes(&p->at[i]));
}

/* Marks those in the house that have a private address. */
static void touch(struct core *c, const struct core_house *h) {
	for (uint16_t seat = h->first; seat != 0; seat = c->houses.seats[seat - 1].after)
		if (core_has_private(member_at(c, seat - 1u)))
			core_views_touch(c, (seat - 1u) / NET_MAX_CANDIDATES);
}

static void count(struct core *c, uint32_t slot, bool available) {
	struct core_member *m = &c->members[slot];
	if (m->counted == available)
		return;
	m->counted = available;
	for (uint32_t i = 0; i < NET_MAX_CANDIDATES; i++) {
		const struct core_seat *s = &c->houses.seats[slot * NET_MAX_CANDIDATES + i];
		if (s->house == 0)
			continue;
		struct core_house *h = &c->houses.at[s->house - 1];
		RV_ASSERT(available || h->available > 0);
		h->available = (uint16_t)(available ? h->available + 1 : h->available - 1);
		if (h->available <= (available ? 2 : 1)) /* none, or one, was there beside it */
			touch(c, h);
	}
}

void core_houses_leave(struct core *c, uint32_t slot) {
	count(c, slot, false);
	for (uint32_t i = 0; i < NET_MAX_CANDIDATES; i++)
		if (c->houses.seats[slot * NET_MAX_CANDIDATES + i].house != 0)
			stand_up(c, slot * NET_MAX_CANDIDATES + i);
}

void core_houses_follow(struct core *c) {
	for (int k = 0; k < c->slots.n; k++)
		count(c, c->slots.order[k], core_available(c, &c->members[c->slots.order[k]]));
}

bool core_has_private(const struct core_member *m) {
	for (int i = 0; i < m->places.n; i++)
		if (m->places.at[i].kind == CANDIDATE_PRIVATE)
			return true;
	return false;
}

bool core_has_housemate(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	for (uint32_t i = 0; i < NET_MAX_CANDIDATES && core_has_private(m); i++) {
		const struct core_seat *s = &c->houses.seats[slot * NET_MAX_CANDIDATES + i];
		if (s->house != 0 && c->houses.at[s->house - 1].available > m->counted)
			return true;
	}
	return false;
}
