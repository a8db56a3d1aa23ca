/* serve_text.c: see serve_text.h. */
#include "coordinator/commands/serve_text.h"

#include "base/run_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Opens the directory that a person names, and keeps its place. */
static enum rv_err open_given(struct opened_run *r, const char *given, const char *data_hash, struct served_text **out,
							  struct rv_errtext *et) {
	char *place = realpath(given, NULL);
	if (!place)
		return rv_fail_errno(et, errno, "--text %s", given);
	enum rv_err e = strlen(place) < RUN_TEXT_BYTES
						? served_text_open(place, data_hash, out, et)
						: rv_fail(et, RV_E_RANGE, "its path has more than %d bytes", RUN_TEXT_BYTES - 1);
	if (e == RV_OK)
		e = r->store->ops->set(r->store, RUN_TEXT_PLACE, place, et);
	free(place);
	return e == RV_OK ? e : rv_fail_context(et, e, "--text");
}

/* Opens the text where it was. */
static enum rv_err open_kept(struct opened_run *r, const char *data_hash, struct rv_events *events,
							 struct served_text **out, struct rv_errtext *et) {
	char place[RUN_TEXT_BYTES];
	struct rv_errtext why = {0};
	RV_TRY(r->store->ops->get(r->store, RUN_TEXT_PLACE, place, sizeof place, et));
	const char *dir = place[0] ? place : r->dir.text;
	if (served_text_open(dir, data_hash, out, &why) != RV_OK)
		rv_event(
			events, RV_WARN, "text_missing", RV_FIELDS(rv_field_str("dir", dir)),
			"%s; serving without the run's text: members have its mirrors and each other. `serve --text DIR` names "
			"a copy",
			why.text);
	return RV_OK;
}

enum rv_err serve_text_open(struct opened_run *r, const char *given, struct rv_events *events, struct served_text **out,
							struct rv_errtext *et) {
	struct run_config run;
	*out = NULL;
	RV_TRY(run_config_parse(&run, "the run's configuration", r->config, et));
	if (!run.data_hash[0])
		return given[0]
				   ? rv_fail(et, RV_E_INVALID, "--text %s: the run has no data-hash: members bring its text", given)
				   : RV_OK;
	if (given[0])
		RV_TRY(open_given(r, given, run.data_hash, out, et));
	else
		RV_TRY(open_kept(r, run.data_hash, events, out, et));
	if (*out)
		rv_event(events, RV_INFO, "text",
				 RV_FIELDS(rv_field_str("dir", served_text_dir(*out)), rv_field_str("data-hash", run.data_hash)),
				 "members may fetch the run's text from here: %s", served_text_dir(*out));
	return RV_OK;
}
