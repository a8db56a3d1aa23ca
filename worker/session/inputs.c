/* inputs.c: what a person gives a worker to train with: the text, the tokenizer, the initial
 * weights. What can be looked at before the join is, so that a mistake costs no invite. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "base/signals.h"
#include "net/download.h"
#include "train/files/initial_weights.h"
#include "train/text/run_tokenizer.h"
#include "worker/options/input_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- before the join ---- */

static bool show_progress(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	struct session *s = ctx;
	rv_progress(s->events, rv_clock_monotonic_us(), what, done_bytes, total_bytes, "byte", "");
	return rv_signals_take(s->signals.fd) == 0;
}

static bool show_download(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
	return show_progress(ctx, "text", done_bytes, total_bytes);
}

/* Writes `given` so that it is valid in any working directory; a pattern or a missing file has no
 * real path. */
static void remember(const char *given, char *out, size_t cap) {
	bool is_url = strstr(given, "://") != NULL;
	char *absolute = is_url ? NULL : realpath(given, NULL), *here = NULL;
	if (!is_url && !absolute && given[0] != '/')
		here = getcwd(NULL, 0);
	snprintf(out, cap, "%s%s%s", here ? here : "", here ? "/" : "", absolute ? absolute : given);
	free(absolute);
	free(here);
}

/* Writes the path of the directory for downloads and tokens. */
static void data_cache(const struct session *s, char out[SESSION_PATH_BYTES]) {
	snprintf(out, SESSION_PATH_BYTES, "%s/data", s->opt->dir);
}

static enum rv_err check_text(struct session *s, struct rv_errtext *et) {
	char cache[SESSION_PATH_BYTES];
	data_cache(s, cache);
	struct download_config cfg = {.cache_dir = cache, .progress = show_download, .ctx = s};
	RV_TRY(download(&cfg, s->member.data, s->data_path, et));
	return input_check_data(s->data_path, et);
}

/* Returns true if this computer has no GPU, as far as missing drivers say: nothing is amiss. */
static bool has_none(const char *why_not_gpu) {
	return strncmp(why_not_gpu, "no ", 3) == 0 && strstr(why_not_gpu, " driver is installed") != NULL;
}

/* The first words of a start. */
static void log_device(struct session *s, const struct device_choice *device) {
	char computes[SESSION_COMPUTES_BYTES];
	const char *why = device->why_not_gpu;
	session_computes(s, computes);
	if (!why[0])
		rv_event(s->events, RV_INFO, "device", RV_FIELDS(rv_field_str("device", device->backend)), "Training on %s.",
				 computes);
	else if (has_none(why))
		rv_event(s->events, RV_INFO, "device", RV_FIELDS(rv_field_str("device", device->backend)),
				 "Training on %s. No GPU found.", computes);
	else
		rv_event(s->events, RV_INFO, "device", RV_FIELDS(rv_field_str("device", device->backend)),
				 "Training on %s instead of a GPU: %s.", computes, why);
	if (why[0])
		rv_event(s->events, RV_DEBUG, "no_gpu", RV_FIELDS(rv_field_str("why", why)), "on the CPU: %s", why);
}

static enum rv_err check_device(struct session *s, struct rv_errtext *et) {
	struct device_choice device;
	RV_TRY(device_choose(s->opt->device, &device, et));
	log_device(s, &device);
	const char *libraries = device_libraries(&device);
	if (libraries)
		rv_event(s->events, RV_DEBUG, "gpu_libraries", RV_FIELDS(rv_field_str("found", libraries)), "GPU libraries: %s",
				 libraries);
	return RV_OK;
}

/* Opens the text; makes its tokens first, into the directory's cache, where that was not done. */
static enum rv_err open_text(struct session *s, const struct run_config *run, const struct tokenizer *tokenizer,
							 struct dataset **out, struct rv_errtext *et) {
	char cache[SESSION_PATH_BYTES];
	data_cache(s, cache);
	struct dataset_config cfg = dataset_config_of(run, s->data_path);
	cfg.field = s->opt->field;
	cfg.tokenizer = tokenizer;
	cfg.cache_dir = cache;
	cfg.progress = show_progress;
	cfg.progress_ctx = s;
	if (s->text)
		cfg.missing = (struct published_missing){.get = text_get, .ctx = s->text};
	enum rv_err e = dataset_open(&cfg, out, et);
	if (e == RV_OK)
		e = dataset_content(*out, &s->content, et);
	rv_progress_clear(s->events);
	return e;
}

enum rv_err session_check_tokens(struct session *s, const struct run_config *run, struct rv_errtext *et) {
	struct tokenizer *tokenizer = NULL;
	struct dataset *data = NULL;
	if (!s->data_path[0])
		return RV_OK; /* the run hands its text out */
	RV_TRY(run_tokenizer_open(run, s->member.tokenizer, &tokenizer, et));
	enum rv_err e = tokenizer ? open_text(s, run, tokenizer, &data, et) : RV_OK;
	dataset_close(data);
	tokenizer_free(tokenizer);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--data");
}

enum rv_err session_check_inputs(struct session *s, struct rv_errtext *et) {
	const struct worker_options *o = s->opt;
	RV_TRY(check_device(s, et));
	if (o->data[0])
		remember(o->data, s->member.data, sizeof s->member.data);
	if (strcmp(o->tokenizer, "bytes") == 0)
		snprintf(s->member.tokenizer, sizeof s->member.tokenizer, "bytes");
	else if (o->tokenizer[0])
		remember(o->tokenizer, s->member.tokenizer, sizeof s->member.tokenizer);
	enum rv_err e = s->member.data[0] ? check_text(s, et) : RV_OK;
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", o->data[0] ? "--data" : "remembered text (--data names another)");
	RV_TRY(input_check_weights(o->init, et));
	return input_check_tokenizer(s->member.tokenizer, et);
}

/* ---- once a member ---- */

enum rv_err session_check_init(const struct session *s, const struct run_config *run, struct rv_errtext *et) {
	if (!s->opt->init[0] || run->init_hash[0] != '\0')
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "--init %s: this run starts from its seed, not from given weights: leave it out",
				   s->opt->init);
}

static enum rv_err open_weights(struct session *s, struct session_inputs *in, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	size_t n;
	if (!s->opt->init[0])
		return RV_OK;
	RV_TRY(session_check_init(s, run, et));
	return initial_weights_load(s->opt->init, run, &in->initial_theta, &n, et);
}

enum rv_err session_open_inputs(struct session *s, struct session_inputs *in, struct rv_errtext *et) {
	struct tokenizer *tokenizer = NULL;
	*in = (struct session_inputs){0};
	enum rv_err e = session_check_own_text(s, &s->member.config, et);
	if (e == RV_OK && s->member.config.data_hash[0] && !s->member.data[0])
		e = session_open_text(s, et);
	if (e == RV_OK)
		e = run_tokenizer_open(&s->member.config, s->member.tokenizer, &tokenizer, et);
	if (e == RV_OK)
		e = open_text(s, &s->member.config, tokenizer, &in->data, et);
	if (e == RV_OK)
		session_note_own_text(s);
	if (e == RV_OK)
		e = open_weights(s, in, et);
	tokenizer_free(tokenizer);
	return e;
}

void session_release_inputs(struct session_inputs *in) {
	dataset_close(in->data);
	free(in->initial_theta);
	*in = (struct session_inputs){0};
}
