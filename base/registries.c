/* registries.c: see registries.h. */
#include "base/registries.h"

#include <stdio.h>

#define END                                                                                                            \
	{ NULL, 0 }

const struct registry_entry codec_facts[] = {
#define CODEC(name, facts, of_mean) {#name, facts},
#include "base/codecs.def"
	END};
#undef CODEC

const enum codec_choice codec_of_mean[] = {
#define CODEC(name, facts, of_mean) CODEC_##of_mean,
#include "base/codecs.def"
#undef CODEC
};

const struct registry_entry outer_facts[] = {
#define OUTER_OPTIMIZER(name, facts, lr, momentum) {#name, facts},
#include "base/outer_optimizers.def"
	END};
#undef OUTER_OPTIMIZER

const struct outer_usual outer_usual[] = {
#define OUTER_OPTIMIZER(name, facts, lr, momentum) {lr, momentum},
#include "base/outer_optimizers.def"
#undef OUTER_OPTIMIZER
};

const struct registry_entry merge_facts[] = {
#define MERGE_RULE(name, facts, least) {#name, facts},
#include "base/merge_rules.def"
	END};
#undef MERGE_RULE

const int merge_least[] = {
#define MERGE_RULE(name, facts, least) least,
#include "base/merge_rules.def"
#undef MERGE_RULE
};

const struct registry_entry inner_facts[] = {
#define INNER_OPTIMIZER(name, facts) {#name, facts},
#include "base/inner_optimizers.def"
	END};
#undef INNER_OPTIMIZER

const struct registry_entry model_facts[] = {
#define MODEL_FAMILY(name, facts) {#name, facts},
#include "base/model_families.def"
	END};
#undef MODEL_FAMILY

void registry_names(const struct registry_entry *entries, unsigned fact, struct registry_names *out) {
	size_t used = 0;
	int left = 0;
	for (const struct registry_entry *e = entries; e->name; e++)
		left += (e->facts & fact) != 0;
	out->text[0] = '\0';
	for (const struct registry_entry *e = entries; e->name; e++) {
		if (!(e->facts & fact))
			continue;
		left--;
		if (used < sizeof out->text)
			used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s%s", e->name,
									 left > 1   ? ", "
									 : left > 0 ? " or "
												: "");
	}
}

int merge_trimmed_count(double trim_share, int n) {
	const double slack = 1e-9; /* 0.3 of 10 is 3, whatever 0.3 is in binary */
	const int most = (n - 1) / 2, share = (int)(trim_share * n + slack), trimmed = share > 1 ? share : 1;
	return trimmed < most ? trimmed : most;
}
