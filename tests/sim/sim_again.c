/* sim_again.c: members that end an attempt of each round, in ways that set them at odds with nobody
 * for long (decision 0135): LIE_PARTED, LIE_IN_TURN, LIE_ANEW. */
#include "sim.h"

bool again_parts(const struct sim *s, int host) {
	return lies_so(s, host, LIE_PARTED) || lies_so(s, host, LIE_IN_TURN);
}

static bool acts(const struct sim_worker *w) {
	return again_parts(w->sim, w->host) || lies_so(w->sim, w->host, LIE_ANEW);
}

/* Returns the host that it turns against in a round: always the same one if it keeps apart from all
 * others. */
static int victim_of(const struct sim_worker *w, uint64_t round) {
	const struct sim *s = w->sim;
	const int others = s->opt.n_workers - 1;
	const uint64_t turn = lies_so(s, w->host, LIE_PARTED) ? 0 : round % (uint64_t)others;
	return (w->host + 1 + (int)turn) % s->opt.n_workers;
}

static bool is_parted(const struct sim_worker *w, const struct document *d, int host) {
	const struct sim *s = w->sim;
	if (host < 0 || host >= SIM_ORDINARY || host == w->host)
		return false;
	if (lies_so(s, w->host, LIE_PARTED))
		return host != victim_of(w, d->round);
	return lies_so(s, w->host, LIE_IN_TURN) && d->phase == RUN_REDUCE && host == victim_of(w, d->round);
}

/* Puts a member among those that are banned, which ascend. */
static void ban(struct banned *b, uint32_t member) {
	int at = b->n;
	if (b->n == NET_MAX_BANNED || banned_has(b, member))
		return;
	for (; at > 0 && b->members[at - 1] > member; at--)
		b->members[at] = b->members[at - 1];
	b->members[at] = member;
	b->n++;
}

void again_part(struct sim_worker *w, const struct document *d, struct banned *banned) {
	const struct sim *s = w->sim;
	w->parted = 0;
	for (int host = 0; host < s->opt.n_workers && again_parts(s, w->host); host++)
		if (is_parted(w, d, host) && s->oracle.member_of[host] != NET_NO_MEMBER) {
			w->parted |= UINT64_C(1) << host;
			ban(banned, s->oracle.member_of[host]);
		}
}

uint64_t again_accused(const struct sim_worker *w) {
	if (!acts(w) || (w->reduce_attempt > 1 && !lies_so(w->sim, w->host, LIE_PARTED)))
		return 0;
	return UINT64_C(1) << victim_of(w, w->reduce_round);
}

bool again_withholds(const struct sim_worker *w, int index) {
	const int host = oracle_host_of(w->sim, grid_member(w->reduce, index));
	return lies_so(w->sim, w->host, LIE_PARTED) && host == victim_of(w, w->reduce_round);
}

/* Puts a path into a report, in the order of members, in the place of another one. */
static void put_path(struct report *rep, uint32_t member, uint8_t path) {
	int at = 0;
	while (at < rep->n_paths && rep->paths[at].member < member)
		at++;
	const bool has = at < rep->n_paths && rep->paths[at].member == member;
	if (!has && rep->n_paths == NET_MAX_PEERS)
		return;
	for (int k = rep->n_paths; !has && k > at; k--)
		rep->paths[k] = rep->paths[k - 1];
	rep->n_paths += !has;
	rep->paths[at] = (struct report_path){.member = member, .path = path};
}

void again_report(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	for (int host = 0; w->parted != 0 && host < s->opt.n_workers; host++)
		if (w->parted >> host & 1)
			put_path(rep, s->oracle.member_of[host], PATH_APART);
}

void again_follow(struct sim_worker *w, const struct document *d) {
	struct sim *s = w->sim;
	const bool over = d->phase == RUN_OPEN && w->told_attempt > 0 && d->round == w->told_round + 1;
	if (!lies_so(s, w->host, LIE_ANEW) || !over)
		return;
	w->told_attempt = 0;
	lies_start_anew(s, w->host);
}
