/* trace.c: see trace.h. */
#include "worker/session/trace.h"

#include "base/hex.h"
#include "base/json_lines.h"
#include "base/version.h"

#include <jansson.h>
#include <stdlib.h>

struct trace {
	struct rv_json_lines *lines;
};

void trace_roster_of(const struct document *d, struct trace_roster *out) {
	*out = (struct trace_roster){.round = d->round, .attempt = d->attempt, .n = d->n_members};
	for (int i = 0; i < d->n_members; i++) {
		out->members[i].member = d->members[i].member;
		out->members[i].weight = d->members[i].weight;
		out->members[i].boot = d->members[i].boot;
	}
}

enum rv_err trace_open(const char *path, struct trace **out, struct rv_errtext *et) {
	struct trace *t = calloc(1, sizeof *t);
	if (!t)
		return rv_fail(et, RV_E_NOMEM, "no memory for the trace");
	enum rv_err e = rv_json_lines_open(path, true, &t->lines, et);
	if (e != RV_OK) {
		free(t);
		return e;
	}
	*out = t;
	return RV_OK;
}

void trace_close(struct trace *t) {
	if (!t)
		return;
	rv_json_lines_close(t->lines);
	free(t);
}

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

enum rv_err trace_write_start(struct trace *t, const struct trace_start *s, struct rv_errtext *et) {
	return rv_json_lines_write(
		t->lines,
		json_pack("{ss si so so so sb sb so so si ss so so so}", "event", "start", "version", TRACE_VERSION, "member",
				  whole(s->member), "boot", whole(s->boot), "round", whole(s->round), "saved", (int)s->saved, "exact",
				  (int)s->exact, "saved_round", whole(s->saved_round), "saved_steps", whole(s->saved_steps), "threads",
				  s->threads, "dtype", s->dtype, "device", s->device ? json_string(s->device) : json_null(), "program",
				  json_sprintf("rivulet %s", rv_version()), "data",
				  s->data && s->data[0] ? json_string(s->data) : json_null()),
		et);
}

enum rv_err trace_write_train(struct trace *t, uint64_t round, uint64_t from, uint64_t to, struct rv_errtext *et) {
	return rv_json_lines_write(
		t->lines,
		json_pack("{ss so so so}", "event", "train", "round", whole(round), "from", whole(from), "to", whole(to)), et);
}

enum rv_err trace_write_encode(struct trace *t, uint64_t round, uint64_t boot, bool ok, bool copy,
							   struct rv_errtext *et) {
	return rv_json_lines_write(t->lines,
							   json_pack("{ss so so sb sb}", "event", "encode", "round", whole(round), "boot",
										 whole(boot), "ok", (int)ok, "copy", (int)copy),
							   et);
}

static json_t *roster_json(const struct trace_roster *r) {
	json_t *list = json_array();
	for (int i = 0; i < r->n; i++)
		(void)json_array_append_new(list, json_pack("{so so so}", "member", whole(r->members[i].member), "weight",
													whole(r->members[i].weight), "boot", whole(r->members[i].boot)));
	return list;
}

enum rv_err trace_write_vote(struct trace *t, const struct trace_roster *r, struct rv_errtext *et) {
	return rv_json_lines_write(t->lines,
							   json_pack("{ss so so so}", "event", "vote", "round", whole(r->round), "attempt",
										 whole(r->attempt), "roster", roster_json(r)),
							   et);
}

enum rv_err trace_write_apply(struct trace *t, const struct trace_apply *a, struct rv_errtext *et) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(a->chain.b, RV_HASH_BYTES, hex);
	return rv_json_lines_write(t->lines,
							   json_pack("{ss so sb sb sb ss so}", "event", "apply", "round", whole(a->round),
										 "participated", (int)a->participated, "keep", (int)a->keep, "copy",
										 (int)a->copy, "chain", hex, "attempt", whole(a->attempt)),
							   et);
}

enum rv_err trace_write_install(struct trace *t, uint64_t round, struct rv_errtext *et) {
	return rv_json_lines_write(t->lines, json_pack("{ss so}", "event", "install", "round", whole(round)), et);
}

enum rv_err trace_write_rollback(struct trace *t, uint64_t round, struct rv_errtext *et) {
	return rv_json_lines_write(t->lines, json_pack("{ss so}", "event", "rollback", "round", whole(round)), et);
}

enum rv_err trace_write_save(struct trace *t, uint64_t round, uint64_t steps, struct rv_errtext *et) {
	return rv_json_lines_write(
		t->lines, json_pack("{ss so so}", "event", "save", "round", whole(round), "steps", whole(steps)), et);
}
