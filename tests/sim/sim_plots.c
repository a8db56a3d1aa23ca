/* sim_plots.c: members that lie by one plan (LIE_PLOTS): a third of 7 to 20, in one row. The plan
 * is of the universe's seed. They accuse some honest members, or give them nothing, or both: all of
 * them the same, or each the next ones; always these, or others in each round, or attempt. All of
 * them do, or half, so that the others may own the chunks. They vote where they accuse nobody. */
#include "sim.h"

#include "base/assert.h"

struct plot {
	bool accuses, withholds, each, half;
	int moves; /* enum plot_moves */
	int n_victims;
};

enum plot_moves { MOVES_NEVER, MOVES_WITH_ROUNDS, MOVES_WITH_ATTEMPTS, PLOT_MOVES };

/* ---- the plan ---- */

void plots_choose(struct sim_options *o) {
	enum { STREAM = 149, LEAST_WORKERS = 7, SIZES = 14, LEAST_ROUNDS = 6, CHUNKS_EACH = 3, CHUNK = 256 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	o->plots = true;
	o->n_workers = LEAST_WORKERS + (int)rv_rng_below(&r, SIZES);
	o->min_workers = 2 + (uint32_t)rv_rng_below(&r, (uint64_t)o->n_workers / 2 - 1);
	o->row_size = NET_MAX_ROW;
	o->rounds = LEAST_ROUNDS + rv_rng_below(&r, LEAST_ROUNDS);
	o->equal_ownership = true; /* what liars own is compared with their number */
	o->slow_members = SLOW_WAIT;
	o->chunk_elems = CHUNK;
	o->n_params = (size_t)CHUNK * CHUNKS_EACH * (size_t)o->n_workers;
	o->slowest_bytes_per_s += 3e4 * o->n_workers;
}

static struct plot plot_of(const struct sim *s) {
	enum { STREAM = 150, WAYS = 3 };
	struct rv_rng r = rv_rng_of(s->opt.seed, STREAM);
	const uint64_t way = rv_rng_below(&r, WAYS);
	const int honest = s->opt.n_workers - plots_count(s);
	struct plot p = {.accuses = way != 1, .withholds = way != 0};
	p.each = rv_rng_below(&r, 2) == 0;
	p.half = rv_rng_below(&r, 2) == 0;
	p.moves = (int)rv_rng_below(&r, PLOT_MOVES);
	p.n_victims = 1 + (int)rv_rng_below(&r, (uint64_t)(rv_rng_below(&r, 2) == 0 ? 2 : honest));
	return p;
}

int plots_count(const struct sim *s) {
	int n = 0;
	for (int h = 0; h < SIM_ORDINARY; h++)
		n += lies_so(s, h, LIE_PLOTS);
	return n;
}

/* Returns how many of those that plot have a lower number. */
static int rank_of(const struct sim *s, int host) {
	int n = 0;
	for (int h = 0; h < host; h++)
		n += lies_so(s, h, LIE_PLOTS);
	return n;
}

/* ---- what they do ---- */

/* Returns the honest hosts that the worker exchanges data with. */
static uint64_t honest_peers(const struct sim_worker *w) {
	uint64_t set = 0;
	for (int i = 0, n = grid_peers(w->reduce); i < n; i++) {
		const int host = oracle_host_of(w->sim, grid_member(w->reduce, i));
		set |= host != SIM_NOBODY && !lies_at(w->sim, host) ? UINT64_C(1) << host : 0;
	}
	return set;
}

static uint64_t victims_of(const struct sim_worker *w, const struct plot *p) {
	const struct sim *s = w->sim;
	const int n = s->opt.n_workers, rank = rank_of(s, w->host), n_acting = (plots_count(s) + p->half) / (1 + p->half);
	const uint64_t round = p->moves == MOVES_NEVER ? 0 : w->reduce_round;
	const uint64_t attempt = p->moves == MOVES_WITH_ATTEMPTS ? w->reduce_attempt : 0;
	const uint64_t peers = honest_peers(w);
	uint64_t at = ((p->each ? (uint64_t)rank : 0) + round + attempt) * (uint64_t)p->n_victims, set = 0;
	for (int k = 0; k < n && rank < n_acting && __builtin_popcountll(set) < p->n_victims; k++, at++)
		set |= peers & UINT64_C(1) << at % (uint64_t)n;
	return set;
}

uint64_t plots_accused(const struct sim_worker *w) {
	if (!lies_so(w->sim, w->host, LIE_PLOTS))
		return 0;
	const struct plot p = plot_of(w->sim);
	return p.accuses ? victims_of(w, &p) : 0;
}

bool plots_withhold(const struct sim_worker *w, int index) {
	if (!lies_so(w->sim, w->host, LIE_PLOTS))
		return false;
	const struct plot p = plot_of(w->sim);
	const int host = oracle_host_of(w->sim, grid_member(w->reduce, index));
	return p.withholds && host != SIM_NOBODY && (victims_of(w, &p) >> host & 1) != 0;
}

/* ---- what must not come of it ---- */

static uint64_t count_owned(const struct sim *s, const struct sim_roster *r, uint64_t n_chunks) {
	uint64_t n = 0;
	for (uint64_t c = 0; c < n_chunks; c++)
		n += r->owner[c] >= 0 && lies_so(s, r->owner[c], LIE_PLOTS);
	return n;
}

/* Those of k of N that plot own at most 2 k / N of the chunks of the rosters that end a round, and
 * one more each; not counting rosters that they are half of. */
void plots_judge(struct sim *s) {
	const uint64_t liars = (uint64_t)plots_count(s), all = (uint64_t)s->opt.n_workers;
	uint64_t owned = 0, chunks = 0, rounds = 0, before = UINT64_MAX;
	for (const struct sim_roster *r = s->oracle.rosters; r != NULL && liars > 0; r = r->next) {
		if (r->round == before || r->n_rows == 0 || r->n == 0 || !lies_are_few(s, r))
			continue;
		const uint64_t n_chunks = global_round_chunks(&s->global_config, r->round).n_chunks;
		before = r->round;
		owned += count_owned(s, r, n_chunks);
		chunks += n_chunks;
		rounds++;
	}
	if (all * owned > 2 * liars * chunks + all * liars * rounds)
		sim_fail(s, "%llu of %llu that plot owned %llu of %llu chunks", (unsigned long long)liars,
				 (unsigned long long)all, (unsigned long long)owned, (unsigned long long)chunks);
}
