/* registries.h: what is known of the entries of the registries (base/NAME.def) without the code behind them: their names
 * as numbers, in the order of their lines, and their facts. A coordinator, which links none of that code, refuses with
 * these what no worker could run, and options are chosen and explained by facts, not by names. */
#ifndef RV_BASE_REGISTRIES_H
#define RV_BASE_REGISTRIES_H

/* Codecs (outer/codec.h). */
enum codec_choice {
#define CODEC(name, facts, of_mean) CODEC_##name,
#include "base/codecs.def"
#undef CODEC
};
enum codec_fact {
	CODEC_ROUNDS = 1, /* values */
	CODEC_SPARSE = 2, /* most values become 0 */
};
struct codec_facts {
	const char *name;
	unsigned facts;            /* enum codec_fact */
	enum codec_choice of_mean; /* mean-codec = auto */
};
extern const struct codec_facts codec_facts[];

/* The option mean-codec: auto, or 1 + a codec. */
enum mean_codec_choice {
	MEAN_CODEC_auto,
#define CODEC(name, facts, of_mean) MEAN_CODEC_##name,
#include "base/codecs.def"
#undef CODEC
};

/* Outer optimizers (outer/optimizer.h). */
enum outer_choice {
#define OUTER_OPTIMIZER(name, facts, lr, momentum) OUTER_##name,
#include "base/outer_optimizers.def"
#undef OUTER_OPTIMIZER
};
enum outer_fact {
	OUTER_LINEAR = 1, /* in outer gradients, and the same in every round: outer/eager.h can make a worker's share */
	OUTER_HAS_LR = 2,
	OUTER_HAS_MOMENTUM = 4,
	OUTER_HAS_BETA2 = 8,
	OUTER_ADAPTIVE = 16, /* divides by the root of a second moment: has eps */
	OUTER_DELAYS = 32,   /* momentum moves once in outer-delay rounds */
};
struct outer_facts {
	const char *name;
	unsigned facts;      /* enum outer_fact */
	double lr, momentum; /* outer-lr, outer-momentum = -1 */
};
extern const struct outer_facts outer_facts[];

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
