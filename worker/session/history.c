/* history.c: what this worker has given to the run, and whether the last round counted it. */
#include "worker/session/internal.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- from earlier processes ---- */

static uint64_t whole(const json_t *line, const char *field) {
	const json_int_t v = json_integer_value(json_object_get(line, field));
	return v > 0 ? (uint64_t)v : 0;
}

static void add_to(struct loss_curve *c, const json_t *line, const char *field) {
	const json_t *loss = json_object_get(line, field);
	loss_curve_add(c, whole(line, "round"), json_is_number(loss) ? json_number_value(loss) : NAN);
}

static void take_line(void *ctx, const json_t *line) {
	struct session *s = ctx;
	const char *kind = json_string_value(json_object_get(line, "kind"));
	if (!kind)
		return;
	if (strcmp(kind, "round") == 0) {
		s->sums.bytes_donated_before = whole(line, "bytes_donated");
		s->sums.given_rounds = whole(line, "given_rounds");
		s->sums.given_tokens = whole(line, "given_tokens");
		add_to(&s->history.training, line, "train_loss");
	} else if (strcmp(kind, "eval") == 0) {
		add_to(&s->history.heldout, line, "loss");
	} else if (strcmp(kind, "rollback") == 0) {
		loss_curve_rewind(&s->history.training, whole(line, "round"));
		loss_curve_rewind(&s->history.heldout, whole(line, "round"));
	}
}

void session_load_history(struct session *s) {
	char path[SESSION_PATH_BYTES];
	struct rv_errtext et = {0};
	if (s->history.is_loaded)
		return;
	s->history.is_loaded = true;
	snprintf(path, sizeof path, "%s/" METRICS_FILE, s->opt->dir);
	enum rv_err e = metrics_each(path, take_line, s, &et);
	if (e != RV_OK)
		rv_event(s->events, RV_WARN, "metrics", RV_FIELDS(rv_field_str("error", rv_err_name(e))), "%s", et.text);
}

/* ---- in this process ---- */

/* Returns why the round was made without this worker. */
static const char *reason(const struct session *s) {
	if (s->history.notice[0])
		return s->history.notice;
	if (s->history.was_paused)
		return "this worker was paused";
	if (session_core_applying(s->core).attempt == 0)
		return "the round was over before this worker was ready: it fetched the result from others";
	if (s->sums.own_weight == 0)
		return "the round began, or went on, without this worker: it was not ready in time, or others did not reach it";
	return "the others did not get this worker's part in time";
}

static void smooth_time(struct session_history *h, int64_t now_us) {
	enum { OF = 8 };
	const double took_us = (double)(now_us - h->wall_us);
	if (h->has_round && took_us > 0)
		h->round_us = h->round_us > 0 ? h->round_us + (took_us - h->round_us) / OF : took_us;
}

void session_note_round(struct session *s, uint64_t round, double loss) {
	struct session_history *h = &s->history;
	const int64_t now_us = rv_clock_wall_us();
	smooth_time(h, now_us);
	h->counted = session_core_applying(s->core).participated;
	snprintf(h->why_not, sizeof h->why_not, "%s", h->counted ? "" : reason(s));
	h->was_paused = h->was_paused && !h->counted;
	h->has_round = true;
	h->round = round;
	h->wall_us = now_us;
	loss_curve_add(&h->training, round + 1, loss);
}

void session_note_not_counted(struct session *s, const char *why) {
	snprintf(s->history.notice, sizeof s->history.notice, "%s", why ? why : "");
}

/* ---- the held-out loss ---- */

void session_note_measured(struct session *s, uint64_t round, double loss) {
	loss_curve_add(&s->history.heldout, round, loss);
	if (!isfinite(loss))
		return;
	s->history.measured_round = round;
	s->history.measured = loss;
	session_core_report_soon(s->core);
}

void session_on_heldout(void *ctx, const char *text) {
	struct session *s = ctx;
	struct loss_curve *own = &s->history.heldout, told;
	struct rv_errtext et;
	if (loss_curve_parse(text, &told, &et) != RV_OK)
		rv_event(s->events, RV_DEBUG, "heldout", RV_NO_FIELDS, "the coordinator's held-out losses are not shown: %s",
				 et.text);
	else if (told.seen > 0 && (own->seen == 0 || told.last.round > own->last.round))
		*own = told;
}

void session_ask_heldout(struct session *s, int64_t now_us) {
	enum { LEAST_US = 10 * RV_US_PER_S };
	struct session_history *h = &s->history;
	const uint64_t round = session_is_up(s) ? round_round(session_round(s)) : 0;
	const bool is_fresh = h->has_asked && (h->asked_round == round || now_us - h->asked_us < LEAST_US);
	if (!s->local->server || is_fresh)
		return;
	h->has_asked = true;
	h->asked_us = now_us;
	h->asked_round = round;
	control_client_ask_heldout(s->control);
}
