/* text_core_state.h: the state behind text_core.h, shared by text_core.c (files and sources),
 * text_core_ask.c (requests), text_core_answer.c (answers) and text_core_members.c (members, and
 * what they hold). Internal to them. */
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

/* A member's answer about a file. */
enum text_word { TEXT_UNASKED, TEXT_ASKED, TEXT_LACKS, TEXT_HOLDS };

struct text_wanted {
	bool used, urgent;
	bool complete; /* its verdict is due */
	bool doubted;  /* a copy from several sources was wrong: now from `alone` */
	int alone;     /* TEXT_NOBODY: the next source that may */
	uint64_t id, bytes;
	uint32_t n_ranges, n_held;
	int64_t wanted_us, urgent_us;    /* since when */
	int64_t arrived_us;              /* when its last range arrived, or it was first wanted */
	int64_t alone_us;                /* since when `alone` has it */
	uint8_t words[TEXT_SOURCES_MAX]; /* MEMBER: enum text_word */
	int64_t lacks_until_us[TEXT_SOURCES_MAX], lacks_pause_us[TEXT_SOURCES_MAX];
	struct text_range *ranges; /* (ranges_max) */
};

struct text_source {
	enum text_source_kind kind;
	uint32_t member; /* MEMBER: its number in the run */
	bool here, whole;
	bool questioned;     /* a question is under way */
	int64_t question_us; /* when it was asked */
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
	int64_t now_us, members_us;
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
/* Returns a source of which nothing is known. */
struct text_source text_source_of(const struct text_core *c, enum text_source_kind kind, uint32_t member);
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

/* ---- text_core_members.c ---- */
/* Returns true if what a member has said of the file allows to request it. */
bool text_may_hold(const struct text_core *c, const struct text_wanted *f, int source);
/* Returns true if the file may yet turn out to be a member's. */
bool text_awaits_members(const struct text_core *c, const struct text_wanted *f);
/* Notes that a member lacks the file. */
void text_lacks(struct text_core *c, struct text_wanted *f, int source);
/* Forgets what members said they lack: they are asked again. */
void text_ask_anew(struct text_core *c, struct text_wanted *f);
/* Ends the requests of a source and its question, and forgets what it said. */
void text_leave_source(struct text_core *c, int source);

/* ---- text_core_ask.c ---- */
/* Returns true if another source of `f` (NULL: of any file) is so much faster that this one only
 * delays. */
bool text_is_slow(const struct text_core *c, const struct text_wanted *f, int source);

#endif
