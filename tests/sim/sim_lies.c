/* sim_lies.c: members that lie to the coordinator (FAULT_CLAIMER), and what must not come of it.
 * The worker itself is honest: only its reports are not. */
#include "sim.h"

#include <string.h>

enum { FASTEST = INT32_MAX, SLOWEST = 1 };

static bool lies(const struct sim *s, int host, enum sim_lie lie) {
	return host >= 0 && host < SIM_ORDINARY && (s->lies[host] >> lie & 1) != 0;
}

bool lies_so(const struct sim *s, int host, enum sim_lie lie) {
	return lies(s, host, lie);
}

bool lies_at(const struct sim *s, int host) {
	if (host < 0 || host >= SIM_ORDINARY)
		return false;
	return s->lies[host] != 0 || host == s->withholder || host == s->ghost || host == s->accuser || host == s->liar;
}

bool lies_vote(const struct sim *s, int host) {
	return lies(s, host, LIE_DIGEST);
}

bool lies_about_lines(const struct sim *s, int host) {
	return lies(s, host, LIE_FAST) || lies(s, host, LIE_SLOW);
}

/* ---- what it states ---- */

static void syncs(struct report *rep) {
	rep->phase = WORKER_SYNCING;
	rep->attempt = 0;
	rep->n_suspects = rep->n_measured = 0;
	rep->stands_out = 0;
	rep->commitment.n = 0;
	rep->lease_first = rep->lease_count = 0;
	rep->needs_from = 0;
	memset(&rep->chain, 0, sizeof rep->chain);
	memset(&rep->digest, 0, sizeof rep->digest);
}

static bool has_host(uint64_t hosts, int host) {
	return hosts == UINT64_MAX || (host != SIM_NOBODY && (hosts >> host & 1) != 0);
}

/* Accuses those of the hosts that it exchanges data with. */
static void accuse(const struct sim_worker *w, uint64_t hosts, struct report *rep) {
	const struct sim *s = w->sim;
	rep->phase = WORKER_REDUCING;
	rep->n_suspects = rep->n_measured = 0;
	rep->stands_out = 0;
	for (int i = 0, n = grid_peers(w->reduce); i < n && rep->n_suspects < NET_MAX_ROW; i++) {
		const uint32_t member = grid_member(w->reduce, i);
		if (member != s->oracle.member_of[w->host] && has_host(hosts, oracle_host_of(s, member)))
			rep->suspects[rep->n_suspects++] = grid_place(w->reduce, i);
	}
	for (int i = 1; i < rep->n_suspects; i++) /* places ascend, each once */
		for (int k = i; k > 0 && rep->suspects[k] < rep->suspects[k - 1]; k--) {
			uint16_t place = rep->suspects[k];
			rep->suspects[k] = rep->suspects[k - 1];
			rep->suspects[k - 1] = place;
		}
}

static void lie_about_the_attempt(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	const bool reduces = rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED;
	const uint64_t plotted = reduces && w->reduce != NULL ? plots_accused(w) | again_accused(w) : 0;
	if (lies(s, w->host, LIE_ACCUSES_ALL) && reduces && w->reduce != NULL)
		accuse(w, UINT64_MAX, rep);
	else if (plotted != 0)
		accuse(w, plotted, rep);
	if (lies(s, w->host, LIE_DIGEST) && rep->phase == WORKER_VOTED)
		rep->digest.b[0] ^= 1;
	if (lies(s, w->host, LIE_SYNCS) && reduces)
		syncs(rep);
}

static void lie_about_its_state(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	const uint64_t round = s->oracle.n_committed;
	if (lies(s, w->host, LIE_AHEAD) && rep->phase != WORKER_SYNCING && rep->round < s->opt.rounds)
		rep->round++;
	if (lies(s, w->host, LIE_FULL_HASH) && !rv_hash_is_zero(&rep->full_hash))
		rep->full_hash.b[0] ^= 1;
	if (lies(s, w->host, LIE_CHAIN) && rep->phase != WORKER_SYNCING)
		rep->chain.b[0] ^= 1;
	if (lies(s, w->host, LIE_PROVEN) && rep->round == round) {
		rep->proven_round = round;
		rep->proven_chain = s->oracle.chain[round];
	}
	if (lies(s, w->host, LIE_BEHIND) && rep->phase != WORKER_LEAVING)
		syncs(rep);
}

static void lie_about_its_line(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	if (lies(s, w->host, LIE_FAST))
		rep->up_bytes_per_s = rep->down_bytes_per_s = FASTEST;
	for (int i = 0; lies(s, w->host, LIE_FAST) && i < rep->n_receipts; i++) {
		const int of = oracle_host_of(s, rep->receipts[i].member);
		rep->receipts[i].band = lies(s, of, LIE_FAST) ? UINT8_MAX : 1;
	}
	if (lies(s, w->host, LIE_SLOW))
		rep->up_bytes_per_s = rep->down_bytes_per_s = SLOWEST;
	for (int i = 0; lies(s, w->host, LIE_APART) && i < rep->n_paths; i++)
		rep->paths[i].path = PATH_APART;
}

void lies_report(const struct sim_worker *w, struct report *rep) {
	const struct sim *s = w->sim;
	if (w->host >= SIM_ORDINARY || s->lies[w->host] == 0)
		return;
	if (lies(s, w->host, LIE_TOKENS))
		rep->tokens = UINT64_C(1) << 62;
	if (lies(s, w->host, LIE_CHUNKS))
		rep->n_chunks += 6;
	if (lies(s, w->host, LIE_READS) && rep->phase >= WORKER_READY && rep->phase <= WORKER_VOTED)
		rep->lease_count = rep->lease_count * 2 + 1;
	if (lies(s, w->host, LIE_DISK))
		rep->storage = REPORT_STORAGE_ROUNDS | REPORT_STORAGE_FULL;
	lie_about_the_attempt(w, rep);
	lie_about_its_line(w, rep);
	lie_about_its_state(w, rep);
}

/* ---- what it does ---- */

static void crash(struct sim *s, int host, void *arg) {
	(void)arg;
	if (!s->workers[host].ending)
		worker_crash_and_return(s, host);
}

void lies_start_anew(struct sim *s, int host) {
	sim_at(s, s->now_us + s->opt.delay_us, host, s->workers[host].life, crash, NULL);
}

void lies_begin_attempt(struct sim *s, int host) {
	if (lies(s, host, LIE_CRASHES))
		lies_start_anew(s, host);
}

/* ---- what must not come of it ---- */

bool lies_are_few(const struct sim *s, const struct sim_roster *r) {
	int liars = 0;
	for (int i = 0; r != NULL && i < r->n; i++)
		liars += lies_at(s, oracle_host_of(s, r->of[i].member));
	return r != NULL && 2 * liars < r->n;
}

bool lies_are_needed(const struct sim *s, const struct sim_roster *r) {
	bool met[SIM_MAX_WORKERS] = {false};
	uint32_t honest = 0;
	for (const struct sim_roster *of = r; of != NULL && of->round == r->round; of = of->next)
		for (int i = 0; i < of->n; i++) {
			const int host = oracle_host_of(s, of->of[i].member);
			if (host == SIM_NOBODY || lies_at(s, host) || met[host])
				continue;
			met[host] = true;
			honest++;
		}
	return honest < s->opt.min_workers;
}

void lies_judge(struct sim *s, const struct core_event *ev) {
	const int host = oracle_host_of(s, ev->member);
	const bool honest = host != SIM_NOBODY && !lies_at(s, host);
	switch (ev->type) {
	case CORE_EVENT_TOKENS:
	case CORE_EVENT_WRONG_SIZE:
		if (honest)
			sim_fail(s, "an honest member %u is named (event %u)", ev->member, ev->type);
		break;
	case CORE_EVENT_DISAGREED:
		if (honest && s->opt.liars && !given_was_voted(s, host, ev))
			sim_fail(s, "an honest member %u is named among liars (event %u)", ev->member, ev->type);
		break;
	case CORE_EVENT_NO_EVIDENCE:
	case CORE_EVENT_OVERDUE:
	case CORE_EVENT_EXCLUDED:
	case CORE_EVENT_WRONG_CHAIN:
	case CORE_EVENT_LEASE:
	case CORE_EVENT_LIED:
	case CORE_EVENT_LOST:
	case CORE_EVENT_UNSTEADY:
		if (honest && s->opt.liars && (ev->type != CORE_EVENT_EXCLUDED || lies_are_few(s, s->oracle.rosters)))
			sim_fail(s, "an honest member %u is named among liars (event %u)", ev->member, ev->type);
		break;
	case CORE_EVENT_SUSPECTED:
	case CORE_EVENT_DIVERGED:
		s->stats.wrongly_suspected += honest && s->opt.liars && lies_are_few(s, s->oracle.rosters);
		break;
	default: /* MUTE and AT_ODDS say what happened, and not whose fault it is */
		break;
	}
}

/* One that is at odds with four, or half of the others, is left out for 1, 2, 4 ... rounds: each of
 * these costs an attempt or two in the 8 to 60 rounds of such a universe. Nothing bounds that where
 * nearly all members are needed, or a liar is until others have come, as none is left out. Nor do
 * rosters count of which half lie, or of two, where nothing says which one does
 * (docs/security.md). */
void lies_judge_costs(struct sim *s) {
	enum { ATTEMPTS_OF_ONE = 12, NAMES_OF_ONE = 6, OF_A_PLOT = 8 };
	const struct sim_options *o = &s->opt;
	const bool plot = plots_count(s) > 0;
	const int liars = plot ? plots_count(s) : sim_liars(o), of_a_plot = OF_A_PLOT + o->n_workers / 2;
	const int lost = (int)s->stats.lost_attempts, named = (int)s->stats.wrongly_suspected;
	const int most = plot && of_a_plot > ATTEMPTS_OF_ONE ? of_a_plot : ATTEMPTS_OF_ONE;
	if (!o->liars || 2 * o->min_workers > (uint32_t)o->n_workers)
		return;
	if (lost > most * liars || named > (plot ? most : NAMES_OF_ONE) * liars)
		sim_fail(s, "%d attempts were lost to %d liars, and honest members named in %d of them", lost, liars, named);
}
