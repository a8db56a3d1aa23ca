/* sim_expect.c: planted universes (tests/sim/planted) are tests: each demands of its end what the
 * real processes did that it stands for. */
#include "sim.h"

#include <string.h>

/* Counted by the coordinator's core for each member; and for the whole universe. */
static const struct {
	const char *name;
	int event; /* enum core_event_type; 0: a number of the universe */
	size_t stat;
} table[] = {
	{"suspected", CORE_EVENT_SUSPECTED, 0},
	{"overdue", CORE_EVENT_OVERDUE, 0},
	{"excluded", CORE_EVENT_EXCLUDED, 0},
	{"in_vain", CORE_EVENT_IN_VAIN, 0},
	{"mute", CORE_EVENT_MUTE, 0},
	{"at_odds", CORE_EVENT_AT_ODDS, 0},
	{"lost", CORE_EVENT_LOST, 0},
	{"unsteady", CORE_EVENT_UNSTEADY, 0},
	{"rests", CORE_EVENT_RESTS, 0},
	{"disagreed", CORE_EVENT_DISAGREED, 0},
	{"apart", CORE_EVENT_APART, 0},
	{"dead", CORE_EVENT_DEAD, 0},
	{"diverged", CORE_EVENT_DIVERGED, 0},
	{"unlike", CORE_EVENT_UNLIKE, 0},
	{"equivocated", CORE_EVENT_EQUIVOCATED, 0},
	{"two_roots", CORE_EVENT_TWO_ROOTS, 0},
	{"refused_reports", 0, offsetof(struct sim_stats, refused_reports)},
	{"false_vote", CORE_EVENT_FALSE_VOTE, 0},
	{"no_evidence", CORE_EVENT_NO_EVIDENCE, 0},
	{"commits", 0, offsetof(struct sim_stats, commits)},
	{"commits_in_rows", 0, offsetof(struct sim_stats, commits_in_rows)},
	{"rows_left_out", 0, offsetof(struct sim_stats, rows_left_out)},
	{"kept_progress", 0, offsetof(struct sim_stats, kept_progress)},
	{"commits_with_all", 0, offsetof(struct sim_stats, commits_with_all)},
	{"calls", 0, offsetof(struct sim_stats, calls)},
	{"openings", 0, offsetof(struct sim_stats, openings)},
	{"strange_dials", 0, offsetof(struct sim_stats, strange_dials)},
	{"met_relayed", 0, offsetof(struct sim_stats, met_relayed)},
	{"met_punched", 0, offsetof(struct sim_stats, met_punched)},
	{"slowest_ms", 0, offsetof(struct sim_stats, slowest_ms)},
	{"relayed_bytes", 0, offsetof(struct sim_stats, relayed_bytes)},
	{"later_attempts", 0, offsetof(struct sim_stats, later_attempts)},
	{"lost_attempts", 0, offsetof(struct sim_stats, lost_attempts)},
	{"fetched_logs", 0, offsetof(struct sim_stats, fetched_logs)},
	{"fetched_snapshots", 0, offsetof(struct sim_stats, fetched_snapshots)},
	{"false_means", 0, offsetof(struct sim_stats, false_means)},
	{"rollbacks", 0, offsetof(struct sim_stats, rollbacks)},
	{"stranded", 0, offsetof(struct sim_stats, stranded)},
	{"convicted", 0, offsetof(struct sim_stats, convicted)},
	{"lies", 0, offsetof(struct sim_stats, faults) + FAULT_LIAR * sizeof(uint64_t)},
	{"torn_writes", 0, offsetof(struct sim_stats, torn_writes)},
};
enum { ROWS = sizeof table / sizeof table[0] };

int expect_find(const char *name) {
	for (int i = 0; i < ROWS; i++)
		if (strcmp(table[i].name, name) == 0)
			return i;
	return -1;
}

static uint64_t value_of(const struct sim *s, const struct sim_expect *x) {
	uint64_t n = 0;
	if (table[x->what].event == 0)
		memcpy(&n, (const uint8_t *)&s->stats + table[x->what].stat, sizeof n);
	for (int h = 0; h < s->opt.n_workers && table[x->what].event != 0; h++)
		n += sim_in_set(s->opt.n_workers, x->set, h) ? s->events[table[x->what].event][h] : 0;
	return n;
}

void expect_check(struct sim *s) {
	for (int i = 0; i < s->plan->n_expects; i++) {
		const struct sim_expect *x = &s->plan->expects[i];
		uint64_t n = value_of(s, x);
		if (n < x->least || n > x->most)
			sim_fail(s, "planted: %s of hosts %llx: %llu, not %llu to %llu", table[x->what].name,
					 (unsigned long long)x->set, (unsigned long long)n, (unsigned long long)x->least,
					 (unsigned long long)x->most);
	}
	for (int i = 0; i < s->plan->n && s->plan->n_expects > 0; i++)
		if (s->plan->chosen[i] && !s->plan->happened[i])
			sim_fail(s, "planted: fault %d did not happen", i);
}
