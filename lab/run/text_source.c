/* text_source.c: see text_source.h. */
#include "lab/run/text_source.h"

#include "base/clock.h"
#include "base/signals.h"
#include "net/download.h"

#include <stdio.h>
#include <stdlib.h>

static void cache_directory(char *out, size_t cap) {
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (cache && cache[0] == '/')
		snprintf(out, cap, "%s/rivulet", cache);
	else
		snprintf(out, cap, "%s/.cache/rivulet", home && home[0] == '/' ? home : ".");
}

/* The receiver of progress, and the signals that stop the work. */
struct watch {
	struct rv_events *events;
	int signals;
};

static bool tick(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	const struct watch *w = ctx;
	if (w->events)
		rv_progress(w->events, rv_clock_monotonic_us(), what, done_bytes, total_bytes, "byte", "");
	return w->signals < 0 || rv_signals_take(w->signals) == 0;
}

static bool tick_download(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
	return tick(ctx, "text", done_bytes, total_bytes);
}

enum rv_err text_source_open(const struct text_source *source, const struct run_config *c, struct dataset **out,
							 struct rv_errtext *et) {
	char cache[400], fetched[DOWNLOAD_PATH_BYTES];
	const char *path = source->path; /* may be a pattern: dataset_open matches it */
	struct watch watch = {source->events, source->signals};
	cache_directory(cache, sizeof cache);
	const struct download_config cfg = {.cache_dir = cache, .progress = tick_download, .ctx = &watch};
	if (download_is_remote(path)) {
		RV_TRY(download(&cfg, path, fetched, et));
		path = fetched;
	}
	struct dataset_config data = dataset_config_of(c, path);
	data.field = source->field;
	data.tokenizer = source->tokenizer;
	data.refusal = DATA_TO_CHOOSE;
	data.cache_dir = cache;
	data.progress = tick;
	data.progress_ctx = &watch;
	enum rv_err e = dataset_open(&data, out, et);
	if (source->events)
		rv_progress_clear(source->events);
	return e;
}
