/* weigh_results.c: what a weighing has shown: in the status, and in the log. */
#include "worker/audit/gather.h"

#include "base/round_number.h"
#include "worker/session/weigh.h"

#include <inttypes.h>
#include <jansson.h>

static const char *phase_name(enum weigh_phase phase) {
	static const char *const names[] = {"idle", "preparing", "fetching", "stepping", "measuring", "done", "failed"};
	return names[phase];
}

static json_t *round_json(const struct weigh_round *r) {
	const struct weighed *f = &r->found;
	if (!r->has_part)
		return json_pack("{s:I, s:s}", "round", (json_int_t)r->round, "verdict", "no part");
	if (r->left_out)
		return json_pack("{s:I, s:s, s:s}", "round", (json_int_t)r->round, "verdict", "left out", "why", r->why.text);
	return json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:I}", "round", (json_int_t)r->round, "verdict",
					 weighing_verdict_name(f->verdict), "with", f->with, "without", f->without, "difference",
					 f->difference, "error", f->error, "sequences", (json_int_t)f->sequences);
}

static json_t *rounds_json(const struct session_weigh *w) {
	json_t *rounds = json_array();
	for (int i = 0; i < w->n; i++)
		if (w->rounds[i].measured)
			(void)json_array_append_new(rounds, round_json(&w->rounds[i]));
	return rounds;
}

/* Adds how far the phase under way is, where that is known. */
static void add_progress(json_t *o, const struct session *s) {
	const struct session_weigh *w = s->weigh;
	const bool fetches = w->phase == WEIGH_FETCHING;
	const uint64_t both = 2 * weigh_sequences(s);
	uint64_t done = 0, total = 0;
	if (!fetches && w->phase != WEIGH_MEASURING && w->phase != WEIGH_STEPPING)
		return;
	for (int i = 0; i < w->n; i++) {
		const struct weigh_round *r = &w->rounds[i];
		const uint64_t of_round = fetches ? r->roster.n_chunks : both;
		total += weigh_counts(r) ? of_round : 0;
		done += weigh_counts(r) && i < w->at ? of_round : 0;
	}
	if (fetches)
		done += gather_chunks_done(w->gather);
	else if (w->phase == WEIGH_MEASURING)
		done += (w->measures_without ? both / 2 : 0) + w->done;
	(void)json_object_set_new(o, "done", json_integer((json_int_t)(done < total ? done : total)));
	(void)json_object_set_new(o, "total", json_integer((json_int_t)total));
	(void)json_object_set_new(o, "unit", json_string(fetches ? "chunk" : "sequence"));
}

json_t *session_weigh_json(const struct session *s) {
	const struct session_weigh *w = s->weigh;
	if (!w || w->phase == WEIGH_IDLE)
		return NULL;
	json_t *o = json_pack("{s:I, s:I, s:I, s:s, s:o}", "ticket", (json_int_t)w->ticket, "member", (json_int_t)w->member,
						  "asked_rounds", (json_int_t)w->n, "state", phase_name(w->phase), "rounds", rounds_json(w));
	if (o)
		add_progress(o, s);
	if (o && w->phase == WEIGH_FAILED)
		(void)json_object_set_new(o, "error", json_string(w->why.text));
	return o;
}

void weigh_log_round(struct session *s, const struct weigh_round *r) {
	const struct weighed *f = &r->found;
	rv_event(s->events, RV_INFO, "weighed",
			 RV_FIELDS(rv_field_int("round", (int64_t)r->round), rv_field_int("member", s->weigh->member),
					   rv_field_double("with", f->with), rv_field_double("without", f->without),
					   rv_field_double("difference", f->difference), rv_field_double("error", f->error),
					   rv_field_int("sequences", (int64_t)f->sequences),
					   rv_field_str("verdict", weighing_verdict_name(f->verdict))),
			 "round %" PRIu64 ": held-out loss %.4f with member %u, %.4f without it: %+.4f +- %.4f, %s",
			 round_number(r->round), f->with, s->weigh->member, f->without, f->difference, f->error,
			 weighing_verdict_name(f->verdict));
}

void weigh_log_left_out(struct session *s, const struct weigh_round *r) {
	rv_event(s->events, RV_WARN, "weigh_left_out",
			 RV_FIELDS(rv_field_int("round", (int64_t)r->round), rv_field_int("member", s->weigh->member)),
			 "round %" PRIu64 " is left out of the weighing of member %u: %s", round_number(r->round), s->weigh->member,
			 r->why.text);
}

void weigh_log_failed(struct session *s) {
	const struct session_weigh *w = s->weigh;
	rv_event(s->events, w->stopped ? RV_INFO : RV_WARN, "weigh_failed",
			 RV_FIELDS(rv_field_int("member", w->member), rv_field_str("error", rv_err_name(w->err))),
			 "member %u is not weighed: %s", w->member, w->why.text);
}
