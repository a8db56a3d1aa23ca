/* text_source.c: see text_source.h. */
#include "lab/text_source.h"

#include "base/clock.h"
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

static bool show_progress(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	if (ctx)
		rv_progress(ctx, rv_clock_monotonic_us(), what, done_bytes, total_bytes, "byte", "");
	return true;
}

static bool show_download(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
	return show_progress(ctx, "text", done_bytes, total_bytes);
}

enum rv_err text_source_open(const char *source, const struct run_config *c, const struct tokenizer *tokenizer,
							 struct rv_events *events, struct dataset **out, struct rv_errtext *et) {
	char cache[400], path[DOWNLOAD_PATH_BYTES];
	cache_directory(cache, sizeof cache);
	const struct download_config cfg = {.cache_dir = cache, .progress = show_download, .ctx = events};
	RV_TRY(download(&cfg, source, path, et));
	struct dataset_config data = dataset_config_of(c, path);
	data.tokenizer = tokenizer;
	data.cache_dir = cache;
	data.progress = show_progress;
	data.progress_ctx = events;
	enum rv_err e = dataset_open(&data, out, et);
	if (events)
		rv_progress_clear(events);
	return e;
}
