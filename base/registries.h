/* registries.h: what is known of the entries of the registries (base/NAME.def) without the code behind them: their names
 * as numbers, in the order of their lines, and their facts. A coordinator, which links none of that code, refuses with
 * these what no worker could run, and options are chosen and explained by facts, not by names. */
#ifndef RV_BASE_REGISTRIES_H
#define RV_BASE_REGISTRIES_H

/* Aggregation rules (outer/merge.h). */
enum merge_choice {
#define MERGE_RULE(name, facts, least) MERGE_##name,
#include "base/merge_rules.def"
#undef MERGE_RULE
};
enum merge_fact {
	MERGE_CLIPS = 1, /* limits contributions by outer-clip */
	MERGE_TRIMS = 2, /* leaves out the extremes, trim-share of the contributions on each side */
};
struct merge_facts {
	const char *name;
	unsigned facts; /* enum merge_fact */
	int least;      /* contributions that the rule takes */
};
extern const struct merge_facts merge_facts[];

/* Returns how many of n contributions a rule with that trim-share leaves out on each side: less than half of them. */
int merge_trimmed(double trim_share, int n);

#endif
