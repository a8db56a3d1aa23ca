/* text_core_state.h: the state behind text_core.h, shared by text_core.c (files and sources),
 * text_core_ask.c (requests) and text_core_answer.c (answers). Internal to them. */
#ifndef RV_WORKER_TEXT_TEXT_CORE_STATE_H
#define RV_WORKER_TEXT_TEXT_CORE_STATE_H

#include "worker/text/text_core.h"

enum { TEXT_NOBODY = -1, TEXT_FROM_DISK = -2 };

struct text_range {
	uint64_t check, old_check; /* of the bytes held; of an earlier copy of the file, which was wrong */
	int8_t from, old_from;     /* a source, TEXT_FROM_DISK or TEXT_NOBODY */
	uint8_t asks;              /* requests that have it before them */
	bool held;
};

struct text_wanted {
	bool used, urgent;
	bool complete; /* its verdict is due */
	bool doubted;  /* a copy from several sources was wrong: now from `alone` */
	int alone;     /* TEXT_NOBODY: the next source that may */
	uint64_t id, bytes;
	uint32_t n_ranges, n_held;
	int64_t urgent_us, arrived_us; /* since when; when its last range arrived, or it was first wanted */
	int64_t lacks_until_us[TEXT_SOURCES_MAX], lacks_pause_us[TEXT_SOURCES_MAX];
	struct text_range *ranges; /* (ranges_max) */
};

struct text_source {
	enum text_source_kind kind;
	bool here, whole;
	int n_asks, window;
	int failures; /* since the last range */
	int offences;
	int64_t paused_until_us, probe_us; /* probe: when a slow one is tried again */
	double bytes, busy_us;             /* its rate: both are halved now and then */
	int64_t clock_us;                  /* up to which busy_us counts */
};

struct text_ask {
	uint32_t id; /* 0: free */
	int slot;    /* TEXT_NOBODY: to be dropped */
	int source;
	uint32_t first, n, at; /* `at`: the range under way */
	uint32_t got;          /* bytes of it */
	int64_t asked_us, heard_us;
};

struct text_core {
	struct text_core_config cfg;
	int64_t now_us;
	uint32_t last_id;
	int n_order, order[TEXT_FILES_MAX];
	struct text_wanted files[TEXT_FILES_MAX];
	int n_sources;
	struct text_source sources[TEXT_SOURCES_MAX];
	struct text_ask asks[TEXT_ASKS_MAX];
};

/* ---- text_core.c ---- */
void text_check_invariants(const struct text_core *c);
/* Returns the slot of a wanted file; TEXT_NOBODY: it is none. */
int text_slot(const struct text_core *c, uint64_t id);
/* Counts the time up to now as busy, if the source has requests. */
void text_source_clock(struct text_core *c, struct text_source *s);
double text_source_rate(const struct text_source *s); /* bytes per microsecond; 0: not known */
/* Takes a request off the file and the source that it is counted in. The ask stays, to be freed or
 * dropped. */
void text_release(struct text_core *c, struct text_ask *a);
/* Forgets all ranges of a file, and has the requests for it dropped. */
void text_restart(struct text_core *c, int slot);
/* Pauses a source that gave wrong bytes. */
void text_blame(struct text_core *c, int source);

/* ---- text_core_ask.c ---- */
/* Both for a file, or (NULL) whatever the file. */
bool text_is_usable(const struct text_core *c, const struct text_wanted *f, int source);
/* Returns true if another usable source is so much faster that this one only delays. */
bool text_is_slow(const struct text_core *c, const struct text_wanted *f, int source);

#endif
