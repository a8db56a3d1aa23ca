/* status.c: `status`: the run in the terminal, once or until it is done. */
#include "base/clock.h"
#include "base/terminal.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/operator_session.h"
#include "coordinator/commands/status_news.h"
#include "coordinator/commands/status_view.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 1000, GONE_S = 20 };

struct status_options {
	char dir[RUN_DIR_BYTES];
	bool follow, json, paths;
};

static const struct rv_option options[] = {
	{"dir", RV_OPT_STRING, offsetof(struct status_options, dir), RUN_DIR_BYTES, NULL, 0, 0, NULL,
	 "Directory of the run.", "Status"},
	{"follow", RV_OPT_BOOL, offsetof(struct status_options, follow), 0, "false", 0, 0, NULL,
	 "Repeat every second, until the run is done.", "Status"},
	{"json", RV_OPT_BOOL, offsetof(struct status_options, json), 0, "false", 0, 0, NULL,
	 "JSON lines, also on a terminal.", "Status"},
	{"paths", RV_OPT_BOOL, offsetof(struct status_options, paths), 0, "false", 0, 0, NULL,
	 "How each worker meets each other one: by a direct link, a punched or a relayed one, or not. As text.", "Status"},
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* The form of the output, and the state of the last one. */
struct view {
	bool json, follow, paths, redraws;
	int lines; /* on the terminal, to be redrawn */
	struct status_news told;
};

static bool is_done(const json_t *status) {
	const char *phase = json_string_value(json_object_get(status, "phase"));
	return phase != NULL && strcmp(phase, "done") == 0;
}

static void show(struct view *v, const json_t *status, bool online) {
	if (v->json && v->follow) {
		status_news_print(&v->told, status, online, stdout);
		return;
	}
	if (v->json) {
		status_print_json(status, online, stdout);
		return;
	}
	if (v->lines > 0 && v->redraws)
		(void)printf("\033[%dA\033[J", v->lines);
	v->lines = status_view_print(status, online, v->paths, rv_terminal_columns(STDOUT_FILENO), stdout);
}

static enum rv_err look(const char *dir, struct view *v, bool *done, bool *online, struct rv_errtext *et) {
	struct operator_session *session = NULL;
	json_t *status = NULL;
	*online = false;
	RV_TRY(operator_open(dir, NULL, &session, et));
	*online = operator_is_online(session);
	enum rv_err e = operator_status(session, &status, et);
	operator_close(session);
	if (e != RV_OK)
		return e;
	show(v, status, *online);
	*done = is_done(status);
	json_decref(status);
	return RV_OK;
}

/* Follows the run; waits for a coordinator that is being restarted. */
static enum rv_err follow(const char *dir, struct view *v, struct rv_errtext *et) {
	int64_t online_us = rv_clock_monotonic_us();
	bool done = false, online = false;
	for (;;) {
		enum rv_err e = look(dir, v, &done, &online, et);
		int64_t now_us = rv_clock_monotonic_us();
		bool transient = e == RV_E_BUSY || e == RV_E_CLOSED || e == RV_E_IO || e == RV_E_TIMEOUT;
		if (done || (e != RV_OK && !transient))
			return e;
		if (e == RV_OK && online)
			online_us = now_us;
		else if (now_us - online_us > (int64_t)GONE_S * RV_US_PER_S)
			return e != RV_OK
					   ? e
					   : rv_fail(et, RV_E_CLOSED,
								 "the coordinator of %s does not run: `rivulet-coordinator serve --dir %s` continues",
								 dir, dir);
		const struct timespec pause = {.tv_sec = POLL_MS / 1000};
		(void)nanosleep(&pause, NULL);
	}
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct status_options *o = opts;
	bool done = false, online = false;
	struct view v = {.json = o->json || (!o->paths && isatty(STDOUT_FILENO) == 0),
					 .follow = o->follow,
					 .paths = o->paths,
					 .redraws = rv_terminal_can_redraw(STDOUT_FILENO)};
	return o->follow ? follow(o->dir, &v, et) : look(o->dir, &v, &done, &online, et);
}

const struct rv_command cmd_status = {
	.name = "status",
	.synopsis = "",
	.help = "Shows the round, the loss, and every worker; --follow until the run is done.",
	.details =
		"Works while the coordinator runs and while it does not. Not on a terminal it prints JSON: the whole status,\n"
		"or with --follow a line for every round that is committed, and for events that an operator should know: "
		"workers\n"
		"that are missing, a full disk (the coordinator's or a worker's), a coordinator that does not run.",
	.options = options,
	.opts_bytes = sizeof(struct status_options),
	.run = run,
};
