/* serving.c: see serving.h. */
#include "coordinator/commands/serving.h"

#include "base/signals.h"

#include <stdio.h>
#include <unistd.h>

enum rv_err serving_open(const char *log, struct serving *out, struct rv_errtext *et) {
	const struct rv_events_config cfg = {
		.out = stdout, .json = isatty(STDOUT_FILENO) == 0, .level = RV_INFO, .log_path = log[0] != '\0' ? log : NULL};
	*out = (struct serving){.signal_fd = -1};
	RV_TRY(rv_signals_open(&out->signal_fd, et));
	enum rv_err e = rv_events_new(&cfg, &out->events, et);
	if (e != RV_OK)
		rv_signals_close(out->signal_fd);
	return e;
}

void serving_close(struct serving *s) {
	rv_events_free(s->events);
	rv_signals_close(s->signal_fd);
}

enum rv_err serving_enter_sandbox(const struct os_sandbox_path *paths, int n, struct rv_events *ev,
								  struct rv_errtext *et) {
	const struct os_sandbox_needs needs = {.paths = paths, .n = n};
	struct os_sandbox got;
	enum rv_err e = os_sandbox_enter(&needs, &got, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "--no-sandbox goes on without one");
	const bool whole = got.files && got.calls;
	rv_event(ev, whole ? RV_DEBUG : RV_WARN, "sandbox",
			 RV_FIELDS(rv_field_bool("files", got.files), rv_field_bool("calls", got.calls)), "%s",
			 whole
				 ? "in a sandbox: other files than its own, programs, and calls that serving does not make, are refused"
				 : got.why_not.text);
	return RV_OK;
}
