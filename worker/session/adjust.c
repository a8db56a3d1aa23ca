/* adjust.c: settings that change while the worker runs (`rivulet-worker set`): checked, applied and
 * kept. What the parts that run cannot take over restarts the session within the process, as a
 * rollback does: it saves, and goes on with the new settings. */
#include "worker/session/internal.h"

#include "kernels/gate.h"
#include "worker/options/settings.h"

#include <stdio.h>
#include <string.h>

/* ---- how each option is taken over ---- */

enum taken { TAKEN_AT_ONCE, TAKEN_BY_RESTART, TAKEN_NEXT_TIME, TAKEN_WAYS };
enum { NAMES_BYTES = 64 };

static bool is_one_of(const char *name, const char *const *list) {
	for (; *list; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/* Returns how `name` is taken over. More threads than run need memory of their own. */
static enum taken taken(const struct session *s, const struct worker_options *now, const char *name) {
	static const char *const at_once[] = {"max-up",
										  "max-down",
										  "max-donate",
										  "max-per-day",
										  "max-per-month",
										  "hours",
										  "only-idle",
										  "on-battery",
										  "on-metered",
										  "priority",
										  "cpu-share",
										  "max-cpu-temp",
										  "max-gpu-temp",
										  "gpu-share",
										  "free-memory-after",
										  "free-gpu-memory-after",
										  NULL};
	static const char *const next_time[] = {"local-port", "log-file", NULL};
	if (is_one_of(name, next_time))
		return TAKEN_NEXT_TIME;
	const bool fewer_threads = strcmp(name, "threads") == 0 && now->threads > 0 &&
							   (s->local->threads == 0 || now->threads <= s->local->threads);
	return fewer_threads || is_one_of(name, at_once) ? TAKEN_AT_ONCE : TAKEN_BY_RESTART;
}

/* ---- taking them over ---- */

/* Applies the caps of the line. The session is up. The faults of peers_set_caps. */
static enum rv_err session_apply_line(struct session *s, struct rv_errtext *et) {
	const struct worker_options *o = s->opt;
	const int64_t now_us = rv_clock_monotonic_us();
	s->donate_cap = rate_of(o->max_donate, now_us);
	if (s->text)
		text_set_most(s->text, session_text_most(o));
	return peers_set_caps(meshlink_peers(s->mesh), now_us, o->max_up, o->max_down, et);
}

static enum rv_err take_over(struct session *s, struct rv_errtext *et) {
	session_apply_limits(s);
	session_allowed_changed(s);
	if (!session_is_up(s))
		return RV_OK;
	RV_TRY(session_apply_line(s, et));
	session_core_report_soon(s->core); /* the others divide the chunks by what its line may carry */
	return RV_OK;
}

static void restart(struct session *s) {
	if (!session_is_up(s) || s->signals.asked)
		return;
	s->restarts = true;
	gate_hold(false);
	session_core_stop(s->core, rv_clock_monotonic_us());
}

/* The options that change. */
struct changes {
	bool some[TAKEN_WAYS];       /* some are taken over in this way */
	char next_time[NAMES_BYTES]; /* "local-port, log-file" */
};

static void note_change(struct changes *c, const char *name, enum taken how) {
	const size_t n = strlen(c->next_time);
	c->some[how] = true;
	if (how == TAKEN_NEXT_TIME)
		(void)snprintf(c->next_time + n, sizeof c->next_time - n, "%s%s", n > 0 ? ", " : "", name);
}

/* Sets all of them in `o`. */
static enum rv_err set_all(struct session *s, const json_t *options, struct worker_options *o, struct changes *c,
						   struct rv_errtext *et) {
	const char *name;
	json_t *value;
	*c = (struct changes){.next_time = ""};
	json_object_foreach((json_t *)options, name, value) {
		const char *text = json_string_value(value);
		if (!text)
			return rv_fail(et, RV_E_INVALID, "%.60s: its value must be a text", name);
		RV_TRY(settings_set(o, name, text, et));
		if (!settings_same(o, s->opt, name))
			note_change(c, name, taken(s, o, name));
	}
	return worker_options_check(o, &(struct rv_args){.n = 0}, et);
}

static enum rv_err adjust(struct session *s, const json_t *options, struct changes *c, struct rv_errtext *et) {
	struct worker_options *now = &s->local->options, before = *now, wanted = *now;
	RV_TRY(set_all(s, options, &wanted, c, et));
	*now = wanted;
	enum rv_err e = session_check_settings(s, et);
	if (e == RV_OK)
		e = settings_store(now, et);
	if (e == RV_OK)
		return take_over(s, et);
	*now = before;
	return e;
}

/* Says for each way of taking options over when they are in force. */
static void tell_when(const struct changes *c, char *text, size_t cap) {
	const bool now = c->some[TAKEN_AT_ONCE] || !c->next_time[0];
	const char *when = c->some[TAKEN_BY_RESTART] ? "Kept. It saves, and goes on with it in a moment."
					   : now                     ? "In force now, and kept."
												 : "Kept.";
	const int n = snprintf(text, cap, "%s", when);
	if (c->next_time[0] && (size_t)n < cap)
		(void)snprintf(text + n, cap - (size_t)n, " In force when the worker is started again: %s.", c->next_time);
}

enum rv_err session_set_options(struct session *s, const json_t *options, char *text, size_t cap,
								struct rv_errtext *et) {
	struct changes changes;
	if (!json_is_object(options) || json_object_size(options) == 0)
		return rv_fail(et, RV_E_INVALID, "set: needs options and their values, such as max-up=5mbit");
	RV_TRY(adjust(s, options, &changes, et));
	rv_event(s->events, RV_DEBUG, "set", RV_FIELDS(rv_field_int("options", (int64_t)json_object_size(options))),
			 "%zu setting%s changed", json_object_size(options), json_object_size(options) == 1 ? "" : "s");
	if (changes.some[TAKEN_BY_RESTART])
		restart(s);
	tell_when(&changes, text, cap);
	return RV_OK;
}
