/* local.c: the worker's page and the commands of the person who runs it (worker/local/). */
#include "worker/session/internal.h"

#include "worker/local/local_commands.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#define PUBLISH_EVERY_US RV_US_PER_S

/* ---- commands ---- */

static enum rv_err take_pause(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	struct session *s = ctx;
	const json_t *seconds = json_object_get(request, "seconds");
	if (seconds && (!json_is_integer(seconds) || json_integer_value(seconds) < 1))
		return rv_fail(et, RV_E_INVALID, "pause: \"seconds\" must be a whole number from 1 on");
	const int64_t lasts_s = seconds ? json_integer_value(seconds) : ALLOW_FOREVER;
	session_wish(s, lasts_s);
	(void)snprintf(text, LOCAL_TEXT_BYTES,
				   seconds ? "Paused. It goes on by itself when the time is over." : "Paused, until you resume it.");
	return RV_OK;
}

static enum rv_err take_resume(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	struct session *s = ctx;
	struct session_allowed *a = &s->local->allowed;
	(void)request, (void)et;
	session_wish(s, 0);
	if (a->core.why == ALLOW_WORKS)
		(void)snprintf(text, LOCAL_TEXT_BYTES, "Going on; it takes part in the next round.");
	else
		(void)snprintf(text, LOCAL_TEXT_BYTES, "Your pause is over, but another one is not: %s",
					   allow_why_text(a->core.why));
	return RV_OK;
}

static enum rv_err take_finish(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	struct session *s = ctx;
	(void)request, (void)et;
	const bool waits = session_is_up(s) && !session_core_is_paused(s->core);
	session_finish_round(s, rv_clock_monotonic_us(), INT64_MAX);
	(void)snprintf(text, LOCAL_TEXT_BYTES, waits ? "It ends after this round; Ctrl-C ends it sooner." : "It ends now.");
	return RV_OK;
}

static enum rv_err take_leave(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	struct session *s = ctx;
	(void)request, (void)et;
	session_stop(s, rv_clock_monotonic_us());
	(void)snprintf(text, LOCAL_TEXT_BYTES, "It leaves the run, and ends.");
	return RV_OK;
}

static enum rv_err take_set(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	return session_set_options(ctx, json_object_get(request, "options"), text, LOCAL_TEXT_BYTES, et);
}

static enum rv_err take_weigh(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et) {
	const json_t *member = json_object_get(request, "member"), *rounds = json_object_get(request, "rounds");
	const json_int_t m = json_is_integer(member) ? json_integer_value(member) : -1;
	const json_int_t ticket = json_integer_value(json_object_get(request, "ticket")), n = json_integer_value(rounds);
	if (m < 0 || m >= NET_NO_MEMBER)
		return rv_fail(et, RV_E_INVALID, "weigh: \"member\" must be the number of one");
	if ((rounds && !json_is_integer(rounds)) || n < 0 || ticket < 0)
		return rv_fail(et, RV_E_INVALID, "weigh: \"rounds\" and \"ticket\" must be whole numbers from 0 on");
	RV_TRY(session_weigh_member(ctx, (uint32_t)m, (uint64_t)n, (uint64_t)ticket, et));
	(void)snprintf(text, LOCAL_TEXT_BYTES, "Weighing member %u beside training; the status has the results.",
				   (unsigned)m);
	return RV_OK;
}

static enum rv_err take_weigh_stop(void *ctx, const json_t *request, char text[LOCAL_TEXT_BYTES],
								   struct rv_errtext *et) {
	const json_int_t ticket = json_integer_value(json_object_get(request, "ticket"));
	if (ticket < 0)
		return rv_fail(et, RV_E_INVALID, "weigh-stop: \"ticket\" must be a whole number from 0 on");
	RV_TRY(session_weigh_stop(ctx, (uint64_t)ticket, et));
	(void)snprintf(text, LOCAL_TEXT_BYTES, "It weighs no longer; what it has measured stays in the status.");
	return RV_OK;
}

/* ended by name == NULL */
static const struct local_command commands[] = {
	{"pause", take_pause}, {"resume", take_resume}, {"finish", take_finish},         {"leave", take_leave},
	{"set", take_set},     {"weigh", take_weigh},   {"weigh-stop", take_weigh_stop}, {.name = NULL},
};

/* Tells where the page is: on a terminal the address with the token, in a log without, since others
 * may read it. */
static void log_place(struct session *s) {
	char url[LOCAL_URL_BYTES];
	local_server_url(s->local->server, url);
	rv_event_in_log(s->events, RV_INFO, "local", RV_FIELDS(rv_field_str("file", LOCAL_FILE)),
					"`rivulet-worker status --dir %s` prints the address of this worker's page", s->opt->dir);
	if (isatty(STDOUT_FILENO))
		(void)printf("Watch it at %s\n", url);
}

void session_open_local(struct session *s) {
	struct rv_errtext et = {0};
	if (s->local->server || s->opt->local_port < 0)
		return;
	enum rv_err e = local_server_new(s->opt->dir, (uint16_t)s->opt->local_port, &s->local->server, &et);
	if (e == RV_OK)
		log_place(s);
	else
		rv_event(s->events, RV_WARN, "local", RV_FIELDS(rv_field_str("error", rv_err_name(e))),
				 "no page, and no answer to `rivulet-worker status`: %s", et.text);
}

void session_close_local(struct session_local *l) {
	local_server_free(l->server);
	l->server = NULL;
}

int session_local_fd(const struct session *s) {
	return s->local->server ? mailbox_owner_fd(local_server_mailbox(s->local->server)) : -1;
}

int64_t session_local_deadline_us(const struct session *s) {
	return s->local->server ? s->publish_us : INT64_MAX;
}

/* Lists what the page may offer. */
static json_t *command_names(void) {
	json_t *names = json_array();
	for (const struct local_command *c = commands; c->name; c++)
		(void)json_array_append_new(names, json_string(c->name));
	return names;
}

static json_t *status_with_commands(struct session *s, int64_t now_us) {
	json_t *status = session_status(s, now_us);
	(void)json_object_set_new(status, "commands", command_names());
	if (session_is_up(s))
		(void)json_object_set_new(status, "sample", session_plan_samples(s));
	return status;
}

static void publish(void *ctx) {
	struct session *s = ctx;
	const int64_t now_us = rv_clock_monotonic_us();
	s->publish_us = now_us + PUBLISH_EVERY_US;
	local_server_publish(s->local->server, status_with_commands(s, now_us));
}

void session_serve_local(struct session *s, int64_t now_us) {
	if (!s->local->server)
		return;
	local_commands_serve(local_server_mailbox(s->local->server), commands, s, publish);
	if (now_us >= s->publish_us)
		publish(s);
}
