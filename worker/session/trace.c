/* trace.c: see trace.h. */
#include "worker/session/trace.h"

#include "base/hex.h"
#include "base/version.h"

#include <jansson.h>
#include <string.h>

void trace_roster_of(const struct document *d, struct trace_roster *out) {
	*out = (struct trace_roster){.round = d->round, .attempt = d->attempt, .n_rows = 1, .n = d->n_members};
	if (d->n_rows > 1) {
		out->row = d->row;
		out->n_rows = d->n_rows;
		memcpy(out->row_weights, d->row_weights, d->n_rows * sizeof out->row_weights[0]);
	}
	for (int i = 0; i < d->n_members; i++) {
		out->members[i].member = d->members[i].member;
		out->members[i].weight = d->members[i].weight;
		out->members[i].boot = d->members[i].boot;
	}
}

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

json_t *trace_start(const struct trace_started *s) {
	return json_pack(
		"{ss si so so so sb sb so so si ss so so so}", "event", "start", "version", TRACE_VERSION, "member",
		whole(s->member), "boot", whole(s->boot), "round", whole(s->round), "saved", (int)s->saved, "exact",
		(int)s->exact, "saved_round", whole(s->saved_round), "saved_steps", whole(s->saved_steps), "threads",
		s->threads, "dtype", s->dtype, "device", s->device ? json_string(s->device) : json_null(), "program",
		json_sprintf("rivulet %s", rv_version()), "data", s->data && s->data[0] ? json_string(s->data) : json_null());
}

json_t *trace_train(uint64_t round, uint64_t from, uint64_t to) {
	return json_pack("{ss so so so}", "event", "train", "round", whole(round), "from", whole(from), "to", whole(to));
}

json_t *trace_encode(uint64_t round, uint64_t boot, bool ok, bool copy) {
	return json_pack("{ss so so sb sb}", "event", "encode", "round", whole(round), "boot", whole(boot), "ok", (int)ok,
					 "copy", (int)copy);
}

static json_t *roster_json(const struct trace_roster *r) {
	json_t *list = json_array();
	for (int i = 0; i < r->n; i++)
		(void)json_array_append_new(list, json_pack("{so so so}", "member", whole(r->members[i].member), "weight",
													whole(r->members[i].weight), "boot", whole(r->members[i].boot)));
	return list;
}

static json_t *row_weights_json(const struct trace_roster *r) {
	json_t *list = json_array();
	for (int i = 0; i < r->n_rows; i++)
		(void)json_array_append_new(list, whole(r->row_weights[i]));
	return list;
}

json_t *trace_vote(const struct trace_roster *r) {
	json_t *line = json_pack("{ss so so so}", "event", "vote", "round", whole(r->round), "attempt", whole(r->attempt),
							 "roster", roster_json(r));
	if (r->n_rows > 1 && line) {
		(void)json_object_set_new(line, "row", json_integer(r->row));
		(void)json_object_set_new(line, "row_weights", row_weights_json(r));
	}
	return line;
}

json_t *trace_apply(const struct trace_applied *a) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(a->chain.b, RV_HASH_BYTES, hex);
	return json_pack("{ss so sb sb sb ss so}", "event", "apply", "round", whole(a->round), "participated",
					 (int)a->participated, "keep", (int)a->keep, "copy", (int)a->copy, "chain", hex, "attempt",
					 whole(a->attempt));
}

json_t *trace_install(uint64_t round) {
	return json_pack("{ss so}", "event", "install", "round", whole(round));
}

json_t *trace_rollback(uint64_t round) {
	return json_pack("{ss so}", "event", "rollback", "round", whole(round));
}

json_t *trace_save(uint64_t round, uint64_t steps) {
	return json_pack("{ss so so}", "event", "save", "round", whole(round), "steps", whole(steps));
}
