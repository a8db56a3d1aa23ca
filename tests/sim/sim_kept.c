/* sim_kept.c: universes in files: two tables of fields, by which they are written and read. */
#include "tests/sim/sim_kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512 };
enum field_type {
	FIELD_BOOL,
	FIELD_U8,
	FIELD_U32,
	FIELD_INT,
	FIELD_U64,
	FIELD_I64,
	FIELD_FLOAT,
	FIELD_DOUBLE,
	FIELD_CODEC,
	FIELD_HOST
};

struct field {
	const char *name;
	enum field_type type;
	size_t at;
};

#define OPTION(name, type)                                                                                             \
	{ #name, type, offsetof(struct sim_options, name) }
static const struct field options[] = {
	OPTION(seed, FIELD_U64),
	OPTION(n_workers, FIELD_INT),
	OPTION(min_workers, FIELD_U32),
	OPTION(row_size, FIELD_INT),
	OPTION(rounds, FIELD_U64),
	OPTION(steps_per_round, FIELD_U64),
	OPTION(overlap_steps, FIELD_U64),
	OPTION(snapshot_every, FIELD_U64),
	OPTION(n_params, FIELD_U64),
	OPTION(codec, FIELD_CODEC),
	OPTION(late, FIELD_U32),
	OPTION(clip, FIELD_DOUBLE),
	OPTION(agrees, FIELD_BOOL),
	OPTION(loud, FIELD_BOOL),
	OPTION(weight_by_tokens, FIELD_BOOL),
	OPTION(equal_ownership, FIELD_BOOL),
	OPTION(slow_members, FIELD_INT),
	OPTION(fragments, FIELD_U32),
	OPTION(mix, FIELD_FLOAT),
	OPTION(gives_away, FIELD_BOOL),
	OPTION(share, FIELD_FLOAT),
	OPTION(feedback, FIELD_FLOAT),
	OPTION(mean_feedback, FIELD_FLOAT),
	OPTION(mixed, FIELD_BOOL),
	OPTION(keep_snapshots, FIELD_U64),
	OPTION(keep_log, FIELD_U64),
	OPTION(calm, FIELD_BOOL),
	OPTION(hasty, FIELD_BOOL),
	OPTION(delay_us, FIELD_I64),
	OPTION(jitter_us, FIELD_I64),
	OPTION(slowest_bytes_per_s, FIELD_DOUBLE),
	OPTION(step_us, FIELD_I64),
	OPTION(by_time, FIELD_BOOL),
	OPTION(fault_interval_us, FIELD_I64),
	OPTION(safety_us, FIELD_I64),
	OPTION(relay, FIELD_INT),
	OPTION(capped, FIELD_DOUBLE),
	OPTION(chunk_elems, FIELD_U64),
	OPTION(leases, FIELD_BOOL),
	/* Of a universe with liars, or with audits; in files of others they are not there. */
	OPTION(liars, FIELD_BOOL),
	OPTION(n_liars, FIELD_INT),
	OPTION(audit_chunks, FIELD_U32),
	OPTION(audit_window, FIELD_U32),
	OPTION(audit_ppm, FIELD_U32),
	OPTION(repeat_ppm, FIELD_U32),
	OPTION(audit_rollback, FIELD_BOOL),
	OPTION(adversary, FIELD_U32),
	OPTION(adversary_host, FIELD_INT),
	OPTION(accomplice, FIELD_INT),
};
enum { N_OPTIONS = sizeof options / sizeof options[0], N_ALWAYS = N_OPTIONS - 10 };
_Static_assert(sizeof(enum sim_adversary) == 4, "as the table says");

#define FAULT(name, type)                                                                                              \
	{ #name, type, offsetof(struct sim_fault, name) }
static const struct field fault_fields[] = {
	FAULT(host, FIELD_HOST),    FAULT(peer, FIELD_HOST),     FAULT(reckless, FIELD_BOOL), FAULT(round, FIELD_U64),
	FAULT(set, FIELD_U64),      FAULT(at_us, FIELD_I64),     FAULT(moment, FIELD_U32),    FAULT(into, FIELD_DOUBLE),
	FAULT(lasts_us, FIELD_I64), FAULT(amount, FIELD_DOUBLE),
};
enum { N_FAULT_FIELDS = sizeof fault_fields / sizeof fault_fields[0] };
_Static_assert(sizeof(size_t) == 8 && sizeof(int64_t) == 8 && sizeof(enum late_policy) == 4, "as the tables say");

/* ---- one value ---- */

static size_t bytes_of(enum field_type type) {
	static const uint8_t bytes[] = {
		[FIELD_BOOL] = 1, [FIELD_U8] = 1,    [FIELD_U32] = 4,    [FIELD_INT] = 4,   [FIELD_U64] = 8,
		[FIELD_I64] = 8,  [FIELD_FLOAT] = 4, [FIELD_DOUBLE] = 8, [FIELD_CODEC] = 8, [FIELD_HOST] = 2};
	return bytes[type];
}

static void value_text(const struct field *f, const void *snapshot, char out[64]) {
	const uint8_t *at = (const uint8_t *)snapshot + f->at;
	uint64_t n = 0;
	float x;
	double y;
	const struct codec *codec;
	memcpy(&n, at, bytes_of(f->type)); /* little-endian, as everything here */
	memcpy(&x, at, f->type == FIELD_FLOAT ? sizeof x : 0);
	memcpy(&y, at, f->type == FIELD_DOUBLE ? sizeof y : 0);
	memcpy(&codec, at, f->type == FIELD_CODEC ? sizeof codec : 0);
	if (f->type == FIELD_FLOAT)
		(void)snprintf(out, 64, "%a", (double)x);
	else if (f->type == FIELD_DOUBLE)
		(void)snprintf(out, 64, "%a", y);
	else if (f->type == FIELD_CODEC)
		(void)snprintf(out, 64, "%s", codec->name);
	else if (f->type == FIELD_I64)
		(void)snprintf(out, 64, "%" PRId64, (int64_t)n);
	else if (f->type == FIELD_HOST)
		(void)snprintf(out, 64, "%d", sim_number((int)n));
	else
		(void)snprintf(out, 64, "%" PRIu64, n);
}

/* False: not a value of that type. */
static bool set_value(const struct field *f, void *snapshot, const char *text) {
	uint8_t *at = (uint8_t *)snapshot + f->at;
	char *end = NULL;
	const struct codec *codec;
	if (f->type == FIELD_CODEC) {
		const struct codec *const *c = codec_registry;
		while (*c && strcmp((*c)->name, text) != 0)
			c++;
		if (!(codec = *c))
			return false;
		memcpy(at, &codec, sizeof codec);
		return true;
	}
	errno = 0;
	double y = strtod(text, &end);
	float x = (float)y;
	if (f->type == FIELD_FLOAT)
		memcpy(at, &x, sizeof x);
	else if (f->type == FIELD_DOUBLE)
		memcpy(at, &y, sizeof y);
	else {
		uint64_t n = f->type == FIELD_I64 ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
		size_t bytes = bytes_of(f->type);
		if (f->type == FIELD_BOOL ? n > 1 : bytes < 8 && n >> 8 * bytes != 0)
			return false;
		n = f->type == FIELD_HOST ? (uint64_t)sim_host_of_number((int)n) : n;
		memcpy(at, &n, bytes);
	}
	return end != text && *end == '\0' && errno == 0;
}

/* ---- writing ---- */

static void write_fault(FILE *out, const struct sim_fault *f) {
	static const struct sim_fault none;
	char text[LINE_BYTES], value[64], zero[64];
	sim_fault_text(f, text, sizeof text);
	fprintf(out, "\n# %s\nfault = kind=%s", text, sim_fault_names[f->kind]);
	if (f->on != ON_NOTHING)
		fprintf(out, " on=%s", sim_on_names[f->on]);
	for (int i = 0; i < N_FAULT_FIELDS; i++) {
		value_text(&fault_fields[i], f, value);
		value_text(&fault_fields[i], &none, zero);
		if (strcmp(value, zero) != 0)
			fprintf(out, " %s=%s", fault_fields[i].name, value);
	}
	fprintf(out, "\n");
}

enum rv_err sim_kept_write(const char *path, const struct sim_options *opt, const struct sim_plan *plan,
						   const char *why, struct rv_errtext *et) {
	char value[64];
	FILE *out = fopen(path, "we");
	if (out == NULL)
		return rv_fail(et, RV_E_IO, "%s: %s", path, strerror(errno));
	const bool strange = opt->liars || opt->audit_chunks > 0 || opt->audit_ppm > 0;
	fprintf(out, "# %s\n", why);
	for (int i = 0; i < (strange ? N_OPTIONS : N_ALWAYS); i++) {
		value_text(&options[i], opt, value);
		fprintf(out, "%s = %s\n", options[i].name, value);
	}
	for (int i = 0; i < plan->n; i++)
		if (plan->chosen[i])
			write_fault(out, &plan->faults[i]);
	return fclose(out) == 0 ? RV_OK : rv_fail(et, RV_E_IO, "%s: %s", path, strerror(errno));
}

/* ---- reading ---- */

static int find(const struct field *fields, int n, const char *name) {
	for (int i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return i;
	return -1;
}

static bool set_kind(struct sim_fault *f, const char *name) {
	for (int kind = 0; kind < SIM_FAULT_KINDS; kind++)
		if (strcmp(sim_fault_names[kind], name) == 0) {
			f->kind = (uint8_t)kind;
			return true;
		}
	return false;
}

static bool set_on(struct sim_fault *f, const char *name) {
	for (int on = 0; on < SIM_ONS; on++)
		if (strcmp(sim_on_names[on], name) == 0) {
			f->on = (uint8_t)on;
			f->at_us = -1;
			return true;
		}
	return false;
}

static bool set_fault_value(struct sim_fault *f, const char *name, const char *value) {
	if (strcmp(name, "kind") == 0)
		return set_kind(f, value);
	if (strcmp(name, "on") == 0)
		return set_on(f, value);
	int i = find(fault_fields, N_FAULT_FIELDS, name);
	return i >= 0 && set_value(&fault_fields[i], f, value);
}

/* Files are of universes that a seed makes, of 32 workers at most. */
static bool is_ordinary(int host) {
	return host < SIM_ORDINARY || (host >= SIM_COORDINATOR && host < SIM_HOSTS);
}

/* "kind=killed host=3 ..." NULL, or what is wrong. */
static const char *read_fault(char *text, struct sim_plan *plan) {
	struct sim_fault f = {.kind = SIM_FAULT_KINDS};
	char *rest = NULL;
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=');
		if (value == NULL)
			return "a word without a value";
		*value++ = '\0';
		if (!set_fault_value(&f, word, value))
			return word;
	}
	if (f.kind == FAULT_FALSE_RELAY && (f.amount < 0 || f.amount >= SIM_FALSEHOODS || f.peer >= SIM_MAX_RELAYS))
		return "a relay that is false in no way";
	if (f.kind == FAULT_WITHHOLDER && (f.amount < 0 || f.amount >= SIM_WITHHELD))
		return "a withholder of nothing";
	if (f.kind == FAULT_MISLED && (f.amount < 0 || f.amount >= SIM_OTHER_RUNS))
		return "another run of no kind";
	if (f.kind == FAULT_HOME && (f.amount < 0 || f.amount >= SIM_HOME_KINDS || f.moment >= HOME_TRAITS))
		return "a home of no kind";
	if (f.kind >= FAULT_RELAY && f.kind <= FAULT_RELAY_SLOW && f.peer >= SIM_MAX_RELAYS)
		return "no such relay";
	if (f.kind == SIM_FAULT_KINDS || !is_ordinary(f.host) || !is_ordinary(f.peer) || plan->n == SIM_MAX_FAULTS)
		return "no kind, no such host, or too many faults";
	plan->faults[plan->n] = f;
	plan->chosen[plan->n++] = true;
	return NULL;
}

/* "suspected set=8 least=2 most=7" */
static const char *read_expect(char *text, struct sim_plan *plan) {
	static const struct field fields[] = {{"set", FIELD_U64, offsetof(struct sim_expect, set)},
										  {"least", FIELD_U64, offsetof(struct sim_expect, least)},
										  {"most", FIELD_U64, offsetof(struct sim_expect, most)}};
	struct sim_expect x = {.set = UINT32_MAX, .most = UINT64_MAX};
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	int what = word != NULL ? expect_find(word) : -1;
	if (what < 0 || plan->n_expects == SIM_MAX_EXPECTS)
		return "nothing that is counted, or too many";
	x.what = (uint8_t)what;
	while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
		char *value = strchr(word, '=');
		int i = -1;
		if (value != NULL) {
			*value++ = '\0';
			i = find(fields, 3, word);
		}
		if (i < 0 || !set_value(&fields[i], &x, value))
			return word;
	}
	plan->expects[plan->n_expects++] = x;
	return NULL;
}

static const char *read_line(char *line, struct sim_options *opt, struct sim_plan *plan, uint64_t *seen) {
	char *value = strstr(line, " = ");
	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '#' || line[0] == '\0')
		return NULL;
	if (value == NULL)
		return "no ' = '";
	*value = '\0';
	value += strlen(" = ");
	if (strcmp(line, "fault") == 0)
		return read_fault(value, plan);
	if (strcmp(line, "expect") == 0)
		return read_expect(value, plan);
	if (strcmp(line, "rest") == 0 && strcmp(value, "plain") == 0 && *seen == 0) {
		*opt = sim_options_plain();
		*seen = UINT64_C(1) << 63;
		return NULL;
	}
	int i = find(options, N_OPTIONS, line);
	if (i < 0 || (*seen >> i & 1) || !set_value(&options[i], opt, value))
		return "an unknown option, one that was there before, or a value that it cannot have";
	*seen |= UINT64_C(1) << i;
	return NULL;
}

/* Returns why no seed makes such an adversary; NULL: one does. */
static const char *unfit(const struct sim_options *o) {
	if (o->adversary >= SIM_SCORED)
		return "an adversary of no kind";
	if (o->adversary != ADVERSARY_NONE && (o->adversary_host < 0 || o->adversary_host >= o->n_workers))
		return "an adversary that is no worker";
	return NULL;
}

enum rv_err sim_kept_read(const char *path, struct sim_options *opt, struct sim_plan *plan, struct rv_errtext *et) {
	char line[LINE_BYTES];
	const char *wrong = NULL;
	uint64_t seen = 0;
	int number = 0;
	memset(opt, 0, sizeof *opt);
	memset(plan, 0, sizeof *plan);
	FILE *in = fopen(path, "re");
	if (in == NULL)
		return rv_fail(et, RV_E_IO, "%s: %s", path, strerror(errno));
	for (; wrong == NULL && fgets(line, sizeof line, in) != NULL; number++)
		wrong = read_line(line, opt, plan, &seen);
	(void)fclose(in);
	if (wrong != NULL)
		return rv_fail(et, RV_E_INVALID, "%s:%d: %s", path, number, wrong);
	if (!(seen >> 63) && seen != (UINT64_C(1) << N_ALWAYS) - 1 && seen != (UINT64_C(1) << N_OPTIONS) - 1)
		return rv_fail(et, RV_E_INVALID, "%s: an option is missing: there must be all %d, or the first %d", path,
					   (int)N_OPTIONS, (int)N_ALWAYS);
	const char *why = unfit(opt);
	return why == NULL ? RV_OK : rv_fail(et, RV_E_INVALID, "%s: %s", path, why);
}
