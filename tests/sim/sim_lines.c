/* sim_lines.c: what lines count with for the shares of chunks, where a quarter or less lie about
 * them: a liar's with no more than honest ones say of theirs, or got from it; an honest one's with
 * no less than honest ones say of theirs, or got from each other. */
#include "sim.h"

static void widen(struct sim_range *r, uint64_t rate) {
	if (rate == 0)
		return;
	r->least = r->most == 0 || rate < r->least ? rate : r->least;
	r->most = rate > r->most ? rate : r->most;
}

void lines_report(struct sim *s, int host, const struct report *rep) {
	struct sim_lines *l = &s->oracle.lines;
	l->lied[host] = l->lied[host] || lies_about_lines(s, host);
	if (l->lied[host])
		return;
	widen(&l->said, rep->up_bytes_per_s);
	widen(&l->said, rep->down_bytes_per_s);
	for (int i = 0; i < rep->n_receipts; i++) {
		const int of = oracle_host_of(s, rep->receipts[i].member);
		const uint64_t rate = receipt_rate(rep->receipts[i].band);
		if (of != SIM_NOBODY)
			widen(&l->got[of], rate);
		if (of != SIM_NOBODY && !l->lied[of])
			widen(&l->got_from_honest, rate);
	}
}

static int count_liars(const struct sim *s, const struct core_record *rec) {
	int n = 0;
	for (int i = 0; i < rec->n_members; i++) {
		const int host = oracle_host_of(s, rec->members[i]);
		n += host != SIM_NOBODY && s->oracle.lines.lied[host];
	}
	return n;
}

/* Where some are not known yet, all may count alike. */
static bool are_known(const struct core_record *rec) {
	bool all = true;
	for (int i = 0; i < rec->n_members; i++)
		all = all && rec->rates[i] > 0;
	return all;
}

static void judge(struct sim *s, const struct core_record *rec, int i) {
	const struct sim_lines *l = &s->oracle.lines;
	const int host = oracle_host_of(s, rec->members[i]);
	if (host == SIM_NOBODY || l->said.most == 0)
		return;
	const struct sim_range *said = &l->said, *got = &l->got[host], *all = &l->got_from_honest;
	const uint64_t most = got->most > said->most ? got->most : said->most;
	const uint64_t least = all->most > 0 && all->least < said->least ? all->least : said->least;
	if (rec->rates[i] > most || (!l->lied[host] && rec->rates[i] < least))
		sim_fail(
			s,
			"round %llu attempt %u: the line of member %u of %u counts with %llu bytes/s; honest members say and got "
			"%llu to %llu",
			(unsigned long long)rec->round, rec->attempt, rec->members[i], rec->n_members,
			(unsigned long long)rec->rates[i], (unsigned long long)least, (unsigned long long)most);
}

void lines_record(struct sim *s, const struct core_record *rec) {
	if (rec->attempt > 1 || s->opt.row_size < s->opt.n_workers || !are_known(rec) ||
		4 * count_liars(s, rec) > rec->n_members + 1)
		return;
	for (int i = 0; i < rec->n_members && !s->failed; i++)
		judge(s, rec, i);
}
