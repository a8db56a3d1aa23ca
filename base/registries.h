/* registries.h: the registries (base/NAME.def) without the code behind them: names as numbers, in
 * the order of their lines, and facts. A coordinator, which links none of that code, uses these to
 * refuse what no worker could run; options are chosen and explained by facts, not by names. */
#ifndef RV_BASE_REGISTRIES_H
#define RV_BASE_REGISTRIES_H

/* The facts of a registry are an array of these in the order of its lines, ended by name NULL. */
struct registry_entry {
	const char *name;
	unsigned facts; /* of the registry's own enum */
};

/* Codecs (outer/codec.h). */
enum codec_choice {
#define CODEC(name, facts, of_mean) CODEC_##name,
#include "base/codecs.def"
#undef CODEC
};
enum codec_fact {
	CODEC_ROUNDS = 1, /* decoded values differ from those encoded */
	CODEC_SPARSE = 2, /* most values become 0 */
};
extern const struct registry_entry codec_facts[];
extern const enum codec_choice codec_of_mean[]; /* the codec of mean-codec = auto */

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
	OUTER_LINEAR = 1, /* in outer gradients and alike in every round: outer/eager.h needs it */
	OUTER_HAS_LR = 2,
	OUTER_HAS_MOMENTUM = 4,
	OUTER_HAS_BETA2 = 8,
	OUTER_ADAPTIVE = 16, /* divides by the root of a second moment: has eps */
	OUTER_DELAYS = 32,   /* momentum moves once in outer-delay rounds */
};
extern const struct registry_entry outer_facts[];
struct outer_usual {
	double lr, momentum; /* the values of outer-lr, outer-momentum = -1 */
};
extern const struct outer_usual outer_usual[];

/* Aggregation rules (outer/merge.h). */
enum merge_choice {
#define MERGE_RULE(name, facts, least) MERGE_##name,
#include "base/merge_rules.def"
#undef MERGE_RULE
};
enum merge_fact {
	MERGE_CLIPS = 1,   /* limits contributions by outer-clip */
	MERGE_TRIMS = 2,   /* leaves out the extremes, trim-share of the contributions on each side */
	MERGE_CENTERS = 4, /* starts from the last mean, which the shared state then keeps */
};
extern const struct registry_entry merge_facts[];
extern const int merge_least[]; /* fewest contributions that the rule takes */

/* Inner optimizers (train/inner.h). */
enum inner_choice {
#define INNER_OPTIMIZER(name, facts) INNER_##name,
#include "base/inner_optimizers.def"
#undef INNER_OPTIMIZER
};
enum inner_fact {
	INNER_HAS_MOMENTS = 1,    /* beta1, beta2, eps */
	INNER_ORTHOGONALIZES = 2, /* the momentum of matrices: muon-momentum */
};
extern const struct registry_entry inner_facts[];

/* Model families (base/model_shape.h, train/model/model.h). */
enum model_choice {
#define MODEL_FAMILY(name, facts) MODEL_##name,
#include "base/model_families.def"
#undef MODEL_FAMILY
};
enum model_fact {
	FAMILY_ROTATES = 1, /* positions are rotations of queries and keys: the rope options */
};
extern const struct registry_entry model_facts[];

/* Writes the names of the entries that have the fact: "adam, yogi or adagrad". */
struct registry_names {
	char text[256];
};
void registry_names(const struct registry_entry *entries, unsigned fact, struct registry_names *out);

/* Returns how many of n contributions a rule with that trim-share leaves out on each side: at least
 * one, and less than half of them, so none of one or two. */
int merge_trimmed_count(double trim_share, int n);

#endif
