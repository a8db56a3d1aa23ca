/* candidates.c: the addresses at which others may dial this worker, as its reports state them. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "net/local_address.h"

#include <stdio.h>
#include <string.h>

/* A list that is being made. */
struct listed {
	struct candidate *list;
	uint8_t n;
};

static struct candidate *add(struct listed *to, enum candidate_kind kind) {
	if (to->n == NET_MAX_CANDIDATES)
		return NULL;
	struct candidate *c = &to->list[to->n++];
	*c = (struct candidate){.kind = (uint8_t)kind};
	return c;
}

static void add_address(struct listed *to, enum candidate_kind kind, const struct address *a) {
	struct candidate *c = add(to, kind);
	if (c != NULL)
		(void)address_format(a, c->addr);
}

/* Returns true if peers may come in at any address of this machine. */
static bool listens_everywhere(const struct session *s) {
	struct address own;
	return address_parse(s->listen, &own, NULL) == RV_OK && own.host[0] == '\0';
}

/* Adds the private address of the interface that leads to the internet by that family, for workers
 * in the same house. In a run within one network the coordinator sees that address itself. */
static void add_private(struct session *s, enum reach_family family, struct listed *to) {
	/* Documentation addresses (RFC 5737, RFC 3849): nothing is sent there. */
	static const struct address far[REACH_FAMILIES] = {
		[REACH_V4] = {.host = "192.0.2.1"}, [REACH_V6] = {.host = "2001:db8::1"}};
	struct address met, local;
	if (!http_client_met(s->http, &met) || address_reach(&met) != ADDRESS_PUBLIC || !listens_everywhere(s))
		return;
	if (!local_address_toward(&far[family], &local) || address_reach(&local) != ADDRESS_PRIVATE)
		return;
	local.port = peers_port(meshlink_peers(s->mesh));
	add_address(to, CANDIDATE_PRIVATE, &local);
}

/* Returns their number. */
static uint8_t list_candidates(struct session *s, struct candidate out[NET_MAX_CANDIDATES]) {
	struct address given = {0};
	struct listed to = {.list = out};
	bool is_given = address_parse(s->opt->advertised, &given, NULL) == RV_OK;
	(void)snprintf(add(&to, CANDIDATE_SEEN)->addr, NET_ADDR_BYTES, ":%u",
				   is_given ? given.port : session_outside_port(s));
	if (is_given && given.host[0] != '\0')
		add_address(&to, CANDIDATE_GIVEN, &given);
	add_private(s, REACH_V4, &to);
	to.n = session_reflected(s, out, to.n);
	add_private(s, REACH_V6, &to); /* if there is room */
	return to.n;
}

/* Returns true if both lists name the same addresses; a newer proof of one is no change. */
static bool same_addresses(const struct candidate *a, int n_a, const struct candidate *b, int n_b) {
	for (int i = 0; i < n_a && i < n_b; i++)
		if (a[i].kind != b[i].kind || strcmp(a[i].addr, b[i].addr) != 0)
			return false;
	return n_a == n_b;
}

void session_report_candidates(struct session *s, struct report *r) {
	r->n_candidates = list_candidates(s, r->candidates);
	s->reported.n = r->n_candidates;
	memcpy(s->reported.list, r->candidates, sizeof s->reported.list);
}

void session_watch_candidates(struct session *s, int64_t now_us) {
	struct candidate now[NET_MAX_CANDIDATES];
	if (now_us < s->reported.look_us)
		return;
	s->reported.look_us = now_us + RV_US_PER_S;
	uint8_t n = list_candidates(s, now);
	if (!same_addresses(now, n, s->reported.list, s->reported.n))
		session_core_report_soon(s->core);
}
