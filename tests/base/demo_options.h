/* demo_options.h: a small table with one option of every type, for the tests of base/options. */
#ifndef RV_TESTS_BASE_DEMO_OPTIONS_H
#define RV_TESTS_BASE_DEMO_OPTIONS_H

#include "base/options.h"

struct demo {
	bool resume;
	int64_t rounds, chunk_bytes, timeout_ms, free_int;
	double lr, free_double;
	char name[16], link[64], late[16];
};

static const struct rv_option demo_options[] = {
	{"resume", RV_OPT_BOOL, offsetof(struct demo, resume), 0, "yes", 0, 0, NULL, "Go on where the last run stopped.",
	 "Run"},
	{"rounds", RV_OPT_INT, offsetof(struct demo, rounds), 0, "30", 1, 100000, NULL, "Outer steps.", "Run"},
	{"chunk-bytes", RV_OPT_BYTES, offsetof(struct demo, chunk_bytes), 0, "64KiB", 1, 1073741824.0, NULL,
	 "Size of a chunk.", "Network"},
	{"timeout-ms", RV_OPT_DURATION_MS, offsetof(struct demo, timeout_ms), 0, "4s", 1, 3600000, NULL,
	 "How long a peer may be silent before the others go on without it, which is a long sentence so that it wraps.",
	 "Network"},
	{"lr", RV_OPT_DOUBLE, offsetof(struct demo, lr), 0, "3e-4", 1e-9, 1, NULL, "Learning rate.", "Run"},
	{"name", RV_OPT_STRING, offsetof(struct demo, name), sizeof((struct demo){0}.name), "", 0, 0, NULL, "A name.",
	 NULL},
	{"link", RV_OPT_STRING, offsetof(struct demo, link), sizeof((struct demo){0}.link), NULL, 0, 0, NULL,
	 "The invite link.", "Network"},
	{"late", RV_OPT_ENUM, offsetof(struct demo, late), sizeof((struct demo){0}.late), "keep", 0, 0, "keep|discard",
	 "What a late worker does.", "Run"},
	{"free-int", RV_OPT_INT, offsetof(struct demo, free_int), 0, "0", 0, 0, NULL, "Any number.", NULL},
	{"free-double", RV_OPT_DOUBLE, offsetof(struct demo, free_double), 0, "0", 0, 0, NULL, "Any number.", NULL},
	{.name = NULL},
};

#endif
