/* run_config_idle.c: see run_config_idle.h. */
#include "base/run_config_idle.h"

#include "base/option_value.h"

#include <string.h>

static bool has_outer_lr(const struct run_config *c) {
	return outer_facts[c->outer].facts & OUTER_HAS_LR;
}

static bool has_outer_momentum(const struct run_config *c) {
	return outer_facts[c->outer].facts & OUTER_HAS_MOMENTUM;
}

static bool is_adaptive(const struct run_config *c) {
	return outer_facts[c->outer].facts & OUTER_ADAPTIVE;
}

static bool has_outer_beta2(const struct run_config *c) {
	return outer_facts[c->outer].facts & OUTER_HAS_BETA2;
}

static bool delays(const struct run_config *c) {
	return outer_facts[c->outer].facts & OUTER_DELAYS;
}

static bool is_eager(const struct run_config *c) {
	return c->updates == UPDATES_EAGER;
}

static bool has_moments(const struct run_config *c) {
	return strcmp(c->inner, "sgd") != 0;
}

static bool has_muon(const struct run_config *c) {
	return strcmp(c->inner, "muon") == 0;
}

static bool has_rope(const struct run_config *c) {
	return strcmp(c->model, "llama") == 0;
}

static bool stretches(const struct run_config *c) {
	return has_rope(c) && strcmp(c->rope_scaling, "none") != 0;
}

static bool stretches_as_llama3(const struct run_config *c) {
	return has_rope(c) && strcmp(c->rope_scaling, "llama3") == 0;
}

static bool limits_contributions(const struct run_config *c) {
	return merge_facts[c->merge].facts & MERGE_CLIPS;
}

static bool trims_contributions(const struct run_config *c) {
	return merge_facts[c->merge].facts & MERGE_TRIMS;
}

static const struct {
	const char *name;
	bool (*used)(const struct run_config *c);
	const char *belongs;
} rules[] = {
	{"outer-lr", has_outer_lr, "every outer optimizer but average"},
	{"outer-momentum", has_outer_momentum, "outer = nesterov, delayed_nesterov, adam, yogi or adagrad"},
	{"outer-beta2", has_outer_beta2, "outer = adam or yogi"},
	{"outer-eps", is_adaptive, "outer = adam, yogi or adagrad"},
	{"outer-delay", delays, "outer = delayed_nesterov"},
	{"outer-clip", limits_contributions, "merge = mean"},
	{"trim-share", trims_contributions, "merge = trimmed_mean"},
	{"eager-share", is_eager, "updates = eager"},
	{"beta1", has_moments, "inner = adamw or muon"},
	{"beta2", has_moments, "inner = adamw or muon"},
	{"eps", has_moments, "inner = adamw or muon"},
	{"muon-momentum", has_muon, "inner = muon"},
	{"rope-theta", has_rope, "model = llama"},
	{"rope-scaling", has_rope, "model = llama"},
	{"rope-factor", stretches, "model = llama with rope-scaling"},
	{"rope-low-freq", stretches_as_llama3, "model = llama with rope-scaling = llama3"},
	{"rope-high-freq", stretches_as_llama3, "model = llama with rope-scaling = llama3"},
	{"rope-original-context", stretches_as_llama3, "model = llama with rope-scaling = llama3"},
};

const char *run_config_idle(const struct run_config *c, const char *name) {
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (strcmp(rules[i].name, name) == 0)
			return rules[i].used(c) ? NULL : rules[i].belongs;
	return NULL;
}

static bool same_value(const struct rv_option *o, const void *a, const void *b) {
	char x[RV_OPTION_TEXT_BYTES], y[RV_OPTION_TEXT_BYTES];
	rv_option_value_print(o, a, x);
	rv_option_value_print(o, b, y);
	return strcmp(x, y) == 0;
}

int rv_options_idle(const struct rv_option *table, const void *opts, const void *defaults, rv_idle_of *idle,
					const void *ctx, struct rv_errtext *what) {
	size_t at = 0;
	int n = 0;
	what->text[0] = '\0';
	for (const struct rv_option *o = table; o->name; o++) {
		const char *belongs = idle(ctx, o->name);
		char value[RV_OPTION_TEXT_BYTES];
		if (!belongs || same_value(o, opts, defaults))
			continue;
		rv_option_value_print(o, opts, value);
		if (at < sizeof what->text)
			at += (size_t)snprintf(what->text + at, sizeof what->text - at,
								   "%s%s = %.60s has no effect here: it belongs to %s", n > 0 ? "; " : "", o->name,
								   value, belongs);
		n++;
	}
	return n;
}

static const char *idle_in_run(const void *ctx, const char *name) {
	return run_config_idle(ctx, name);
}

int run_config_idle_text(const struct run_config *c, struct rv_errtext *what) {
	struct run_config usual;
	run_config_defaults(&usual);
	return rv_options_idle(run_config_options, c, &usual, idle_in_run, c, what);
}
