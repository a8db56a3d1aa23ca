/* table.c: the members with which the mesh deals, by number (net/mesh/state.h).
 *
 * A run may have any number of members; a worker has to do with few of them: those that its
 * documents name, and guests. One with which there is nothing to do is kept for what is known of
 * its addresses, until its place is needed. */
#include "net/mesh/state.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Returns the index of the first member with this number or a higher one. */
static int place_of(const struct peers *p, uint32_t member) {
	int low = 0, high = p->n_members;
	while (low < high) {
		int mid = (low + high) / 2;
		if (p->members[mid]->member < member)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct peer *peers_find(const struct peers *p, uint32_t member) {
	int at = place_of(p, member);
	return at < p->n_members && p->members[at]->member == member ? p->members[at] : NULL;
}

static bool is_idle(const struct peer *peer) {
	return !peer->wanted && peer->link == NULL && peer->dialing == NULL && peer->calling == NULL && !peer->offered;
}

/* Takes a member from the table; it is freed when no caller may hold it. */
static void drop(struct peers *p, int at) {
	struct peer *peer = p->members[at];
	RV_ASSERT(is_idle(peer));
	memmove(&p->members[at], &p->members[at + 1], (size_t)(--p->n_members - at) * sizeof p->members[0]);
	peer->dropped = p->dropped;
	p->dropped = peer;
}

/* Drops the member that has been idle for longest. Returns false if none is. */
static bool drop_one(struct peers *p) {
	int oldest = -1;
	for (int i = 0; i < p->n_members; i++)
		if (is_idle(p->members[i]) && (oldest < 0 || p->members[i]->used_us < p->members[oldest]->used_us))
			oldest = i;
	if (oldest >= 0)
		drop(p, oldest);
	return oldest >= 0;
}

struct peer *peers_add(struct peers *p, uint32_t member) {
	struct peer *peer = peers_find(p, member);
	if (peer != NULL || (p->n_members == NET_MAX_PEERS && !drop_one(p)))
		return peer;
	peer = calloc(1, sizeof *peer);
	if (peer == NULL)
		return NULL;
	int at = place_of(p, member);
	memmove(&p->members[at + 1], &p->members[at], (size_t)(p->n_members++ - at) * sizeof p->members[0]);
	p->members[at] = peer;
	peer->member = member;
	return peer;
}

/* Ends the link to the guest from which nothing has come for longest. Returns false if there is no
 * guest. */
static bool end_a_guest(struct peers *p) {
	struct link *oldest = NULL;
	for (int i = 0; i < p->n_members; i++) {
		struct link *l = p->members[i]->wanted ? NULL : p->members[i]->link;
		if (l != NULL && l->state != LINK_DEAD && (oldest == NULL || l->last_rx_us < oldest->last_rx_us))
			oldest = l;
	}
	if (oldest == NULL)
		return false;
	link_end(oldest, false, RV_E_FULL, "its place is needed for a member that the document names");
	peers_reap(p);
	return true;
}

void peers_make_room(struct peers *p, int n) {
	int idle = 0;
	for (int i = 0; i < p->n_members; i++)
		idle += is_idle(p->members[i]);
	for (int lack = n - (NET_MAX_PEERS - p->n_members) - idle; lack > 0 && end_a_guest(p); lack--)
		;
}

void peers_free_dropped(struct peers *p) {
	while (p->dropped != NULL) {
		struct peer *peer = p->dropped;
		p->dropped = peer->dropped;
		free(peer);
	}
}

void peers_free_members(struct peers *p) {
	for (int i = 0; i < p->n_members; i++)
		free(p->members[i]);
	p->n_members = 0;
	peers_free_dropped(p);
}
