/* run_config_idle.c: see run_config_idle.h. */
#include "base/run_config_idle.h"

#include "base/option_value.h"

#include <string.h>

static bool is_eager(const struct run_config *c) {
	return c->updates == UPDATES_EAGER;
}

static bool has_slow_deadline(const struct run_config *c) {
	return c->slow_members != SLOW_WAIT;
}

static bool sends_coarser(const struct run_config *c) {
	return c->slow_members == SLOW_COARSER;
}

static bool stretches(const struct run_config *c) {
	return c->rope_scaling != ROPE_PLAIN;
}

static bool stretches_as_llama3(const struct run_config *c) {
	return c->rope_scaling == ROPE_LLAMA3;
}

static bool rounds_means(const struct run_config *c) {
	return codec_facts[run_config_mean_codec(c)].facts & CODEC_ROUNDS;
}

static bool is_published(const struct run_config *c) {
	return c->data_hash[0] != '\0';
}

static bool is_brought(const struct run_config *c) {
	return !is_published(c);
}

static bool means_can_be_audited(const struct run_config *c) {
	return c->mean_feedback == 0 && !(merge_facts[c->merge].facts & MERGE_CENTERS);
}

static bool trains_as_scored(const struct run_config *c) {
	return run_config_is_scored(c) && run_config_can_repeat(c);
}

#define OF(field) offsetof(struct run_config, field), #field " = ", field##_facts

/* An option is used where the chosen entry of a registry has a fact, and where something else
 * holds. */
static const struct rule {
	const char *name;
	size_t choice; /* field of run_config */
	const char *option;
	const struct registry_entry *entries; /* NULL: no registry has to do with it */
	unsigned fact;
	bool (*also)(const struct run_config *c); /* NULL: nothing */
	const char *with;                         /* what that is */
} rules[] = {
	{"outer-lr", OF(outer), OUTER_HAS_LR, NULL, ""},
	{"outer-momentum", OF(outer), OUTER_HAS_MOMENTUM, NULL, ""},
	{"outer-beta2", OF(outer), OUTER_HAS_BETA2, NULL, ""},
	{"outer-eps", OF(outer), OUTER_ADAPTIVE, NULL, ""},
	{"outer-delay", OF(outer), OUTER_DELAYS, NULL, ""},
	{"outer-clip", OF(merge), MERGE_CLIPS, NULL, ""},
	{"trim-share", OF(merge), MERGE_TRIMS, NULL, ""},
	{"eager-share", 0, "", NULL, 0, is_eager, "updates = eager"},
	{"mean-feedback", 0, "", NULL, 0, rounds_means, "a mean-codec that loses something: all but fp32"},
	{"slow-deadline-ms", 0, "", NULL, 0, has_slow_deadline, "slow-members = skip, coarser or part"},
	{"slow-codec", 0, "", NULL, 0, sends_coarser, "slow-members = coarser"},
	{"data-from", 0, "", NULL, 0, is_published, "data-hash"},
	{"data-shards", 0, "", NULL, 0, is_brought, "text that members bring: with data-hash they lease sequences"},
	{"data-split", 0, "", NULL, 0, is_brought, "text that members bring: with data-hash they lease sequences"},
	{"audit-chunks", 0, "", NULL, 0, means_can_be_audited,
	 "mean-feedback = 0, and another merge than centered: else a mean needs more than its contributions"},
	{"audit-training", 0, "", NULL, 0, is_published, "data-hash: auditors must know what each member has read"},
	{"audit-repeat", 0, "", NULL, 0, trains_as_scored,
	 "audit-training, without fragments, overlap-steps, late updates, mix, prox-mu, error-feedback and slow-members"},
	{"audit-window", 0, "", NULL, 0, run_config_keeps_contributions, "audit-chunks and audit-training"},
	{"audit-rollback", 0, "", NULL, 0, run_config_is_audited, "audit-chunks"},
	{"beta1", OF(inner), INNER_HAS_MOMENTS, NULL, ""},
	{"beta2", OF(inner), INNER_HAS_MOMENTS, NULL, ""},
	{"eps", OF(inner), INNER_HAS_MOMENTS, NULL, ""},
	{"muon-momentum", OF(inner), INNER_ORTHOGONALIZES, NULL, ""},
	{"rope-theta", OF(model), FAMILY_ROTATES, NULL, ""},
	{"rope-scaling", OF(model), FAMILY_ROTATES, NULL, ""},
	{"rope-factor", OF(model), FAMILY_ROTATES, stretches, " with rope-scaling"},
	{"rope-low-freq", OF(model), FAMILY_ROTATES, stretches_as_llama3, " with rope-scaling = llama3"},
	{"rope-high-freq", OF(model), FAMILY_ROTATES, stretches_as_llama3, " with rope-scaling = llama3"},
	{"rope-original-context", OF(model), FAMILY_ROTATES, stretches_as_llama3, " with rope-scaling = llama3"},
};

static bool is_used(const struct rule *r, const struct run_config *c) {
	int choice;
	memcpy(&choice, (const char *)c + r->choice, sizeof choice);
	return (!r->entries || r->entries[choice].facts & r->fact) && (!r->also || r->also(c));
}

const char *run_config_idle(const struct run_config *c, const char *name, struct idle_text *room) {
	struct registry_names names = {""};
	for (const struct rule *r = rules; r < rules + sizeof rules / sizeof rules[0]; r++) {
		if (strcmp(r->name, name) != 0 || is_used(r, c))
			continue;
		if (r->entries)
			registry_names(r->entries, r->fact, &names);
		snprintf(room->text, sizeof room->text, "%s%s%s", r->option, names.text, r->with);
		return room->text;
	}
	return NULL;
}

int rv_options_idle(const struct rv_option *table, const void *opts, const void *defaults, rv_idle_of *idle,
					const void *ctx, struct rv_errtext *what) {
	size_t at = 0;
	int n = 0;
	what->text[0] = '\0';
	for (const struct rv_option *o = table; o->name; o++) {
		struct idle_text room;
		const char *belongs = idle(ctx, o->name, &room);
		char value[RV_OPTION_TEXT_BYTES];
		if (!belongs || rv_option_value_same(o, opts, defaults))
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

static const char *idle_in_run(const void *ctx, const char *name, struct idle_text *room) {
	return run_config_idle(ctx, name, room);
}

int run_config_idle_text(const struct run_config *c, struct rv_errtext *what) {
	struct run_config usual;
	run_config_defaults(&usual);
	return rv_options_idle(run_config_options, c, &usual, idle_in_run, c, what);
}
