/* join.c: everything before a worker is a member, in the order in which a mistake costs least: its
 * options, its directory, its text, its port; then the run's configuration, which is public, and
 * its demands (preflight.c); then how others reach it (reach_test.c). Only then is the invite
 * spent. */
#include "worker/session/internal.h"

#include "base/failpoint.h"
#include "base/file.h"
#include "worker/options/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAITING_TOLD_EVERY_US (10 * 60 * RV_US_PER_S)

/* ---- the coordinator's answers ---- */

/* Makes a request without what the person has not agreed to give yet: name and software. */
static struct join_request bare_request(const struct session *s) {
	struct join_request rq = {
		.protocol = control_version(), .protocol_min = CONTROL_VERSION_MIN, .has_token = s->member.invite.has_token};
	memcpy(rq.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	memcpy(rq.token, s->member.invite.token, NET_TOKEN_BYTES);
	return rq;
}

void session_send_join(struct session *s) {
	struct join_request rq = bare_request(s);
	snprintf(rq.name, sizeof rq.name, "%s", s->opt->name); /* "": the run calls it by its number */
	snprintf(s->member.name, sizeof s->member.name, "%s", rq.name);
	snprintf(rq.software, sizeof rq.software, "rivulet %s", RV_VERSION);
	RV_FAILPOINT("join.before");
	control_client_join(s->control, &rq);
}

/* Checks the run's configuration. */
static enum rv_err check_config(struct session *s, const char *text, struct rv_errtext *et) {
	struct run_config run;
	enum rv_err e = run_config_parse(&run, "the run's configuration", text, et);
	if (e != RV_OK)
		return rv_fail_context(
			et, e,
			"this program cannot take part in the run; if it is older than the coordinator's, update "
			"it. What it does not know");
	run_about_read(text, &s->about);
	RV_TRY(session_preflight(s, &run, et));
	RV_TRY(session_ask_consent(s, &run, text, et));
	s->member.agreed = rv_run_hash(s->member.invite.run_id, run_about_skip(text));
	return RV_OK;
}

static void on_config(void *ctx, const char *text) {
	struct session *s = ctx;
	struct rv_errtext et = {0};
	enum rv_err e = check_config(s, text, &et);
	if (e == RV_OK)
		e = settings_store(s->opt, &et);
	if (e != RV_OK)
		session_fail(s, e, et.text);
	else if (!session_test_reach(s, rv_clock_monotonic_us()))
		session_send_join(s);
}

static void on_joined(void *ctx, const struct join_reply *reply) {
	struct session *s = ctx;
	struct rv_errtext et = {0};
	const bool was_member = s->member.joined;
	RV_FAILPOINT("join.answered");
	session_follow_serving_key(s);
	enum rv_err e = membership_join(s->opt->dir, &s->member, reply, &et);
	if (e != RV_OK) {
		session_fail(s, e, et.text);
		return;
	}
	RV_FAILPOINT("join.stored");
	if (was_member) {
		session_take_ticket(s);
		return;
	}
	s->joined_now = true;
	rv_event(s->events, RV_INFO, "joined", RV_FIELDS(rv_field_int("member", reply->member)),
			 "joined the run as member %u", reply->member);
}

/* Logs what the join waits for, when that changes, and every 10 minutes. */
static void on_waiting(void *ctx, const char *text) {
	struct session *s = ctx;
	const int64_t now_us = rv_clock_monotonic_us();
	if (strcmp(s->waits_for, text) == 0 && now_us - s->waits_told_us < WAITING_TOLD_EVERY_US)
		return;
	s->waits_told_us = now_us;
	snprintf(s->waits_for, sizeof s->waits_for, "%s", text);
	rv_event(s->events, RV_WARN, "waiting", RV_FIELDS(rv_field_str("text", text)),
			 "not a member yet: %s. Tell it to the operator; this worker waits, and asks every few seconds", text);
}

/* A worker that waited, as it was asked to, has nothing to be blamed for when the run ends. */
static void on_refused(void *ctx, enum rv_err e, const char *text) {
	struct session *s = ctx;
	if (e != RV_E_OVER || s->waits_for[0] == '\0') {
		session_fail(s, e, text);
		return;
	}
	rv_event(s->events, RV_INFO, "over", RV_NO_FIELDS, "%s. This worker was not a member yet, and ends", text);
	s->over = true;
}

static void on_away(void *ctx, bool away, const char *text) {
	struct session *s = ctx;
	char address[NET_ADDR_BYTES] = "";
	s->is_away = away;
	if (session_is_up(s))
		session_core_on_away(s->core, rv_clock_monotonic_us(), away);
	(void)address_format(&s->member.invite.coordinator, address);
	bool over =
		session_is_up(s) && (session_core_phase(s->core) == SESSION_EXPORTING || session_core_exported(s->core));
	if (over) /* the run is done: it may have ended before this worker */
		rv_event(s->events, RV_INFO, away ? "coordinator_away" : "coordinator_back",
				 RV_FIELDS(rv_field_str("text", text)), "the coordinator %s; the run is done and no longer needs it",
				 away ? "has ended" : "answers again");
	else if (away && !s->member.joined)
		rv_event(s->events, RV_WARN, "coordinator_away", RV_FIELDS(rv_field_str("text", text)),
				 "cannot join yet: the coordinator at %s does not answer (%s). Retrying. Is it running, and can this "
				 "machine "
				 "reach the link's address?",
				 address, text);
	else if (away)
		rv_event(s->events, RV_WARN, "coordinator_away", RV_FIELDS(rv_field_str("text", text)),
				 "the coordinator does not answer (%s): going on without it and retrying", text);
	else
		rv_event(s->events, RV_INFO, "coordinator_back", RV_NO_FIELDS, "the coordinator answers again");
	if (!away)
		session_coordinator_back(s);
}

/* ---- opening ---- */

static enum rv_err open_events(struct session *s, struct rv_errtext *et) {
	const bool json = !isatty(STDOUT_FILENO);
	const struct rv_events_config cfg = {.out = stdout,
										 .json = json,
										 .level = json || s->opt->verbose ? RV_DEBUG : RV_INFO,
										 .log_path = s->local->log_file[0] ? s->local->log_file : NULL};
	return rv_events_new(&cfg, &s->events, et);
}

static enum rv_err open_control(struct session *s, struct rv_errtext *et) {
	struct http_client_config cfg = {
		.server = s->member.invite.coordinator, .trust = s->member.trust, .identity = &s->member.identity};
	RV_TRY(http_client_new(&cfg, &s->http, et));
	struct control_client_owner owner = {.ctx = s,
										 .on_config = on_config,
										 .on_joined = on_joined,
										 .on_waiting = on_waiting,
										 .on_document = session_on_document,
										 .on_older = session_on_older,
										 .on_notice = session_on_notice,
										 .on_pairs = session_on_pairs,
										 .on_probes = session_on_probes,
										 .on_reach = session_on_reach,
										 .on_refused = on_refused,
										 .on_away = on_away,
										 .on_heldout = session_on_heldout};
	return control_client_new(s->http, (uint64_t)rv_clock_wall_us(), &owner, &s->control, et);
}

static void log_name(struct session *s) {
	if (s->opt->name[0] && s->member.name[0] && strcmp(s->opt->name, s->member.name) != 0)
		rv_event(s->events, RV_WARN, "name", RV_FIELDS(rv_field_str("known_as", s->member.name)),
				 "the run knows this worker as %s since it joined; --name %s only names its metrics from now on",
				 s->member.name, s->opt->name);
}

/* Logs what the system enforces of the sandbox; on a terminal only what it does not. */
static void log_sandbox(struct session *s) {
	const struct os_sandbox *b = &s->opt->sandboxed;
	const bool whole = b->files && b->calls;
	if (s->opt->sandbox)
		rv_event(s->events, whole ? RV_DEBUG : RV_WARN, "sandbox",
				 RV_FIELDS(rv_field_bool("files", b->files), rv_field_bool("calls", b->calls)), "%s",
				 whole ? "in a sandbox: other files than the worker's, and calls that it does not make, are refused"
					   : b->why_not.text);
}

static void log_kept(struct session *s) {
	char kept[SETTINGS_SHOWN_BYTES];
	settings_describe(s->opt, kept);
	if (kept[0])
		rv_event(s->events, RV_INFO, "kept", RV_FIELDS(rv_field_str("options", kept)), "kept from last time: %s", kept);
}

/* Checks a member's inputs; a mistake does not cost its place. */
static enum rv_err check_member(struct session *s, struct rv_errtext *et) {
	RV_TRY(membership_store(s->opt->dir, &s->member, et));
	RV_TRY(session_check_settings(s, et));
	return settings_store(s->opt, et);
}

enum rv_err session_open(struct session *s, const char *link, struct rv_errtext *et) {
	RV_TRY(open_events(s, et));
	session_apply_limits(s);
	RV_TRY(rv_dir_make(s->opt->dir, 0755, et));
	RV_TRY(rv_dir_lock(s->opt->dir, &s->lock_fd, et));
	RV_TRY(membership_load(s->opt->dir, link, &s->member, et));
	struct rv_hash accepted;
	(void)terms_read(s->opt->dir, &s->about, &accepted);
	session_open_allowed(s);
	session_open_local(s);
	log_sandbox(s);
	log_kept(s);
	RV_TRY(session_check_inputs(s, et));
	RV_TRY(session_choose_listen(s, et));
	if (s->member.joined)
		RV_TRY(check_member(s, et));
	session_watch_addresses(s);
	RV_TRY(open_control(s, et));
	if (s->member.joined) {
		log_name(s);
		session_load_history(s);
		session_check_ticket(s);
	} else {
		const struct join_request rq = bare_request(s); /* a person reads no terms for a link that is refused */
		control_client_check_invite(s->control, &rq);
	}
	return RV_OK;
}
