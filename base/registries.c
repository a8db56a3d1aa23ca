/* registries.c: see registries.h. */
#include "base/registries.h"

const struct codec_facts codec_facts[] = {
#define CODEC(name, facts, of_mean) {#name, facts, CODEC_##of_mean},
#include "base/codecs.def"
#undef CODEC
};

const struct outer_facts outer_facts[] = {
#define OUTER_OPTIMIZER(name, facts, lr, momentum) {#name, facts, lr, momentum},
#include "base/outer_optimizers.def"
#undef OUTER_OPTIMIZER
};

const struct merge_facts merge_facts[] = {
#define MERGE_RULE(name, facts, least) {#name, facts, least},
#include "base/merge_rules.def"
#undef MERGE_RULE
};

int merge_trimmed(double trim_share, int n) {
	const double slack = 1e-9; /* 0.3 of 10 is 3, whatever 0.3 is in binary */
	const int most = (n - 1) / 2, trimmed = (int)(trim_share * n + slack);
	return trimmed < most ? trimmed : most;
}
