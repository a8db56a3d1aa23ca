/* sim_oracle_mesh.c: what the mesh owes: a link is with the member that it names, honest peers
 * break no rule, a link that can be is there soon, nobody is dialed without end, and a cap
 * holds. */
#include "sim.h"

#include <string.h>

enum {
	LOOK_US = SIM_S / 2,
	LOOK_LARGE_US = 4 * SIM_S, /* half a million pairs */
	/* Both ends redial by then, whatever failed before: the longest pause of an address that has
	 * answered, the first long one of one that never did (30 s, net/mesh/book.h), and a dial that
	 * nobody answers. */
	LINKED_WITHIN_US = 60 * SIM_S,
	/* A station that was lost unheard is found out (45 s) and tried again (60 s), then calls. */
	CALLED_WITHIN_US = 145 * SIM_S,
	OPENS_WITHIN_US = 2 * SIM_S,  /* two that dial each other at one moment */
	LEFT_WITHIN_US = 100 * SIM_S, /* a relay that connects nobody, for another */
	STEADY_US = 7 * SIM_S,        /* a link that lived so long at both ends is redialed at once when it breaks, */
	BACK_WITHIN_US = 12 * SIM_S,  /* also over slow lines, when one end notices seconds later than the other */
	DIALS_US = 10 * SIM_S,
	MOST_DIALS = 30,   /* to one peer in DIALS_US: pauses that double from 0.1 s, and what hurries them */
	MOST_ASKS = 57,    /* for a route, in DIALS_US: 16 at once, then 4 a second */
	CAP_US = SIM_S / 4 /* the depth of the bucket, and control, which is charged but does not wait */
};

/* ---- whose a link is ---- */

/* The streams state who is at the other end; the bytes that are read now came from there. */
static void check_whose(struct sim *s, int host, int peer, const char *what) {
	int from = s->workers[host].reads_from;
	if (peer != from)
		sim_fail(s, "w%d takes %s of w%d for one of w%d", host, what, from, peer);
}

void oracle_frame(struct sim *s, int host, int peer) {
	check_whose(s, host, peer, "a frame");
}

/* Returns true if the host's mesh must have no link. */
static bool pauses(const struct sim *s, int host) {
	const struct session_core *session = s->workers[host].session;
	return session != NULL && session_core_is_paused(session);
}

void oracle_link_up(struct sim *s, int host, int peer) {
	check_whose(s, host, peer, "a link");
	if (pauses(s, host))
		sim_fail(s, "w%d pauses, and has a link to w%d", host, peer);
	if (peer != SIM_NOBODY)
		oracle_opening_over(s, host, peer);
}

/* ---- how a link ends ---- */

/* An impostor is refused by all others, and takes them for impostors. Two of one home have one
 * address outside: behind a port of it is the one or the other. */
static bool is_a_fault(const struct sim *s, enum rv_err why) {
	bool may_be_another = s->had_impostor || s->had_shared_home;
	return why == RV_E_PROTOCOL || why == RV_E_INVALID || why == RV_E_CORRUPT || (why == RV_E_AUTH && !may_be_another);
}

/* Returns true if rosters may be without one of the two: they are in several rows, or one is in
 * quarantine. */
static bool may_be_apart(const struct sim *s, int host, int peer) {
	return s->opt.n_workers > s->opt.row_size || scores_keeps_out(s, host) || scores_keeps_out(s, peer);
}

/* Where nothing goes wrong, a link is lost when both sides dialed, once, when the peer is done, and
 * when a roster is without it, in this row. */
static void check_calm(struct sim *s, int host, int peer, const char *text) {
	struct sim_worker *w = &s->workers[host];
	bool newer = strstr(text, "newer link") != NULL;
	bool ends = s->workers[peer].life == 0 || s->workers[peer].ending || s->workers[peer].finished;
	w->replaced[peer] += newer;
	if (strstr(text, "no longer in the roster") != NULL && may_be_apart(s, host, peer)) {
		w->replaced[peer] = s->workers[peer].replaced[host] = 0;
		return;
	}
	if (!ends && (!newer || w->replaced[peer] > 1))
		sim_fail(s, "w%d lost its link to w%d, and nothing went wrong: %s", host, peer, text);
}

void oracle_link_down(struct sim *s, int host, int peer, enum rv_err why, const char *text) {
	if (audits_banished(s, peer) || audits_banished(s, host) || again_parts(s, host) || again_parts(s, peer))
		return; /* its links end */
	if (is_a_fault(s, why) && !liars_lie(s, peer))
		sim_fail(s, "w%d says that w%d broke a rule: %s", host, peer, text);
	if (s->opt.calm)
		check_calm(s, host, peer, text);
}

/* While two punch, what comes from the other one's home is taken for it if it is silent for half a
 * second: a member that dials from there over a slow line then meets another client
 * (net/mesh/punch.c). */
static bool are_two_clients(const struct sim *s, const char *text) {
	enum { AT_MOST_US = 20 * SIM_S }; /* until HELLO has come over a slow line */
	bool may_be = s->opened_us != 0 && s->now_us - s->opened_us < AT_MOST_US;
	return may_be && (strstr(text, "role = ") != NULL || strstr(text, "magic is not") != NULL);
}

/* Returns true if a member is banned: by audits, or for two seals. */
static bool is_one_banned(const struct sim *s) {
	bool any = s->banished != 0;
	for (int h = 0; h < s->opt.n_workers; h++)
		any = any || s->banned[h];
	return any;
}

void oracle_trouble(struct sim *s, int host, enum rv_err why, const char *text) {
	const bool is_banned = is_one_banned(s) && strstr(text, "banned") != NULL;
	if (is_a_fault(s, why) && !is_banned && !again_parts(s, host) && !are_two_clients(s, text))
		sim_fail(s, "w%d refuses an honest peer: %s", host, text);
}

/* ---- which links there are ---- */

static bool wants(const struct sim *s, int host, int peer) {
	return s->wanted[host][peer / 64] >> peer % 64 & 1;
}

static void note_wanted(struct sim *s, int host, const struct member_ref *refs, int n) {
	for (int i = 0; i < n; i++) {
		const int peer = oracle_host_of(s, refs[i].member);
		if (peer != SIM_NOBODY)
			s->wanted[host][peer / 64] |= UINT64_C(1) << peer % 64;
	}
}

/* Those that its document names. */
static void find_wanted(struct sim *s, int host) {
	const struct round_core *core = s->workers[host].core;
	const struct document *d = core != NULL ? round_document(core) : NULL;
	memset(s->wanted[host], 0, sizeof s->wanted[host]);
	if (d == NULL)
		return;
	note_wanted(s, host, d->members, d->n_members);
	note_wanted(s, host, d->syncing, d->n_syncing);
	if (d->n_rows > 1)
		note_wanted(s, host, d->column, d->n_column);
}

static bool is_well(const struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	return w->mesh != NULL && !w->ending && !pauses(s, host) && s->frozen_until_us[host] <= s->now_us &&
		   host != s->impostor && s->net.up[host].bytes_per_s == s->net.up[host].at_best;
}

static bool reach_each_other(const struct sim *s, int a, int b) {
	return s->net.cut[a][b] == 0 && s->net.cut[b][a] == 0;
}

static bool can_be_dialed(const struct sim *s, int a, int b) {
	bool one_is_open = (!homes_is_closed(s, a) && s->homes[b].has_v4) || (!homes_is_closed(s, b) && s->homes[a].has_v4);
	return one_is_open && reach_each_other(s, a, b);
}

/* Returns the set of relays by which they can meet. */
static uint32_t relays_between(const struct sim *s, int a, int b) {
	uint32_t set = 0;
	for (int r = 0; r < s->opt.relay; r++) {
		int host = SIM_RELAY + r;
		bool works = s->relays[r].core != NULL && s->relays[r].drops == 0 && s->relays[r].is == FALSE_NOT &&
					 s->net.up[host].bytes_per_s == s->net.up[host].at_best;
		if (works && reach_each_other(s, a, host) && reach_each_other(s, b, host))
			set |= 1u << r;
	}
	return set;
}

static bool reaches_coordinator(const struct sim *s, int host) {
	return s->coordinator.core != NULL && s->frozen_until_us[SIM_COORDINATOR] <= s->now_us &&
		   reach_each_other(s, host, SIM_COORDINATOR);
}

/* The coordinator signs the tickets of calls. */
static bool can_be_relayed(const struct sim *s, int a, int b) {
	return relays_between(s, a, b) != 0 && reaches_coordinator(s, a) && reaches_coordinator(s, b);
}

static bool can_be_linked(const struct sim *s, int a, int b) {
	return wants(s, a, b) && wants(s, b, a) && is_well(s, a) && is_well(s, b) &&
		   (can_be_dialed(s, a, b) || can_be_relayed(s, a, b));
}

/* One that starts dials at once, where that leads anywhere. */
static bool dials_at_once(const struct sim *s, int a, int b) {
	int older = s->workers[a].life < s->workers[b].life ? a : b;
	int newer = a + b - older;
	return !homes_is_closed(s, older) && s->homes[newer].has_v4;
}

static struct sim_pair *pair_of(struct sim *s, int a, int b) {
	return &s->pairs[a * s->opt.n_workers + b];
}

static void look_at_pair(struct sim *s, int a, int b) {
	struct sim_pair *p = pair_of(s, a, b);
	uint64_t lives = s->workers[a].life << 32 | s->workers[b].life;
	bool linked = s->workers[a].links[b].up && s->workers[b].links[a].up;
	uint32_t relays = relays_between(s, a, b), still = relays & p->relays;
	bool same_way = can_be_dialed(s, a, b) || still != 0;
	p->relays = still != 0 ? still : relays;
	if (!can_be_linked(s, a, b) || lives != p->lives || !same_way) {
		int64_t began_us = lives != p->lives ? s->now_us : p->began_us;
		bool is_first =
			lives != p->lives || (p->waits_for_first && s->now_us - began_us < STEADY_US); /* pauses are short */
		bool soon = dials_at_once(s, a, b) && is_first;
		*p = (struct sim_pair){.lives = lives,
							   .began_us = began_us,
							   .apart_us = s->now_us,
							   .linked_us = s->now_us,
							   .waits_for_first = soon,
							   .soon = soon,
							   .relays = relays};
		return;
	}
	if (linked) {
		p->apart_us = s->now_us;
		p->soon = s->now_us - p->linked_us >= STEADY_US;
		p->waits_for_first = false;
		return;
	}
	p->linked_us = s->now_us;
	int64_t apart_us = s->now_us - p->apart_us;
	/* A worker asks for one route in a second; a call whose messages are lost takes as long as a
	 * dial that nobody answers, and then a pause. */
	int64_t false_us = s->false_relays != 0 ? LEFT_WITHIN_US : 0;
	int64_t calls_us = can_be_dialed(s, a, b) ? 0 : CALLED_WITHIN_US + false_us + s->opt.n_workers * (int64_t)SIM_S;
	const bool lies = liars_lie(s, a) || liars_lie(s, b) || again_parts(s, a) || again_parts(s, b);
	if (!lies && apart_us > (p->soon ? BACK_WITHIN_US : LINKED_WITHIN_US) + calls_us)
		sim_fail(s, "w%d and w%d have had no link for %.1f s, and nothing keeps them apart", a, b,
				 (double)apart_us / SIM_S);
}

/* ---- openings ---- */

static bool line_is_free(const struct sim *s, int host) {
	return s->net.up[host].busy_until_us <= s->now_us + SIM_S / 4;
}

static bool should_open(struct sim *s, int a, int b, bool v6) {
	find_wanted(s, a);
	find_wanted(s, b);
	bool well = is_well(s, a) && is_well(s, b) && reach_each_other(s, a, b) && wants(s, a, b) && wants(s, b, a);
	return well && homes_open(s, a, b, v6) && line_is_free(s, a) && line_is_free(s, b) &&
		   s->opt.delay_us + s->opt.jitter_us <= OPENS_WITHIN_US / 8 && !s->workers[a].links[b].up &&
		   !s->workers[b].links[a].up && s->false_relays == 0 &&
		   s->net.up[SIM_RELAY].bytes_per_s == s->net.up[SIM_RELAY].at_best;
}

/* An honest relay names the peer's mapping, and nothing else. */
void oracle_opens(struct sim *s, int host, int peer, int relay, const char *at) {
	s->opened_us = s->now_us;
	struct address a;
	struct sim_where to = {0}, from = {.ip = homes_outside(s, host, false), .port = SIM_PORT};
	bool resets;
	uint16_t port;
	if ((s->false_relays >> relay & 1) != 0 || address_parse(at, &a, NULL) != RV_OK || !where_parse(&a, &to))
		return;
	int who = homes_find(s, SIM_OUTSIDE, &from, &to, false, &port, &resets);
	if (who != peer || port != SIM_PORT)
		sim_fail(s, "a relay has w%d dial %s for w%d: that leads to w%d, port %u", host, at, peer, who, port);
}

void oracle_punches(struct sim *s, int host, int peer, bool v6) {
	struct sim_pair *p = host < peer ? pair_of(s, host, peer) : pair_of(s, peer, host);
	p->opened_us[host > peer] = should_open(s, host, peer, v6) ? s->now_us : 0;
}

void oracle_opening_over(struct sim *s, int a, int b) {
	struct sim_pair *p = a < b ? pair_of(s, a, b) : pair_of(s, b, a);
	p->opened_us[0] = p->opened_us[1] = 0;
}

void oracle_pauses(struct sim *s, int host) {
	for (int peer = 0; peer < s->opt.n_workers; peer++)
		if (peer != host)
			oracle_opening_over(s, host, peer);
}

/* Both have dialed, nothing was in the way all the time, and they have no link. */
static void look_at_opening(struct sim *s, int a, int b) {
	const struct sim_pair *p = pair_of(s, a, b);
	bool first = p->opened_us[1] < p->opened_us[0];
	int64_t last_us = p->opened_us[first ? 0 : 1], before_us = last_us - p->opened_us[first ? 1 : 0];
	if (last_us == 0)
		return;
	if (!can_be_linked(s, a, b)) {
		oracle_opening_over(s, a, b);
		return;
	}
	if (s->now_us - last_us < OPENS_WITHIN_US)
		return;
	if (before_us < SIM_S)
		sim_fail(s, "w%d and w%d dialed each other at one moment, %.1f s ago, and have no link", a, b,
				 (double)(s->now_us - last_us) / SIM_S);
	oracle_opening_over(s, a, b);
}

static void look(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	(void)arg;
	for (int h = 0; h < s->opt.n_workers; h++)
		find_wanted(s, h);
	for (int a = 0; a < s->opt.n_workers; a++)
		for (int b = a + 1; b < s->opt.n_workers; b++) {
			look_at_pair(s, a, b);
			look_at_opening(s, a, b);
		}
	sim_at(s, s->now_us + (s->opt.n_workers > SIM_ORDINARY ? LOOK_LARGE_US : LOOK_US), SIM_NOBODY, 0, look, NULL);
}

void oracle_mesh_start(struct sim *s) {
	look(s, SIM_NOBODY, NULL);
}

/* ---- what a mesh asks of the network ---- */

void oracle_asks(struct sim *s, int host) {
	struct sim_dials *asks = &s->workers[host].asks;
	if (s->now_us - asks->since_us > DIALS_US)
		*asks = (struct sim_dials){.since_us = s->now_us};
	if (++asks->n > MOST_ASKS)
		sim_fail(s, "w%d asks for %d routes in %.1f s", host, asks->n, (double)(s->now_us - asks->since_us) / SIM_S);
}

void oracle_bad_relay(struct sim *s, int host, int relay, const char *text) {
	sim_say(s, host, "takes relay %d for bad: %s", relay, text);
}

void oracle_relay_fault(struct sim *s, int host, int relay, const char *text) {
	if ((s->false_relays >> relay & 1) == 0)
		sim_fail(s, "w%d refuses what an honest relay sends: %s", host, text);
}

/* The bound on what others can make a worker do to a bystander: of each member's candidates the
 * attempts that the mesh has for an address that never answered, again when the coordinator is
 * back, within those of a member in all (net/mesh/book.h), and the openings that a relay has for
 * hosts that nobody has named (worker/reach/core_pairs.c). */
static void check_strange(struct sim *s, int host) {
	enum { OF_A_MEMBER = 10, AT_MOST = 40, OPENINGS = 8, EVERY_US = 30 * SIM_S };
	struct sim_worker *w = &s->workers[host];
	int lived = (int)((s->now_us - w->life_us) / EVERY_US);
	int again = OF_A_MEMBER * (1 + w->comebacks), in_all = AT_MOST + lived;
	int of_each = w->comebacks == 0 || again < in_all ? again : in_all;
	const bool sent = s->false_relays != 0 || strangers_dial_anybody(s, host);
	int most = !sent ? 0 : of_each * s->opt.n_workers + OPENINGS + lived;
	w->strange++;
	s->stats.strange_dials++;
	if (w->strange > most)
		sim_fail(s, "w%d has dialed an address that is nobody's %d times in %lld s", host, w->strange,
				 (long long)(s->now_us - w->life_us) / SIM_S);
}

void oracle_dial(struct sim *s, int host, int peer, const struct sim_where *to) {
	if (homes_is_strange(to))
		check_strange(s, host);
	/* Two homes behind one provider are seen at one address, as two members of one home are; and a
	 * false relay may see all at one. */
	if (s->provider == 0 && s->false_relays == 0 && homes_is_missing(s, host, to))
		sim_fail(s, "w%d dials a private address that nobody has in its home", host);
	if (peer >= s->opt.n_workers || peer == host)
		return;
	struct sim_dials *d = &s->workers[host].dials[peer];
	if (s->now_us - d->since_us > DIALS_US)
		*d = (struct sim_dials){.since_us = s->now_us};
	if (++d->n > MOST_DIALS)
		sim_fail(s, "w%d dials w%d %d times in %.1f s", host, peer, d->n, (double)(s->now_us - d->since_us) / SIM_S);
}

/* What it wrote since its mesh is open, beyond what its cap allows. */
void oracle_written(struct sim *s, int host, size_t n) {
	struct sim_worker *w = &s->workers[host];
	double cap = mesh_cap(s, host);
	if (s->opt.capped == 0)
		return;
	w->over_cap -= cap * (double)(s->now_us - w->wrote_us) / SIM_S;
	w->over_cap = (w->over_cap > 0 ? w->over_cap : 0) + (double)n;
	w->wrote_us = s->now_us;
	if (w->over_cap > cap * CAP_US / SIM_S + 8192)
		sim_fail(s, "w%d writes %.0f bytes more than its cap of %.0f bytes/s allows", host, w->over_cap, cap);
}
