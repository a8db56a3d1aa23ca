/* sim_oracle_end.c: whether a run can still end, by the truth of its network.
 *
 * A round of one row needs an owner that meets all others of a roster of min_workers. Where a ban
 * takes the only one that enough of the others meet, the rest are *stranded*: no round is committed
 * any more, and nobody is to blame. Then they wait, until somebody comes that they meet. */
#include "sim.h"

static bool is_banned(const struct sim *s, int host) {
	return s->banned[host] || audits_banished(s, host);
}

/* Returns how many the largest roster has that one of it meets: it counts itself. */
static int most_that_meet(const struct sim *s) {
	int most = 0;
	for (int owner = 0; owner < s->opt.n_workers; owner++) {
		int n = !is_banned(s, owner);
		for (int h = 0; n > 0 && h < s->opt.n_workers; h++)
			n += h != owner && !is_banned(s, h) && !homes_never_meet(s, owner, h);
		most = n > most ? n : most;
	}
	return most;
}

void oracle_bans(struct sim *s) {
	struct sim_oracle *o = &s->oracle;
	int n_banned = 0;
	for (int h = 0; h < s->opt.n_workers; h++)
		n_banned += is_banned(s, h);
	const int left = s->opt.n_workers - n_banned;
	if (o->stranded || n_banned == 0 || left < (int)s->opt.min_workers || left > (int)s->opt.row_size ||
		o->n_committed >= s->opt.rounds || most_that_meet(s) >= (int)s->opt.min_workers)
		return;
	o->stranded = true;
	o->under_way = true;
	s->stats.stranded++;
	sim_say(s, SIM_NOBODY, "of the %d that are left no %u can meet", left, s->opt.min_workers);
}

void oracle_stranded_commit(struct sim *s, uint64_t round) {
	struct sim_oracle *o = &s->oracle;
	if (o->stranded && !o->under_way)
		sim_fail(s, "round %llu is committed, although of those that are left no %u can meet",
				 (unsigned long long)round, s->opt.min_workers);
	o->under_way = false;
}

void oracle_stranded_rollback(struct sim *s) {
	oracle_bans(s);
	s->oracle.under_way = false;
}

void oracle_stranded_end(struct sim *s) {
	for (int h = 0; h < s->opt.n_workers; h++) {
		const struct sim_worker *w = &s->workers[h];
		const bool has_ended = w->life == 0 || (w->finished && w->term == s->oracle.term);
		if (!is_banned(s, h) && !(s->opt.liars && lies_at(s, h)) && has_ended)
			sim_fail(s, "w%d has ended after %llu of %llu rounds: it was to wait for others", h,
					 (unsigned long long)s->oracle.n_committed, (unsigned long long)s->opt.rounds);
	}
}
