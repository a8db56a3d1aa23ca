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
		out->members[i].codec = d->members[i].codec;
		out->members[i].part = d->members[i].part;
	}
}

/* Returns true if the mean of chunk c, which this row's document gives to one of its members, is
 * encoded in this row: the rule of net/reduce/grid.h. */
static bool is_final_here(const struct document *d, uint32_t c) {
	uint32_t alive = 0, at;
	if (d->n_rows <= 1 || d->row_weights[c % d->n_rows] > 0)
		return d->n_rows <= 1 || c % d->n_rows == d->row;
	for (int row = 0; row < d->n_rows; row++)
		alive += d->row_weights[row] > 0;
	at = c / d->n_rows % alive;
	for (int row = 0; row < d->row; row++)
		at -= d->row_weights[row] > 0;
	return at == 0;
}

/* Adds chunk c, joined to the last range when it continues it. */
static void add_chunk(struct trace_owns *o, uint32_t c) {
	struct trace_range *last = o->n > 0 ? &o->ranges[o->n - 1] : NULL;
	if (last && last->first + last->count == c)
		last->count++;
	else if (o->n < NET_MAX_RANGES)
		o->ranges[o->n++] = (struct trace_range){.first = c, .count = 1};
}

void trace_owns_of(const struct document *d, uint32_t member, struct trace_range room[static NET_MAX_RANGES],
				   struct trace_owns *out) {
	*out = (struct trace_owns){.round = d->round, .attempt = d->attempt, .ranges = room};
	for (int i = 0; i < d->n_ranges; i++) {
		const struct owner_range *r = &d->ranges[i];
		for (uint32_t c = r->first; d->members[r->owner].member == member && c < r->first + r->count; c++)
			if (is_final_here(d, c))
				add_chunk(out, c);
	}
}

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

json_t *trace_start(const struct trace_started *s) {
	return json_pack(
		"{ss si so so so sb sb so so si si si ss ss sb si ss so so so}", "event", "start", "version", TRACE_VERSION,
		"member", whole(s->member), "boot", whole(s->boot), "round", whole(s->round), "saved", (int)s->saved, "exact",
		(int)s->exact, "saved_round", whole(s->saved_round), "saved_steps", whole(s->saved_steps), "threads",
		s->threads, "micro_batch", s->savings.micro_batch, "logits_rows", s->savings.logits_rows, "recompute",
		recompute_name(s->savings.recompute), "moments", moments_name(s->savings.moments), "offload",
		(int)s->savings.offload, "zero", 1 + (int)s->savings.zero, "dtype", s->dtype, "device",
		s->device ? json_string(s->device) : json_null(), "program", json_sprintf("rivulet %s", rv_version()), "data",
		s->data && s->data[0] ? json_string(s->data) : json_null());
}

static json_t *reads_json(const struct reading *reads) {
	json_t *list = json_array();
	for (int i = 0; i < reads->n; i++)
		(void)json_array_append_new(list,
									json_pack("[o o]", whole(reads->pieces[i].begin), whole(reads->pieces[i].count)));
	return list;
}

json_t *trace_train(uint64_t round, uint64_t from, uint64_t to, const struct reading *reads) {
	json_t *line =
		json_pack("{ss so so so}", "event", "train", "round", whole(round), "from", whole(from), "to", whole(to));
	if (line && reads)
		(void)json_object_set_new(line, "reads", reads_json(reads));
	return line;
}

json_t *trace_start_over(uint64_t round) {
	return json_pack("{ss so}", "event", "start_over", "round", whole(round));
}

json_t *trace_encode(uint64_t round, uint64_t boot, bool ok, bool copy) {
	return json_pack("{ss so so sb sb}", "event", "encode", "round", whole(round), "boot", whole(boot), "ok", (int)ok,
					 "copy", (int)copy);
}

static json_t *roster_json(const struct trace_roster *r) {
	json_t *list = json_array();
	for (int i = 0; i < r->n; i++) {
		json_t *one = json_pack("{so so so}", "member", whole(r->members[i].member), "weight",
								whole(r->members[i].weight), "boot", whole(r->members[i].boot));
		if (r->members[i].codec != 0)
			(void)json_object_set_new(one, "codec", whole(r->members[i].codec));
		if (r->members[i].part != 0)
			(void)json_object_set_new(one, "part", whole(r->members[i].part));
		(void)json_array_append_new(list, one);
	}
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

json_t *trace_owned(const struct trace_owns *o) {
	json_t *list = json_array();
	for (int i = 0; i < o->n; i++)
		(void)json_array_append_new(list, json_pack("[o o]", whole(o->ranges[i].first), whole(o->ranges[i].count)));
	return json_pack("{ss so so sb so}", "event", "owns", "round", whole(o->round), "attempt", whole(o->attempt),
					 "residual", (int)o->residual, "chunks", list);
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
