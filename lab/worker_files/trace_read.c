/* trace_read.c: see trace_read.h. */
#include "lab/worker_files/trace_read.h"

#include "base/file.h"
#include "base/hex.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool take_count(const json_t *line, const char *key, uint64_t *out) {
	const json_t *v = json_object_get(line, key);
	json_int_t n = json_integer_value(v);
	*out = n > 0 ? (uint64_t)n : 0;
	return json_is_integer(v) && n >= 0;
}

static bool take_flag(const json_t *line, const char *key, bool *out) {
	const json_t *v = json_object_get(line, key);
	*out = json_is_true(v);
	return json_is_boolean(v);
}

static bool take_kind(const json_t *line, enum trace_kind *out) {
	static const char *const names[] = {"start", "train", "encode", "apply", "install", "save", "rollback", "vote"};
	const char *name = json_string_value(json_object_get(line, "event"));
	for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum trace_kind)i;
			return true;
		}
	return false;
}

static bool take_member(const json_t *entry, struct trace_roster *r) {
	uint64_t member, weight, boot;
	if (!take_count(entry, "member", &member) || !take_count(entry, "weight", &weight) ||
		!take_count(entry, "boot", &boot) || member >= NET_MAX_MEMBERS || weight == 0 || weight > NET_MAX_WEIGHT_SUM)
		return false;
	r->members[r->n].member = (uint32_t)member;
	r->members[r->n].weight = (uint32_t)weight;
	r->members[r->n++].boot = boot;
	return true;
}

/* Returns an index into t->rosters + 1; 0: malformed, or no memory. */
static int take_roster(const json_t *line, const struct trace_event *e, struct trace_record *t) {
	const json_t *list = json_object_get(line, "roster");
	size_t n = json_array_size(list);
	if (n == 0 || n > NET_MAX_MEMBERS)
		return 0;
	if ((t->n_rosters & (t->n_rosters - 1)) == 0) {
		struct trace_roster *grown = realloc(t->rosters, (size_t)(t->n_rosters ? 2 * t->n_rosters : 1) * sizeof *grown);
		if (!grown)
			return 0;
		t->rosters = grown;
	}
	struct trace_roster *r = &t->rosters[t->n_rosters++];
	*r = (struct trace_roster){.round = e->round, .attempt = e->attempt};
	for (size_t i = 0; i < n; i++)
		if (!take_member(json_array_get(list, i), r))
			return 0;
	return t->n_rosters;
}

static bool take_attempt(const json_t *line, struct trace_event *e) {
	uint64_t attempt;
	if (!take_count(line, "attempt", &attempt) || attempt > UINT32_MAX)
		return false;
	e->attempt = (uint32_t)attempt;
	return true;
}

static bool take_vote(const json_t *line, struct trace_event *e, struct trace_record *t, int *roster) {
	return take_attempt(line, e) && e->attempt > 0 && (*roster = take_roster(line, e, t)) > 0;
}

static bool take_apply(const json_t *line, struct trace_event *e) {
	const char *chain = json_string_value(json_object_get(line, "chain"));
	return take_attempt(line, e) && take_flag(line, "participated", &e->participated) &&
		   take_flag(line, "keep", &e->keep) && take_flag(line, "copy", &e->copy) && chain &&
		   rv_hex_decode(chain, e->chain.b, RV_HASH_BYTES);
}

static bool take_dtype(const json_t *line, struct trace_record *t) {
	const char *name = json_string_value(json_object_get(line, "dtype"));
	if (!name || (strcmp(name, "fp32") != 0 && strcmp(name, "bf16") != 0))
		return false;
	const enum run_dtype dtype = strcmp(name, "bf16") == 0 ? RUN_DTYPE_BF16 : RUN_DTYPE_FP32;
	t->dtype_changed = t->dtype_changed || (t->dtype != RUN_DTYPE_AUTO && t->dtype != dtype);
	if (t->dtype == RUN_DTYPE_AUTO)
		t->dtype = dtype;
	return true;
}

/* One of the kinds that kernels/device.h names; null: the worker does not know. */
static bool take_device(const json_t *line, struct trace_record *t) {
	const json_t *value = json_object_get(line, "device");
	const char *device = json_string_value(value);
	struct device_choice choice;
	if (!device)
		return json_is_null(value);
	if (strlen(device) >= sizeof t->device || device_parse(device, &choice, NULL) != RV_OK || choice.automatic)
		return false;
	t->device_changed = t->device_changed || (t->device[0] && strcmp(t->device, device) != 0);
	if (!t->device[0])
		snprintf(t->device, sizeof t->device, "%s", device);
	return true;
}

static bool take_start(const json_t *line, struct trace_event *e, struct trace_record *t) {
	uint64_t member, threads;
	if (!take_count(line, "member", &member) || member >= NET_MAX_MEMBERS || !take_count(line, "threads", &threads))
		return false;
	t->member = (uint32_t)member;
	t->threads = threads < 1 || threads > 256 ? 1 : (int)threads;
	return take_dtype(line, t) && take_device(line, t) && take_count(line, "boot", &e->boot) &&
		   take_flag(line, "saved", &e->saved) && take_flag(line, "exact", &e->exact) &&
		   take_count(line, "saved_round", &e->from) && take_count(line, "saved_steps", &e->to);
}

static bool take_event(const json_t *line, struct trace_event *e, struct trace_record *t, int *roster) {
	*e = (struct trace_event){0};
	*roster = 0;
	if (!take_kind(line, &e->kind) || !take_count(line, "round", &e->round))
		return false;
	switch (e->kind) {
	case TRACE_START:
		return take_start(line, e, t);
	case TRACE_TRAIN:
		return take_count(line, "from", &e->from) && take_count(line, "to", &e->to) && e->from <= e->to;
	case TRACE_ENCODE:
		return take_count(line, "boot", &e->boot) && take_flag(line, "ok", &e->ok) && take_flag(line, "copy", &e->copy);
	case TRACE_APPLY:
		return take_apply(line, e);
	case TRACE_INSTALL:
	case TRACE_ROLLBACK:
		return true;
	case TRACE_SAVE:
		return take_count(line, "steps", &e->to);
	case TRACE_VOTE:
		return take_vote(line, e, t, roster);
	}
	return false;
}

/* Events with `rosters`, the index of take_roster for each, which become pointers when all are
 * read. */
struct reading {
	struct trace_record *t;
	int *rosters;
};

static enum rv_err add_event(struct reading *r, const struct trace_event *e, int roster, struct rv_errtext *et) {
	struct trace_record *t = r->t;
	if (t->n == TRACE_MAX_EVENTS)
		return rv_fail(et, RV_E_RANGE, "more than %d events", TRACE_MAX_EVENTS);
	if ((t->n & (t->n - 1)) == 0) {
		size_t cap = (size_t)(t->n ? 2 * t->n : 1);
		struct trace_event *events = realloc(t->events, cap * sizeof *events);
		if (events)
			t->events = events;
		int *rosters = realloc(r->rosters, cap * sizeof *rosters);
		if (rosters)
			r->rosters = rosters;
		if (!events || !rosters)
			return rv_fail(et, RV_E_NOMEM, "no memory for its events");
	}
	t->events[t->n] = *e;
	r->rosters[t->n++] = roster;
	return RV_OK;
}

static enum rv_err parse_lines(struct reading *r, const char *at, struct rv_errtext *et) {
	for (int number = 1; *at; number++) {
		const char *end = strchr(at, '\n');
		if (!end)
			return RV_OK; /* torn */
		struct trace_event e;
		int roster;
		json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
		bool ok = line && take_event(line, &e, r->t, &roster);
		bool torn_before = !line; /* a line that a crash tore, and the next process has ended */
		json_decref(line);
		if (!ok && !torn_before)
			return rv_fail(et, RV_E_CORRUPT, "line %d is no event of a trace", number);
		if (ok) {
			enum rv_err err = add_event(r, &e, roster, et);
			if (err != RV_OK)
				return err;
		}
		at = end + 1;
	}
	return RV_OK;
}

enum rv_err trace_read(const char *path, struct trace_record *out, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	*out = (struct trace_record){0};
	RV_TRY(rv_file_read(path, TRACE_MAX_FILE_BYTES, &text, &n, et));
	struct reading r = {.t = out};
	enum rv_err e = parse_lines(&r, (const char *)text, et);
	free(text);
	if (e == RV_OK && (out->n == 0 || out->events[0].kind != TRACE_START))
		e = rv_fail(et, RV_E_CORRUPT, "does not begin with the start of a worker");
	for (int i = 0; e == RV_OK && i < out->n; i++)
		out->events[i].roster = r.rosters[i] > 0 ? &out->rosters[r.rosters[i] - 1] : NULL;
	free(r.rosters);
	if (e == RV_OK)
		return RV_OK;
	trace_record_release(out);
	return rv_fail_context(et, e, "%s", path);
}

void trace_record_release(struct trace_record *t) {
	free(t->events);
	free(t->rosters);
	*t = (struct trace_record){0};
}
