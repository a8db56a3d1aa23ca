/* sim_plan.c: what will go wrong in a universe: a list of faults, a function of its options alone.
 * Each says all about itself, so any part of the list can be carried out without the rest. */
#include "sim.h"

#include "base/rows.h"

#include <stdio.h>
#include <string.h>

const char *const sim_fault_names[SIM_FAULT_KINDS] = {[FAULT_HTTP_LOSS] = "http_lost",
													  [FAULT_HTTP_DOUBLING] = "http_doubled",
													  [FAULT_HTTP_ECHO] = "http_echoed",
													  [FAULT_LIAR] = "liar",
													  [FAULT_WITHHOLDER] = "withholder",
													  [FAULT_GHOST] = "ghost",
													  [FAULT_ACCUSER] = "accuser",
													  [FAULT_REFUSER] = "refuser",
													  [FAULT_CLAIMER] = "claimer",
													  [FAULT_IMPOSTOR] = "impostor",
													  [FAULT_RELAY_DROPS] = "relay_drops",
													  [FAULT_NAT] = "nat",
													  [FAULT_FALSE_ADDRESS] = "false_address",
													  [FAULT_FALSE_RELAY] = "false_relay",
													  [FAULT_MISLED] = "misled",
													  [FAULT_HOME] = "home",
													  [FAULT_KILL] = "killed",
													  [FAULT_POWER_CUT] = "power_cut",
													  [FAULT_FREEZE] = "frozen",
													  [FAULT_LINK] = "link_broken",
													  [FAULT_PARTITION] = "partition",
													  [FAULT_ONE_WAY] = "one_way",
													  [FAULT_PAIR] = "pair_cut",
													  [FAULT_POSTHUMOUS] = "posthumous",
													  [FAULT_COORDINATOR] = "coordinator_killed",
													  [FAULT_HOUR] = "coordinator_gone_for_an_hour",
													  [FAULT_BLACKOUT] = "everyone_dies",
													  [FAULT_TOO_FEW] = "too_few_left",
													  [FAULT_SPEED] = "speed_changed",
													  [FAULT_SLOW_LINE] = "slow_line",
													  [FAULT_SLOW_DISK] = "slow_disk",
													  [FAULT_DISK_FULL] = "disk_full",
													  [FAULT_ROT] = "file_rotten",
													  [FAULT_WIPE] = "disk_wiped",
													  [FAULT_SYBILS] = "sybils",
													  [FAULT_CLOCK] = "clock_jumped",
													  [FAULT_LEAVE] = "left",
													  [FAULT_PAUSE] = "paused",
													  [FAULT_FLIP] = "bit_flipped",
													  [FAULT_RELAY] = "relay_killed",
													  [FAULT_RELAY_CUT] = "relay_cut_off",
													  [FAULT_RELAY_BREAKS] = "relay_breaks",
													  [FAULT_RELAY_SLOW] = "relay_slow",
													  [FAULT_ROLLBACK] = "rolled_back"};

const char *const sim_lie_names[SIM_LIES] = {
	"tokens", "chunks",      "ahead",  "digest",  "full_hash", "chain",  "fast",    "slow", "behind",
	"apart",  "accuses_all", "proven", "disk",    "reads",     "loud",   "flips",   "late", "addresses",
	"moves",  "fetches",     "syncs",  "crashes", "plots",     "parted", "in_turn", "anew"};

const char *const sim_on_names[SIM_ONS] = {"nothing", "roster",   "commit",  "rollback", "attempt",
										   "log",     "snapshot", "replica", "term"};

/* How often each kind is drawn, for faults at a time; and for those aimed at a delicate moment. */
static const uint8_t often[SIM_FAULT_KINDS] = {
	[FAULT_KILL] = 8,    [FAULT_POWER_CUT] = 8, [FAULT_FREEZE] = 8,      [FAULT_LINK] = 8,       [FAULT_PARTITION] = 6,
	[FAULT_ONE_WAY] = 6, [FAULT_PAIR] = 4,      [FAULT_COORDINATOR] = 8, [FAULT_BLACKOUT] = 1,   [FAULT_TOO_FEW] = 2,
	[FAULT_SPEED] = 5,   [FAULT_SLOW_LINE] = 3, [FAULT_SLOW_DISK] = 3,   [FAULT_DISK_FULL] = 2,  [FAULT_ROT] = 3,
	[FAULT_WIPE] = 2,    [FAULT_CLOCK] = 3,     [FAULT_LEAVE] = 6,       [FAULT_POSTHUMOUS] = 3,
};
static const uint8_t often_aimed[SIM_FAULT_KINDS] = {
	[FAULT_KILL] = 2,      [FAULT_POWER_CUT] = 2, [FAULT_FREEZE] = 2,     [FAULT_LINK] = 2,
	[FAULT_PARTITION] = 1, [FAULT_ONE_WAY] = 1,   [FAULT_POSTHUMOUS] = 1,
};

static enum sim_fault_kind draw_kind(struct rv_rng *r, const uint8_t weights[SIM_FAULT_KINDS]) {
	uint64_t sum = 0;
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		sum += weights[i];
	uint64_t at = rv_rng_below(r, sum);
	int kind = 0;
	for (; at >= weights[kind]; kind++)
		at -= weights[kind];
	return (enum sim_fault_kind)kind;
}

static uint16_t draw_worker(struct rv_rng *r, const struct sim_options *o) {
	return (uint16_t)rv_rng_below(r, (uint64_t)o->n_workers);
}

static uint16_t draw_host(struct rv_rng *r, const struct sim_options *o) {
	uint16_t h = (uint16_t)rv_rng_below(r, (uint64_t)o->n_workers + 1);
	return h == o->n_workers ? SIM_COORDINATOR : h;
}

static int64_t draw_while(struct rv_rng *r) {
	bool long_one = rv_rng_below(r, 10) < 3;
	return 50 * SIM_MS + (int64_t)rv_rng_below(r, long_one ? 12 * SIM_S : 2 * SIM_S);
}

/* Workers to cut off until fewer than min_workers are left. */
static uint64_t draw_too_many(struct rv_rng *r, const struct sim_options *o) {
	uint64_t set = 0;
	int wanted = o->n_workers - (int)o->min_workers + 1;
	while (__builtin_popcountll(set) < wanted)
		set |= 1ull << draw_worker(r, o);
	return set;
}

/* Only one of them can be in a roster, so with it the others must be enough; and they reach each
 * other only by way of one that can be dialed. */
static uint64_t draw_undialable(struct rv_rng *r, const struct sim_options *o) {
	uint64_t set = 0;
	uint64_t workers = (uint64_t)o->n_workers, most = workers - 1; /* one that all others reach owns everything */
	for (uint64_t n = most > 0 ? 1 + rv_rng_below(r, most) : 0; n > 0; n--)
		set |= 1ull << draw_worker(r, o);
	return set;
}

/* What `kind` needs to be known of it, beside where and when. */
static void draw_details(struct rv_rng *r, const struct sim_options *o, struct sim_fault *f) {
	f->peer = draw_worker(r, o);
	f->lasts_us = draw_while(r);
	double u = rv_rng_double(r);
	f->reckless = rv_rng_below(r, 4) == 0;
	switch (f->kind) {
	case FAULT_SLOW_DISK:
		f->amount = 2 + 100 * u * u;
		break;
	case FAULT_PARTITION:
		f->set = rv_rng_u64(r) & ((1ull << o->n_workers) - 1);
		f->set |= rv_rng_below(r, 2) << sim_number(SIM_COORDINATOR);
		break;
	case FAULT_ONE_WAY:
		f->peer = draw_host(r, o);
		break;
	case FAULT_TOO_FEW:
		f->set = draw_too_many(r, o);
		f->lasts_us += 5 * SIM_S;
		break;
	case FAULT_POSTHUMOUS:
		f->lasts_us += SIM_S;
		break;
	case FAULT_SPEED:
		f->amount = 0.2 + 2 * u;
		break;
	case FAULT_SLOW_LINE:
		f->amount = 0.02 + 0.5 * u;
		break;
	case FAULT_ROT:
		f->amount = (double)rv_rng_below(r, 1000);
		break;
	case FAULT_CLOCK: /* minutes, or years */
		f->amount = (u - 0.5) * (rv_rng_below(r, 2) ? 600 : 1e9);
		break;
	default:
		break;
	}
}

static struct sim_fault *append(struct sim_plan *p, enum sim_fault_kind kind) {
	if (p->n == SIM_MAX_FAULTS)
		return NULL;
	struct sim_fault *f = &p->faults[p->n];
	*f = (struct sim_fault){.kind = (uint8_t)kind};
	p->chosen[p->n++] = true;
	return f;
}

/* ---- parts of the plan ---- */

static bool in_rows(const struct sim_options *o) {
	return o->n_workers > o->row_size;
}

/* Two of one row that cannot be linked, with nobody else in it, can never exchange anything: so in
 * short rows there is only one that cannot be dialed, and in others half of all at most. */
static uint64_t leave_some_in_each_row(const struct sim_options *o, uint64_t undialable) {
	const int most = rows_shortest(o->row_size) < ROWS_LEAST_LENGTH ? 1 : o->n_workers / 2;
	while (in_rows(o) && __builtin_popcountll(undialable) > most)
		undialable &= undialable - 1;
	return undialable;
}

static void plan_lasting(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	double loss = rv_rng_double(r) * rv_rng_double(r), doubling = rv_rng_double(r), echo = rv_rng_double(r);
	append(p, FAULT_HTTP_LOSS)->amount = 0.1 * loss;
	append(p, FAULT_HTTP_DOUBLING)->amount = 0.1 * doubling;
	append(p, FAULT_HTTP_ECHO)->amount = 0.02 * echo;
	if (rv_rng_below(r, 4) == 0)
		append(p, FAULT_LIAR)->host = draw_worker(r, o);
	uint64_t undialable = draw_undialable(r, o);
	if (undialable != 0 && rv_rng_below(r, 3) == 0)
		append(p, FAULT_NAT)->set = leave_some_in_each_row(o, undialable);
}

static void plan_at_times(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	int64_t at = o->fault_interval_us;
	while (at < o->safety_us) {
		struct sim_fault *f = append(p, draw_kind(r, often));
		if (f == NULL)
			return;
		bool any_host =
			f->kind == FAULT_FREEZE || f->kind == FAULT_ONE_WAY || f->kind == FAULT_SLOW_DISK || f->kind == FAULT_CLOCK;
		f->host = any_host ? draw_host(r, o) : draw_worker(r, o);
		f->host = f->kind == FAULT_COORDINATOR ? SIM_COORDINATOR : f->host;
		f->at_us = at;
		draw_details(r, o, f);
		at += 1 + (int64_t)rv_rng_below(r, 2 * (uint64_t)o->fault_interval_us);
	}
}

static void plan_aimed(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r, int host) {
	enum { MEAN_MOMENTS = 150, MOST = 16 };
	uint32_t moment = 0;
	for (int i = 0; i < MOST; i++) {
		struct sim_fault *f = append(p, host == SIM_COORDINATOR ? FAULT_COORDINATOR : draw_kind(r, often_aimed));
		if (f == NULL)
			return;
		moment += 1 + (uint32_t)rv_rng_below(r, 2 * MEAN_MOMENTS);
		f->host = (uint16_t)host;
		f->at_us = -1;
		f->moment = moment;
		f->into = rv_rng_double(r);
		draw_details(r, o, f);
	}
}

static void plan_hour(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	if (rv_rng_below(r, 50) != 0)
		return;
	struct sim_fault *f = append(p, FAULT_HOUR);
	f->host = SIM_COORDINATOR;
	f->at_us = (int64_t)rv_rng_below(r, (uint64_t)o->safety_us);
	f->lasts_us = 3600 * (int64_t)SIM_S;
}

/* Flipped bits: of one worker, where the others are a majority of every roster. */
static void plan_flips(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	enum { ENOUGH_FOR_A_MAJORITY = 3 };
	if (o->min_workers < ENOUGH_FOR_A_MAJORITY || rv_rng_below(r, 2) == 0)
		return;
	uint16_t victim = draw_worker(r, o);
	int64_t at = (int64_t)rv_rng_below(r, (uint64_t)o->safety_us / 2);
	while (at < o->safety_us) {
		struct sim_fault *f = append(p, FAULT_FLIP);
		if (f == NULL)
			return;
		f->host = victim;
		f->at_us = at;
		f->amount = rv_rng_double(r);
		at += 1 + (int64_t)rv_rng_below(r, (uint64_t)o->safety_us);
	}
}

/* Returns true if a roster may consist of members that lie: it commits what they say. */
static bool may_be_alone(const struct sim_options *o, int liars) {
	return (int)o->min_workers <= liars;
}

/* Returns true if they may be more than half of a roster: what they agree on is the run's. */
static bool may_be_most(const struct sim_options *o, int liars) {
	return (int)o->min_workers < 2 * liars;
}

/* Returns what a withholder keeps: in rows also what only columns exchange. */
static double draw_withheld(struct rv_rng *r, const struct sim_options *o) {
	/* Not other means, which --liars draws. Votes for something else only where no roster can be
	 * one of those that lie. */
	enum { STREAM = 49, LIES = 50, ANYWHERE = 2 };
	static const enum sim_withheld lies[] = {FALSE_CONTRIBUTION, FALSE_SEAL, WITHHELD_EVIDENCE, FALSE_EVIDENCE};
	const uint64_t n_lies = may_be_alone(o, 1) ? ANYWHERE : sizeof lies / sizeof lies[0];
	struct rv_rng in_columns = rv_rng_of(o->seed, STREAM), of_lies = rv_rng_of(o->seed, LIES);
	const double anywhere = (double)rv_rng_below(r, 2);
	if (rv_rng_below(&of_lies, 2) == 0)
		return lies[rv_rng_below(&of_lies, n_lies)];
	if (!in_rows(o) || rv_rng_below(&in_columns, 2) == 0)
		return anywhere;
	return rv_rng_below(&in_columns, 2) == 0 ? WITHHELD_SUMS : WITHHELD_COLUMN_MEANS;
}

/* Members that hold the others up, where these suffice. Drawn apart: what else happens in a
 * universe stays the same. */
static void plan_dishonest(struct sim_plan *p, const struct sim_options *o) {
	enum { LEAST_WORKERS = 3, ONE_IN = 8 };
	struct rv_rng r = rv_rng_of(o->seed, 5);
	if (o->n_workers < LEAST_WORKERS || (int)o->min_workers == o->n_workers)
		return;
	for (enum sim_fault_kind kind = FAULT_WITHHOLDER; kind <= FAULT_GHOST; kind++) {
		struct sim_fault *f = rv_rng_below(&r, ONE_IN) == 0 ? append(p, kind) : NULL;
		if (f == NULL)
			continue;
		f->host = draw_worker(&r, o);
		f->amount = draw_withheld(&r, o);
	}
}

/* A worker that states another's number: for the others it is as if it could not be reached. */
static void plan_impostor(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 43, LEAST_WORKERS = 3, ONE_IN = 10 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (o->n_workers < LEAST_WORKERS || (int)o->min_workers == o->n_workers)
		return;
	struct sim_fault *f = rv_rng_below(&r, ONE_IN) == 0 ? append(p, FAULT_IMPOSTOR) : NULL;
	if (f == NULL)
		return;
	f->host = draw_worker(&r, o);
	f->peer = (uint16_t)((f->host + 1 + rv_rng_below(&r, (uint64_t)o->n_workers - 1)) % (uint64_t)o->n_workers);
}

/* Members that make trouble between two. */
static void plan_troublemakers(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 55, LEAST_WORKERS = 3, ONE_IN = 8 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (o->n_workers < LEAST_WORKERS || (int)o->min_workers == o->n_workers)
		return;
	for (enum sim_fault_kind kind = FAULT_ACCUSER; kind <= FAULT_REFUSER; kind++) {
		struct sim_fault *f = rv_rng_below(&r, ONE_IN) == 0 ? append(p, kind) : NULL;
		if (f == NULL)
			continue;
		f->host = draw_worker(&r, o);
		f->peer = (uint16_t)((f->host + 1 + rv_rng_below(&r, (uint64_t)o->n_workers - 1)) % (uint64_t)o->n_workers);
	}
}

/* ---- members that lie (--liars) ---- */

int sim_liars(const struct sim_options *o) {
	struct rv_rng r = rv_rng_of(o->seed, 61);
	const int most = (o->n_workers - 1) / 3;
	if (o->n_liars > 0)
		return o->n_liars;
	if (o->plots)
		return most;
	return most > 0 ? 1 + (int)rv_rng_below(&r, (uint64_t)most) : 0;
}

static bool has_kind(const struct sim_plan *p, enum sim_fault_kind kind) {
	for (int i = 0; i < p->n; i++)
		if (p->faults[i].kind == kind)
			return true;
	return false;
}

/* Returns which means a withholder falsifies, in half of the universes; else `otherwise`. */
static double draw_equivocation(const struct sim_options *o, double otherwise) {
	enum { STREAM = 65, IN_ONE_ROW = 2 };
	static const enum sim_withheld kinds[] = {WITHHELD_LIKENESS, WITHHELD_LIKENESS_OF_ONE, WITHHELD_COLUMN_LIKENESS};
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const uint64_t n = in_rows(o) ? sizeof kinds / sizeof kinds[0] : IN_ONE_ROW;
	return rv_rng_below(&r, 2) == 0 ? kinds[rv_rng_below(&r, n)] : otherwise;
}

/* Returns whether a withholder of contributions keeps them from one peer only. */
static double draw_victims(const struct sim_options *o, double withheld) {
	enum { STREAM = 73 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	return withheld == WITHHELD_CONTRIBUTIONS && rv_rng_below(&r, 2) == 0 ? WITHHELD_FROM_ONE : withheld;
}

/* Returns whether a liar lies about its contribution's root instead, in a sixth of the
 * universes. */
static double draw_root(const struct sim_options *o, double otherwise) {
	enum { STREAM = 75, ONE_IN = 6 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (rv_rng_below(&r, ONE_IN) != 0)
		return otherwise;
	return rv_rng_below(&r, 2) == 0 ? TWO_ROOTS : FALSE_ROOT;
}

static void plan_lie(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r, uint16_t host) {
	static const enum sim_fault_kind others[] = {FAULT_WITHHOLDER, FAULT_GHOST, FAULT_ACCUSER};
	enum { OTHERS = sizeof others / sizeof others[0], MEANS = WITHHELD_MEANS + 1 };
	const uint64_t which = rv_rng_below(r, LIE_LOUD + OTHERS), withheld = rv_rng_below(r, MEANS + 1);
	const enum sim_fault_kind kind = which < OTHERS ? others[which] : FAULT_CLAIMER;
	if (kind != FAULT_CLAIMER && has_kind(p, kind))
		return;
	if (which == OTHERS + LIE_DIGEST && may_be_alone(o, sim_liars(o)))
		return;
	if (which == OTHERS + LIE_FULL_HASH && may_be_most(o, sim_liars(o)))
		return;
	struct sim_fault *f = append(p, kind);
	if (f == NULL)
		return;
	f->host = host;
	f->amount = kind == FAULT_CLAIMER ? (double)(which - OTHERS) : withheld == MEANS ? WITHHELD_DRIP : (double)withheld;
	f->amount = kind == FAULT_WITHHOLDER && in_rows(o) ? draw_withheld(r, o) : f->amount;
	f->amount = kind == FAULT_WITHHOLDER ? draw_root(o, draw_victims(o, draw_equivocation(o, f->amount))) : f->amount;
}

/* In one universe in three, half of those that lie also end attempts by going in the middle of
 * them. */
static void plan_goers(struct sim_plan *p, const struct sim_options *o, uint64_t liars) {
	enum { STREAM = 148, ONE_IN = 3, WAYS = LIE_CRASHES + 1 - LIE_SYNCS };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (rv_rng_below(&r, ONE_IN) != 0)
		return;
	for (uint16_t h = 0; h < o->n_workers; h++) {
		const uint64_t way = rv_rng_below(&r, (uint64_t)2 * WAYS);
		struct sim_fault *f = liars >> h & 1 && way < WAYS ? append(p, FAULT_CLAIMER) : NULL;
		if (f == NULL)
			continue;
		f->host = h;
		f->amount = (double)(LIE_SYNCS + way);
	}
}

/* In one universe in four in one row, one of those that lie ends an attempt of each round anew, and
 * does nothing else: other lies would keep it out. The accuser that is started again gives its data
 * late, if it can, so that its word is not outvoted before. Returns it, as a set; 0: none does. */
static uint64_t plan_again(struct sim_plan *p, const struct sim_options *o, uint64_t liars) {
	enum { STREAM = 151, ONE_IN = 4, WAYS = LIE_ANEW + 1 - LIE_PARTED };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const bool drawn = rv_rng_below(&r, ONE_IN) == 0;
	const int lie = LIE_PARTED + (int)rv_rng_below(&r, WAYS);
	struct sim_fault *f = drawn && liars != 0 && !in_rows(o) ? append(p, FAULT_CLAIMER) : NULL;
	if (f == NULL)
		return 0;
	const uint16_t host = (uint16_t)__builtin_ctzll(liars);
	f->host = host;
	f->amount = lie;
	f = lie == LIE_ANEW ? append(p, FAULT_WITHHOLDER) : NULL;
	if (f != NULL) {
		f->host = host;
		f->amount = WITHHELD_DRIP;
	}
	return UINT64_C(1) << host;
}

static void plan_plotters(struct sim_plan *p, const struct sim_options *o, uint64_t hosts) {
	for (uint16_t h = 0; h < o->n_workers; h++) {
		struct sim_fault *f = hosts >> h & 1 ? append(p, FAULT_CLAIMER) : NULL;
		if (f == NULL)
			continue;
		f->host = h;
		f->amount = LIE_PLOTS;
	}
}

/* Up to a third of the members, in up to three ways each; or those that plan together. */
static void plan_liars(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 62, WAYS = 3 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	uint64_t hosts = 0;
	while (__builtin_popcountll(hosts) < sim_liars(o))
		hosts |= 1ull << draw_worker(&r, o);
	if (o->plots) {
		plan_plotters(p, o, hosts);
		return;
	}
	hosts &= ~plan_again(p, o, hosts);
	for (uint16_t h = 0; h < o->n_workers; h++)
		for (uint64_t n = hosts >> h & 1 ? 1 + rv_rng_below(&r, WAYS) : 0; n > 0; n--)
			plan_lie(p, o, &r, h);
	plan_goers(p, o, hosts);
}

/* What liars do besides, in one universe of four; keys that join and are banned, in one of eight
 * where the workers keep their seats; in none of those that CMakeLists.txt names. Drawn apart: what
 * else happens in a universe stays the same. */
static void plan_more_lies(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 130, ONE_IN = 4, MOST_KEYS = 40 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const bool lies = rv_rng_below(&r, ONE_IN) == 0, joins = rv_rng_below(&r, 2 * ONE_IN) == 0;
	if (p->n == 0)
		return;
	const uint64_t which = rv_rng_below(&r, (uint64_t)p->n);
	struct sim_fault *f = lies ? append(p, FAULT_CLAIMER) : NULL;
	if (f != NULL) {
		f->host = p->faults[which].host;
		f->amount = (double)(LIE_LOUD + rv_rng_below(&r, LIE_SYNCS - LIE_LOUD));
	}
	f = joins && o->n_workers <= SIM_ORDINARY / 2 ? append(p, FAULT_SYBILS) : NULL;
	if (f != NULL)
		f->amount = 1 + (double)rv_rng_below(&r, MOST_KEYS);
}

/* A member to which the coordinator shows another run, where the others suffice, in one universe
 * of 64. Drawn apart. */
static void plan_misled(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 75, LEAST_WORKERS = 3, ONE_IN = 64 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (o->n_workers < LEAST_WORKERS || (int)o->min_workers == o->n_workers)
		return;
	struct sim_fault *f = rv_rng_below(&r, ONE_IN) == 0 ? append(p, FAULT_MISLED) : NULL;
	if (f == NULL)
		return;
	f->host = draw_worker(&r, o);
	f->round = rv_rng_below(&r, o->rounds);
	f->amount = (double)rv_rng_below(&r, SIM_OTHER_RUNS);
}

/* Each worker has a home of some kind, or shares that of the one before. */
static void plan_homes(struct sim_plan *p, const struct sim_options *o, struct rv_rng *r) {
	for (int h = 0; h < o->n_workers;) {
		uint64_t set = UINT64_C(1) << h++;
		enum sim_home_kind kind = (enum sim_home_kind)rv_rng_below(r, SIM_HOME_KINDS);
		if (h < o->n_workers && kind != HOME_OPEN && rv_rng_below(r, 5) == 0)
			set |= UINT64_C(1) << h++;
		struct sim_fault *f = append(p, FAULT_HOME);
		f->set = set;
		f->amount = kind;
		f->moment = (uint32_t)rv_rng_below(r, HOME_TRAITS);
	}
}

/* With a relay any workers may be behind routers, all of them too; and the relay has faults of its
 * own. Drawn apart, as the next two. */
static void plan_relay(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 44, LEAST_US = SIM_S };
	static const enum sim_fault_kind kinds[] = {FAULT_RELAY, FAULT_RELAY_CUT, FAULT_RELAY_BREAKS, FAULT_RELAY_SLOW};
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	uint64_t all = (1ull << o->n_workers) - 1;
	if (!o->relay)
		return;
	if (rv_rng_below(&r, 3) != 0)
		plan_homes(p, o, &r);
	else
		append(p, FAULT_NAT)->set = rv_rng_below(&r, 3) == 0 ? all : 1 + rv_rng_below(&r, all);
	if (rv_rng_below(&r, 3) == 0)
		append(p, FAULT_RELAY_DROPS)->amount = 0.5 * rv_rng_double(&r);
	if (rv_rng_below(&r, 4) == 0)
		append(p, FAULT_FALSE_ADDRESS)->host = draw_worker(&r, o);
	if (rv_rng_below(&r, 4) == 0) {
		struct sim_fault *f = append(p, FAULT_FALSE_RELAY);
		f->peer = (uint16_t)rv_rng_below(&r, (uint64_t)o->relay);
		f->amount = 1 + (double)rv_rng_below(&r, SIM_FALSEHOODS - 1);
	}
	int64_t at = (int64_t)rv_rng_below(&r, 10 * SIM_S);
	while (at < o->safety_us && rv_rng_below(&r, 12) != 0) {
		struct sim_fault *f = append(p, kinds[rv_rng_below(&r, sizeof kinds / sizeof kinds[0])]);
		if (f == NULL)
			return;
		f->host = draw_worker(&r, o);
		f->peer = (uint16_t)rv_rng_below(&r, (uint64_t)o->relay);
		f->at_us = at;
		f->lasts_us = LEAST_US + draw_while(&r);
		f->amount = f->kind == FAULT_RELAY_SLOW ? 0.0005 + 0.05 * rv_rng_double(&r) : 0;
		at += SIM_S + (int64_t)rv_rng_below(&r, 10 * SIM_S);
	}
}

/* Workers that their owners pause, for a while, in half of all universes. */
static void plan_pauses(struct sim_plan *p, const struct sim_options *o) {
	enum { STREAM = 72, EVERY_US = 8 * SIM_S };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	if (rv_rng_below(&r, 2) == 0)
		return;
	for (int64_t at = (int64_t)rv_rng_below(&r, EVERY_US); at < o->safety_us;
		 at += 1 + (int64_t)rv_rng_below(&r, 2 * EVERY_US)) {
		struct sim_fault *f = append(p, FAULT_PAUSE);
		if (f == NULL)
			return;
		f->host = draw_worker(&r, o);
		f->at_us = at;
		f->lasts_us = draw_while(&r);
	}
}

/* A run whose only copy goes is rolled back: where not all can be dialed the copy that is left may
 * be out of reach. */
static void spare_the_last_copy(struct sim_plan *p) {
	bool spare = false;
	for (int i = 0; i < p->n; i++)
		spare = spare || p->faults[i].kind == FAULT_NAT || p->faults[i].kind == FAULT_HOME;
	for (int i = 0; i < p->n && spare; i++)
		p->faults[i].reckless = false;
}

void sim_plan_of(const struct sim_options *o, struct sim_plan *p) {
	memset(p, 0, sizeof *p);
	if (o->calm)
		return;
	struct rv_rng r = rv_rng_of(o->seed, 3);
	if (o->liars) {
		plan_liars(p, o);
		if (!o->plots)
			plan_more_lies(p, o);
		return;
	}
	plan_lasting(p, o, &r);
	plan_hour(p, o, &r);
	plan_flips(p, o, &r);
	plan_aimed(p, o, &r, SIM_COORDINATOR);
	for (int h = 0; h < o->n_workers; h++)
		plan_aimed(p, o, &r, h);
	plan_at_times(p, o, &r);
	plan_dishonest(p, o);
	plan_impostor(p, o);
	plan_troublemakers(p, o);
	plan_relay(p, o);
	plan_pauses(p, o);
	plan_misled(p, o);
	spare_the_last_copy(p);
}

void sim_universe_of(const struct sim_choice *choice, struct sim_options *opt, struct sim_plan *plan) {
	const bool large = choice->workers > 0;
	*opt = large ? sim_options_large(choice->seed, choice->workers) : sim_options_of(choice->seed);
	opt->leases = choice->leases || choice->scores;
	if (choice->liars)
		sim_options_with_liars(opt);
	if (choice->twenty)
		sim_options_with_twenty(opt);
	if (choice->plots)
		plots_choose(opt);
	if (choice->scores && !large)
		sim_options_with_scores(opt);
	if (choice->audits && !large)
		sim_options_with_audits(opt);
	(large ? sim_plan_large : sim_plan_of)(opt, plan);
	if (choice->audits)
		audits_choose(opt);
	if (choice->scores)
		scores_choose(opt, plan);
}

/* ---- for people ---- */

static void host_text(int host, char out[16]) {
	(void)snprintf(out, 16, host == SIM_COORDINATOR ? "coordinator" : "w%d", host);
}

static void set_text(uint64_t set, char *out, size_t cap) {
	size_t n = 0;
	out[0] = '\0';
	for (int number = 0; number < SIM_ORDINARY + 1 && n < cap; number++) {
		char host[16];
		host_text(sim_host_of_number(number), host);
		if (set >> number & 1)
			n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? "," : "", host);
	}
}

void sim_fault_text(const struct sim_fault *f, char *out, size_t cap) {
	char when[64] = "throughout", host[16], peer[16], set[160];
	host_text(f->host, host);
	host_text(f->peer, peer);
	set_text(f->set, set, sizeof set);
	if (f->on != ON_NOTHING)
		(void)snprintf(when, sizeof when, "%.0f %% into %s of round %llu at %s", 100 * f->into, sim_on_names[f->on],
					   (unsigned long long)f->round, host);
	else if (f->kind > FAULT_HOME && f->at_us < 0)
		(void)snprintf(when, sizeof when, "%.0f %% into delicate moment %u of %s", 100 * f->into, f->moment, host);
	else if (f->kind > FAULT_HOME)
		(void)snprintf(when, sizeof when, "at %.3f s", (double)f->at_us / SIM_S);
	int n = snprintf(out, cap, "%s: %s", when, sim_fault_names[f->kind]);
	const bool member = f->kind == FAULT_LIAR || f->kind == FAULT_WITHHOLDER || f->kind == FAULT_GHOST ||
						f->kind == FAULT_ACCUSER || f->kind == FAULT_REFUSER || f->kind == FAULT_IMPOSTOR ||
						f->kind == FAULT_MISLED;
	if (member)
		n += snprintf(out + n, cap - (size_t)n, " %s", host);
	if (f->kind > FAULT_HOME && f->set == 0 && f->kind != FAULT_BLACKOUT)
		n += snprintf(out + n, cap - (size_t)n, " %s", host);
	if (f->kind == FAULT_LINK || f->kind == FAULT_ONE_WAY || f->kind == FAULT_PAIR || f->kind == FAULT_POSTHUMOUS ||
		f->kind == FAULT_IMPOSTOR || f->kind == FAULT_REFUSER)
		n += snprintf(out + n, cap - (size_t)n, " to %s", peer);
	if (f->set != 0)
		n += snprintf(out + n, cap - (size_t)n, " {%s}", set);
	if (f->kind == FAULT_HOME)
		n += snprintf(out + n, cap - (size_t)n, " %s%s%s%s%s", sim_home_names[(int)f->amount],
					  f->moment & HOME_RESETS ? ", resets" : "", f->moment & HOME_HAIRPINS ? ", hairpins" : "",
					  f->moment & HOME_MOVES ? ", other ports" : "", f->moment & HOME_V6 ? ", IPv6 too" : "");
	else if (f->kind == FAULT_CLAIMER)
		n += snprintf(out + n, cap - (size_t)n, " %s: %s", host, sim_lie_names[(int)f->amount]);
	else if (f->kind == FAULT_FALSE_RELAY)
		n += snprintf(out + n, cap - (size_t)n, " %d %s", f->peer, sim_falsehood_names[(int)f->amount]);
	else if (f->amount != 0)
		n += snprintf(out + n, cap - (size_t)n, " by %.3g", f->amount);
	if (f->lasts_us != 0)
		(void)snprintf(out + n, cap - (size_t)n, " for %.3f s", (double)f->lasts_us / SIM_S);
}
