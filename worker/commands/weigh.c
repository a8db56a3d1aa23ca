/* weigh.c: `rivulet-worker weigh`: has the worker that runs in a directory measure what one
 * member's contributions did to the last rounds, and prints it: the results on the standard output,
 * how far it is on the standard error. A signal ends the measurement in the worker, too. */
#include "base/clock.h"
#include "base/event.h"
#include "base/round_number.h"
#include "base/signals.h"
#include "worker/commands/commands.h"
#include "worker/local/local_client.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct weigh_options {
	char dir[256];
	int64_t rounds;
	bool json;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct weigh_options, dir), sizeof(((struct weigh_options *)0)->dir),
	 "rivulet-worker", 1, 0, NULL, "Directory of the worker.", "Weigh"},
	{"rounds", RV_OPT_INT, offsetof(struct weigh_options, rounds), 0, "0", 0, 15, NULL,
	 "How many of the last rounds; at most the run's audit-window. 0: all that members keep.", "Weigh"},
	{"json", RV_OPT_BOOL, offsetof(struct weigh_options, json), 0, "no", 0, 0, NULL,
	 "Print it as one JSON object (docs/files.md).", "Weigh"},
	{.name = NULL},
};

static enum rv_err read_member(const char *text, json_int_t *out, struct rv_errtext *et) {
	char *after;
	errno = 0;
	const unsigned long long v = strtoull(text, &after, 10);
	if (text[0] < '0' || text[0] > '9' || *after != '\0' || errno != 0 || v >= UINT32_MAX)
		return rv_fail(et, RV_E_INVALID,
					   "%.40s: must be the number of a member, as `rivulet-coordinator status` lists them", text);
	*out = (json_int_t)v;
	return RV_OK;
}

static bool says_stop(const struct rv_args *args) {
	return strcmp(args->at[0], "stop") == 0;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	json_int_t member;
	(void)opts;
	if (says_stop(args))
		return RV_OK;
	return read_member(args->at[0], &member, et);
}

static double real(const json_t *o, const char *key) {
	return json_number_value(json_object_get(o, key));
}

static void print_round(const json_t *r) {
	const long long round = (long long)round_number((uint64_t)json_integer_value(json_object_get(r, "round")));
	const char *verdict = json_string_value(json_object_get(r, "verdict"));
	const char *why = json_string_value(json_object_get(r, "why"));
	if (!json_object_get(r, "with")) {
		(void)printf(why ? "%7lld  left out: %s\n" : "%7lld  it had no part\n", round, why);
		return;
	}
	(void)printf("%7lld  %.4f    %.4f    %+.4f  %.4f  %s\n", round, real(r, "with"), real(r, "without"),
				 real(r, "difference"), real(r, "error"), verdict ? verdict : "");
}

/* Prints the rounds from *printed on. */
static void print_new(const json_t *weighing, size_t *printed) {
	const json_t *rounds = json_object_get(weighing, "rounds");
	for (; *printed < json_array_size(rounds); (*printed)++) {
		if (*printed == 0)
			(void)printf("  round  with      without  difference      +-  (held-out loss, nats per token)\n");
		print_round(json_array_get(rounds, *printed));
	}
	(void)fflush(stdout);
}

static int count(const json_t *weighing, const char *verdict) {
	const json_t *rounds = json_object_get(weighing, "rounds");
	int n = 0;
	for (size_t i = 0; i < json_array_size(rounds); i++) {
		const char *is = json_string_value(json_object_get(json_array_get(rounds, i), "verdict"));
		n += is && strcmp(is, verdict) == 0;
	}
	return n;
}

static void print_end(const json_t *weighing) {
	const json_t *rounds = json_object_get(weighing, "rounds");
	const int left_out = count(weighing, "left out");
	(void)printf("Member %lld, %zu rounds: better without in %d, better with in %d, no difference in %d",
				 (long long)json_integer_value(json_object_get(weighing, "member")),
				 json_array_size(rounds) - (size_t)(count(weighing, "no part") + left_out),
				 count(weighing, "better without"), count(weighing, "better with"), count(weighing, "no difference"));
	(void)printf(left_out > 0 ? "; %d left out\n" : "\n", left_out);
}

static void print_json(const json_t *weighing) {
	(void)json_dumpf(weighing, stdout, JSON_INDENT(2));
	(void)putchar('\n');
}

/* ---- how far it is ---- */

/* A weighing that is followed. */
struct followed {
	const struct weigh_options *o;
	struct rv_events *events;
	int signals_fd;
	json_int_t ticket;
	size_t printed;
	char state[32];   /* of the last look */
	bool found, over; /* the status has this weighing; which is done */
};

/* Shows how far the phase is: a line that is redrawn on a terminal, an event for each phase
 * otherwise. */
static void show_phase(struct followed *f, const json_t *weighing, const char *state) {
	const uint64_t done = (uint64_t)json_integer_value(json_object_get(weighing, "done")),
				   total = (uint64_t)json_integer_value(json_object_get(weighing, "total"));
	const char *unit = json_string_value(json_object_get(weighing, "unit"));
	const bool measures = strcmp(state, "stepping") == 0 || strcmp(state, "measuring") == 0;
	const char *label = measures ? "measuring" : state;
	if (strcmp(f->state, label) != 0)
		rv_event(f->events, RV_DEBUG, "weighing",
				 RV_FIELDS(rv_field_str("state", label), rv_field_int("done", (int64_t)done),
						   rv_field_int("total", (int64_t)total), rv_field_str("unit", unit ? unit : "")),
				 "%s", label);
	(void)snprintf(f->state, sizeof f->state, "%s", label);
	rv_progress(f->events, rv_clock_monotonic_us(), label, done, total, unit ? unit : "", "");
}

static void show_round(struct rv_events *events, const json_t *r) {
	const char *verdict = json_string_value(json_object_get(r, "verdict"));
	rv_event(events, RV_DEBUG, "weighed",
			 RV_FIELDS(rv_field_int("round", json_integer_value(json_object_get(r, "round"))),
					   rv_field_str("verdict", verdict ? verdict : "")),
			 "%s", verdict ? verdict : "");
}

/* Shows the rounds that are new since the last look. */
static void show_new(struct followed *f, const json_t *weighing) {
	const json_t *rounds = json_object_get(weighing, "rounds");
	if (f->printed == json_array_size(rounds))
		return;
	rv_progress_clear(f->events);
	for (size_t i = f->printed; i < json_array_size(rounds); i++)
		show_round(f->events, json_array_get(rounds, i));
	if (f->o->json)
		f->printed = json_array_size(rounds);
	else
		print_new(weighing, &f->printed);
}

static enum rv_err look(struct followed *f, struct rv_errtext *et) {
	json_t *status;
	RV_TRY(local_client_status(f->o->dir, &status, et));
	const json_t *weighing = json_object_get(status, "weighing");
	const char *state = json_string_value(json_object_get(weighing, "state"));
	const char *fault = json_string_value(json_object_get(weighing, "error"));
	enum rv_err e = RV_OK;
	f->found = state && json_integer_value(json_object_get(weighing, "ticket")) == f->ticket;
	f->over = f->found && strcmp(state, "done") == 0;
	if (f->found) {
		show_new(f, weighing);
		show_phase(f, weighing, state);
	}
	if (f->over || (f->found && fault))
		rv_progress_clear(f->events);
	if (f->over && f->o->json)
		print_json(weighing);
	else if (f->over)
		print_end(weighing);
	if (f->found && fault)
		e = rv_fail(et, RV_E_INVALID, "%s", fault);
	json_decref(status);
	return e;
}

/* Ends the measurement in the worker. */
static enum rv_err stop(const char *dir, json_int_t ticket, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	return local_client_command(dir, json_pack("{s:s, s:I}", "command", "weigh-stop", "ticket", ticket), text, et);
}

/* Waits for the next look. RV_E_CANCELLED: a signal came, and the worker was asked to stop. */
static enum rv_err wait_for_look(struct followed *f, struct rv_errtext *et) {
	enum { LOOK_MS = 300 };
	char text[LOCAL_TEXT_BYTES];
	struct pollfd fd = {.fd = f->signals_fd, .events = POLLIN};
	(void)poll(&fd, 1, LOOK_MS);
	if (!rv_signals_take(f->signals_fd))
		return RV_OK;
	rv_progress_clear(f->events);
	const enum rv_err e = stop(f->o->dir, f->ticket, text, et);
	return e == RV_OK || e == RV_E_INVALID ? rv_fail(et, RV_E_CANCELLED, "stopped; the worker weighs no longer") : e;
}

/* Waits for the end. The status is published once a second: one without this weighing is older for
 * a while, then that of a worker that has begun anew. */
static enum rv_err follow(struct followed *f, struct rv_errtext *et) {
	enum { GONE_S = 30 };
	int64_t found_us = rv_clock_monotonic_us();
	while (!f->over) {
		RV_TRY(wait_for_look(f, et));
		RV_TRY(look(f, et));
		const int64_t now_us = rv_clock_monotonic_us();
		if (f->found)
			found_us = now_us;
		else if (now_us - found_us > GONE_S * RV_US_PER_S)
			return rv_fail(et, RV_E_CANCELLED,
						   "the worker in %s has begun anew, or weighs for somebody else: ask again", f->o->dir);
	}
	return RV_OK;
}

static enum rv_err begin(struct followed *f, const char *member_text, struct rv_errtext *et) {
	char text[LOCAL_TEXT_BYTES];
	json_int_t member;
	RV_TRY(read_member(member_text, &member, et));
	f->ticket = rv_clock_wall_us();
	RV_TRY(local_client_command(f->o->dir,
								json_pack("{s:s, s:I, s:I, s:I}", "command", "weigh", "member", member, "rounds",
										  (json_int_t)f->o->rounds, "ticket", f->ticket),
								text, et));
	rv_event(f->events, RV_INFO, "weighing_begins", RV_FIELDS(rv_field_int("member", member)),
			 "%s Ctrl-C ends the measurement", text);
	return RV_OK;
}

static enum rv_err weigh(const struct weigh_options *o, const char *member, struct rv_errtext *et) {
	const bool json = !isatty(STDERR_FILENO);
	const struct rv_events_config cfg = {.out = stderr, .json = json, .level = json ? RV_DEBUG : RV_INFO};
	struct followed f = {.o = o, .signals_fd = -1};
	RV_TRY(rv_events_new(&cfg, &f.events, et));
	enum rv_err e = rv_signals_open(&f.signals_fd, et);
	if (e == RV_OK) {
		e = begin(&f, member, et);
		if (e == RV_OK)
			e = follow(&f, et);
		rv_signals_close(f.signals_fd);
	}
	rv_events_free(f.events);
	return e;
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct weigh_options *o = opts;
	char text[LOCAL_TEXT_BYTES];
	if (!says_stop(args))
		return weigh(o, args->at[0], et);
	RV_TRY(stop(o->dir, 0, text, et));
	(void)printf("%s\n", text);
	return RV_OK;
}

const struct rv_command worker_weigh_command = {
	.name = "weigh",
	.synopsis = "MEMBER | stop",
	.args_min = 1,
	.args_max = 1,
	.help = "Measures what one member's contributions did to the last rounds: the held-out loss with and without it.",
	.details =
		"For a member in doubt. The worker that runs in --dir fetches what all members contributed, checks it against\n"
		"what they committed to, averages it by the run's rule with and without that member, takes the outer step of\n"
		"each, and evaluates both between its own inner steps, in a quarter of its time at most. A difference counts\n"
		"that is more than two standard errors and 0.5 % of the loss. A round is left out, with the reason, if a "
		"member\n"
		"does not give its contribution to it. Ctrl-C ends the measurement; so does `rivulet-worker weigh stop` if "
		"this\n"
		"command was killed. `rivulet-worker status --json` shows the results, too.\n",
	.options = options,
	.opts_bytes = sizeof(struct weigh_options),
	.check = check,
	.run = run,
};
