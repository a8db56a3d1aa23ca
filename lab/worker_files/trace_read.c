/* trace_read.c: see trace_read.h. */
#include "lab/worker_files/trace_read.h"

#include "base/file.h"
#include "base/hex.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
	[TRACE_START] = "start",          [TRACE_TRAIN] = "train",     [TRACE_ENCODE] = "encode",
	[TRACE_APPLY] = "apply",          [TRACE_INSTALL] = "install", [TRACE_SAVE] = "save",
	[TRACE_ROLLBACK] = "rollback",    [TRACE_VOTE] = "vote",       [TRACE_OWNS] = "owns",
	[TRACE_START_OVER] = "start_over"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* The counts and flags of each kind of line, beside `round`; all must be there. */
static const struct value {
	enum trace_kind kind;
	const char *key;
	enum { COUNT, FLAG } type;
	size_t offset; /* in trace_event: a uint64_t, or a bool */
} values[] = {
	{TRACE_START, "boot", COUNT, offsetof(struct trace_event, boot)},
	{TRACE_START, "saved", FLAG, offsetof(struct trace_event, saved)},
	{TRACE_START, "exact", FLAG, offsetof(struct trace_event, exact)},
	{TRACE_START, "saved_round", COUNT, offsetof(struct trace_event, from)},
	{TRACE_START, "saved_steps", COUNT, offsetof(struct trace_event, to)},
	{TRACE_TRAIN, "from", COUNT, offsetof(struct trace_event, from)},
	{TRACE_TRAIN, "to", COUNT, offsetof(struct trace_event, to)},
	{TRACE_ENCODE, "boot", COUNT, offsetof(struct trace_event, boot)},
	{TRACE_ENCODE, "ok", FLAG, offsetof(struct trace_event, ok)},
	{TRACE_ENCODE, "copy", FLAG, offsetof(struct trace_event, copy)},
	{TRACE_APPLY, "attempt", COUNT, offsetof(struct trace_event, attempt)},
	{TRACE_APPLY, "participated", FLAG, offsetof(struct trace_event, participated)},
	{TRACE_APPLY, "keep", FLAG, offsetof(struct trace_event, keep)},
	{TRACE_APPLY, "copy", FLAG, offsetof(struct trace_event, copy)},
	{TRACE_SAVE, "steps", COUNT, offsetof(struct trace_event, to)},
	{TRACE_VOTE, "attempt", COUNT, offsetof(struct trace_event, attempt)},
	{TRACE_OWNS, "attempt", COUNT, offsetof(struct trace_event, attempt)},
};

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

static bool take_values(const json_t *line, struct trace_event *e) {
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		const struct value *v = &values[i];
		void *to = (char *)e + v->offset;
		if (v->kind == e->kind && !(v->type == COUNT ? take_count(line, v->key, to) : take_flag(line, v->key, to)))
			return false;
	}
	return true;
}

static bool take_kind(const json_t *line, enum trace_kind *out) {
	const char *name = json_string_value(json_object_get(line, "event"));
	for (int i = 0; name && i < KINDS; i++)
		if (strcmp(name, kinds[i]) == 0) {
			*out = (enum trace_kind)i;
			return true;
		}
	return false;
}

/* Takes a small number that a line has only if it is not 0. */
static bool take_small(const json_t *entry, const char *name, uint64_t most, uint8_t *out) {
	uint64_t value = 0;
	if (json_object_get(entry, name) && (!take_count(entry, name, &value) || value > most))
		return false;
	*out = (uint8_t)value;
	return true;
}

static bool take_member(const json_t *entry, struct trace_roster *r) {
	uint64_t member, weight, boot;
	if (!take_count(entry, "member", &member) || !take_count(entry, "weight", &weight) ||
		!take_count(entry, "boot", &boot) || member >= NET_NO_MEMBER || weight == 0 || weight > NET_MAX_WEIGHT_SUM)
		return false;
	if (!take_small(entry, "codec", UINT8_MAX, &r->members[r->n].codec) ||
		!take_small(entry, "part", NET_MAX_PART, &r->members[r->n].part))
		return false;
	r->members[r->n].member = (uint32_t)member;
	r->members[r->n].weight = (uint32_t)weight;
	r->members[r->n++].boot = boot;
	return true;
}

/* Takes the weights of the rows, if there are several. */
static bool take_rows(const json_t *line, struct trace_roster *r) {
	const json_t *weights = json_object_get(line, "row_weights");
	const size_t n = json_array_size(weights);
	uint64_t row;
	r->n_rows = 1;
	if (!weights)
		return true;
	if (n < 2 || n > NET_MAX_ROWS || !take_count(line, "row", &row) || row >= n)
		return false;
	r->n_rows = (int)n;
	r->row = (int)row;
	for (size_t i = 0; i < n; i++) {
		const json_int_t weight = json_integer_value(json_array_get(weights, i));
		if (weight < 0 || weight > NET_MAX_WEIGHT_SUM)
			return false;
		r->row_weights[i] = (uint32_t)weight;
	}
	return true;
}

/* Adds the roster of a vote to the event, which owns it; false: malformed, or no memory. */
static bool take_roster(const json_t *line, struct trace_event *e) {
	const json_t *list = json_object_get(line, "roster");
	size_t n = json_array_size(list);
	struct trace_roster *r = n > 0 && n <= NET_MAX_ROW && e->attempt > 0 ? calloc(1, sizeof *r) : NULL;
	if (!r)
		return false;
	e->roster = r;
	r->round = e->round;
	r->attempt = (uint32_t)e->attempt;
	for (size_t i = 0; i < n; i++)
		if (!take_member(json_array_get(list, i), r))
			return false;
	return take_rows(line, r);
}

static bool take_range(const json_t *entry, struct trace_owns *o) {
	const json_int_t first = json_integer_value(json_array_get(entry, 0)),
					 count = json_integer_value(json_array_get(entry, 1));
	const uint64_t end = o->n > 0 ? (uint64_t)o->ranges[o->n - 1].first + o->ranges[o->n - 1].count : 0;
	if (json_array_size(entry) != 2 || first < (json_int_t)end || count < 1 || first > UINT32_MAX - count)
		return false;
	o->ranges[o->n++] = (struct trace_range){.first = (uint32_t)first, .count = (uint32_t)count};
	return true;
}

/* Adds the chunks of an attempt to the event, which owns them; false: malformed, or no memory. */
static bool take_owns(const json_t *line, struct trace_event *e) {
	const json_t *list = json_object_get(line, "chunks");
	const size_t n = json_array_size(list);
	struct trace_owns *o = json_is_array(list) && n <= NET_MAX_RANGES && e->attempt > 0 ? calloc(1, sizeof *o) : NULL;
	if (!o)
		return false;
	e->owns = o;
	o->ranges = calloc(n > 0 ? n : 1, sizeof *o->ranges);
	if (!o->ranges)
		return false;
	o->round = e->round;
	o->attempt = (uint32_t)e->attempt;
	for (size_t i = 0; i < n; i++)
		if (!take_range(json_array_get(list, i), o))
			return false;
	return take_flag(line, "residual", &o->residual);
}

static bool take_piece(const json_t *entry, struct reading *r) {
	const json_int_t begin = json_integer_value(json_array_get(entry, 0)),
					 count = json_integer_value(json_array_get(entry, 1)), most = (json_int_t)LEASE_MAX_POSITION;
	return json_array_size(entry) == 2 && begin >= 0 && count >= 1 && begin <= most && count <= most - begin &&
		   reading_add(r, (uint64_t)begin, (uint64_t)count);
}

/* Adds the positions that steps read to the event, which owns them; false: malformed, or no
 * memory. */
static bool take_reads(const json_t *line, struct trace_event *e) {
	const json_t *list = json_object_get(line, "reads");
	const size_t n = json_array_size(list);
	if (!list)
		return true;
	e->reads = json_is_array(list) && n <= READING_MAX_PIECES ? calloc(1, sizeof *e->reads) : NULL;
	for (size_t i = 0; e->reads && i < n; i++)
		if (!take_piece(json_array_get(list, i), e->reads))
			return false;
	return e->reads != NULL;
}

static bool take_chain(const json_t *line, struct trace_event *e) {
	const char *chain = json_string_value(json_object_get(line, "chain"));
	return chain && rv_hex_decode(chain, e->chain.b, RV_HASH_BYTES);
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

/* Takes one of an option's values, as names separated by '|'. */
static bool take_name(const json_t *line, const char *key, const char *names, int *out) {
	const char *name = json_string_value(json_object_get(line, key));
	size_t n = name ? strlen(name) : 0;
	*out = 0;
	for (const char *at = names; n > 0; at += strcspn(at, "|") + 1, ++*out) {
		if (strcspn(at, "|") == n && memcmp(at, name, n) == 0)
			return true;
		if (!strchr(at, '|'))
			return false;
	}
	return false;
}

/* Traces of before they had the rows: processors have all at once, of a GPU check_rows refused
 * it. */
static bool take_logits_rows(const json_t *line, uint64_t *out) {
	*out = 0;
	return !json_object_get(line, "logits_rows") || (take_count(line, "logits_rows", out) && *out <= INT_MAX);
}

static bool take_savings(const json_t *line, struct trace_event *e, struct trace_record *t) {
	uint64_t micro_batch, logits_rows, zero;
	int recompute, moments;
	const json_t *offload = json_object_get(line, "offload");
	if (!take_count(line, "micro_batch", &micro_batch) || micro_batch > INT_MAX ||
		!take_logits_rows(line, &logits_rows) || !take_name(line, "recompute", RECOMPUTE_NAMES, &recompute) ||
		!take_name(line, "moments", MOMENTS_NAMES, &moments) || !json_is_boolean(offload) ||
		!take_count(line, "zero", &zero) || zero < 1 || zero > 1 + ZERO_WEIGHTS)
		return false;
	e->savings = (struct savings){.micro_batch = (int)micro_batch,
								  .logits_rows = (int)logits_rows,
								  .recompute = (enum recompute)recompute,
								  .moments = (enum moments)moments,
								  .offload = json_is_true(offload),
								  .zero = (enum zero)(zero - 1)};
	if (!t->has_savings)
		t->savings = e->savings;
	t->has_savings = true;
	return true;
}

static bool take_start(const json_t *line, struct trace_event *e, struct trace_record *t) {
	uint64_t member, threads;
	if (!take_count(line, "member", &member) || member >= NET_NO_MEMBER || !take_count(line, "threads", &threads))
		return false;
	t->member = (uint32_t)member;
	t->threads = threads < 1 || threads > 256 ? 1 : (int)threads;
	return take_dtype(line, t) && take_device(line, t) && take_savings(line, e, t);
}

static bool take_event(const json_t *line, struct trace_event *e, struct trace_record *t) {
	*e = (struct trace_event){0};
	if (!take_kind(line, &e->kind) || !take_count(line, "round", &e->round) || !take_values(line, e) ||
		e->attempt > UINT32_MAX)
		return false;
	switch (e->kind) {
	case TRACE_START:
		return take_start(line, e, t);
	case TRACE_TRAIN:
		return e->from <= e->to && take_reads(line, e);
	case TRACE_APPLY:
		return take_chain(line, e);
	case TRACE_VOTE:
		return take_roster(line, e);
	case TRACE_OWNS:
		return take_owns(line, e);
	default:
		return true;
	}
}

/* Makes room for one more event. */
static enum rv_err grow(struct trace_record *t, struct rv_errtext *et) {
	if (t->n == TRACE_MAX_EVENTS)
		return rv_fail(et, RV_E_RANGE, "more than %d events", TRACE_MAX_EVENTS);
	if ((t->n & (t->n - 1)) != 0)
		return RV_OK;
	struct trace_event *events = realloc(t->events, (size_t)(t->n ? 2 * t->n : 1) * sizeof *events);
	if (!events)
		return rv_fail(et, RV_E_NOMEM, "no memory for its events");
	t->events = events;
	return RV_OK;
}

/* Refuses what a newer release has written, whatever its lines are. Lines without a version are of
 * the first one. */
static enum rv_err check_version(const json_t *line, int number, struct rv_errtext *et) {
	uint64_t version = 0;
	if (!take_count(line, "version", &version) || version <= TRACE_VERSION)
		return RV_OK;
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "line %d: version %" PRIu64 " of the trace, this program reads version %d: use the release that "
				   "wrote it, or a later one",
				   number, version, TRACE_VERSION);
}

/* Refuses a process on a GPU that did not say how many rows of logits it computed at a time: they
 * are the order of sums, and depended on the memory that was free. */
static enum rv_err check_rows(const json_t *line, int number, struct rv_errtext *et) {
	const char *device = json_string_value(json_object_get(line, "device"));
	enum trace_kind kind;
	if (!take_kind(line, &kind) || kind != TRACE_START || json_object_get(line, "logits_rows"))
		return RV_OK;
	if (!device || strcmp(device, "cpu") == 0)
		return RV_OK;
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "line %d: an earlier program wrote it, without 'logits_rows': the order of sums on %.40s is not "
				   "known here; replay it with the program that it names",
				   number, device);
}

static enum rv_err parse_line(const json_t *line, int number, struct trace_record *t, struct rv_errtext *et) {
	RV_TRY(check_version(line, number, et));
	RV_TRY(check_rows(line, number, et));
	RV_TRY(grow(t, et));
	struct trace_event *e = &t->events[t->n++];
	return take_event(line, e, t) ? RV_OK : rv_fail(et, RV_E_CORRUPT, "line %d is no event of a trace", number);
}

/* Skips a line that is not JSON: a crash tore it, and the next process has ended it. */
static enum rv_err parse_lines(struct trace_record *t, const char *at, struct rv_errtext *et) {
	enum rv_err e = RV_OK;
	const char *end;
	for (int number = 1; e == RV_OK && (end = strchr(at, '\n')); number++) {
		json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
		if (line)
			e = parse_line(line, number, t, et);
		json_decref(line);
		at = end + 1;
	}
	return e;
}

enum rv_err trace_read(const char *path, struct trace_record *out, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	*out = (struct trace_record){0};
	RV_TRY(rv_file_read(path, TRACE_MAX_FILE_BYTES, &text, &n, et));
	enum rv_err e = parse_lines(out, (const char *)text, et);
	free(text);
	if (e == RV_OK && (out->n == 0 || out->events[0].kind != TRACE_START))
		e = rv_fail(et, RV_E_CORRUPT, "does not begin with the start of a worker");
	if (e == RV_OK)
		return RV_OK;
	trace_record_release(out);
	return rv_fail_context(et, e, "%s", path);
}

void trace_record_release(struct trace_record *t) {
	for (int i = 0; i < t->n; i++) {
		free(t->events[i].roster);
		free(t->events[i].reads);
		if (t->events[i].owns)
			free(t->events[i].owns->ranges);
		free(t->events[i].owns);
	}
	free(t->events);
	*t = (struct trace_record){0};
}
