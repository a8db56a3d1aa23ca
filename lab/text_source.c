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

static bool show_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
	if (ctx)
		rv_progress(ctx, rv_clock_monotonic_us(), "text", done_bytes, total_bytes, "byte", "");
	return true;
}

enum rv_err text_source_open(const char *source, const struct run_config *c, struct rv_events *events,
							 struct dataset **out, struct rv_errtext *et) {
	char cache[400], path[DOWNLOAD_PATH_BYTES];
	cache_directory(cache, sizeof cache);
	const struct download_config cfg = {.cache_dir = cache, .progress = show_progress, .ctx = events};
	RV_TRY(download(&cfg, source, path, et));
	const struct dataset_config data = dataset_config_of(c, path);
	return dataset_open(&data, out, et);
}
