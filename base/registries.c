/* registries.c: see registries.h. */
#include "base/registries.h"

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
