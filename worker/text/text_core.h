/* text_core.h: which range of which file of a published text to request from which source, as a
 * state machine without I/O: no sockets, no clock, no threads, no allocation, no hashing. The text
 * thread (text_thread.h), the tests and the fuzzer drive the same object.
 *
 * In:  the wanted files in the order of need, the sources, ranges that arrive, failures, verdicts
 *      on whole files, the time.
 * Out: requests, requests to end, sources that gave wrong bytes.
 *
 * A file comes in ranges of TEXT_RANGE_BYTES from several sources at once, in the order of need. A
 * source's *window* is how many requests it may have; it grows while answers are quick. A range
 * that is late is requested from another source too, once everything before it is requested: at
 * once for a file that training waits for. A source far slower than the best is left alone, and
 * tried again now and then. One that fails is left alone for a pause that doubles; one that says
 * how long (503, Retry-After) for that long. The coordinator is asked for what nobody else has.
 *
 * Members say which of the wanted files they hold when they are asked (a question), and are
 * requested these only. The coordinator waits until those that are linked have answered.
 *
 * Only a whole file has a hash. If one is wrong and all of it came from one source, that source
 * lied. Else it is fetched again from one source alone, and compared with what came before: every
 * source whose range differs from the right file lied. Pauses of liars grow fourfold. */
#ifndef RV_WORKER_TEXT_TEXT_CORE_H
#define RV_WORKER_TEXT_TEXT_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TEXT_RANGE_BYTES = 1 << 20,
	TEXT_FILES_MAX = 64,   /* wanted at once */
	TEXT_SOURCES_MAX = 48, /* mirrors, linked members, the coordinator */
	TEXT_ASKS_MAX = 64,    /* requests under way */
	TEXT_COPIES_MAX = 3    /* sources asked for the same range */
};

enum text_source_kind { TEXT_MIRROR, TEXT_MEMBER, TEXT_COORDINATOR };

/* A wanted file: a number that means something to the caller, and its size. */
struct text_need {
	uint64_t id;
	uint64_t bytes; /* > 0, at most ranges_max ranges */
	bool urgent;    /* training waits for it */
};

struct text_core_config {
	uint32_t ranges_max; /* of a file */
	int64_t stall_us;    /* timeout of a request of which no byte comes; not of the coordinator's */
};

/* Opaque: text_core_bytes() of the caller's memory, aligned as malloc does; a bound that depends
 * only on the configuration. */
struct text_core;
size_t text_core_bytes(const struct text_core_config *cfg);
struct text_core *text_core_init(void *memory, const struct text_core_config *cfg, int64_t now_us);

/* ---- what is wanted ---- */

/* Sets the wanted files, n <= TEXT_FILES_MAX, none twice, in the order of need. Known ones keep
 * their ranges; requests for others are to be ended. A file whose verdict was good is forgotten:
 * naming it again fetches it again. */
void text_core_want(struct text_core *c, int64_t now_us, const struct text_need *needs, int n);
bool text_core_wants(const struct text_core *c, uint64_t id);
/* Takes what an earlier process had of a wanted file: a byte for each range, not 0: held. Returns
 * true if nothing is missing: its verdict is due. */
bool text_core_resume(struct text_core *c, uint64_t id, const uint8_t *held);
uint32_t text_core_ranges(uint64_t bytes);
uint32_t text_core_range_bytes(uint64_t bytes, uint32_t range);

/* ---- sources ---- */

/* Adds a source other than a member. Returns its number; -1: there are TEXT_SOURCES_MAX. */
int text_core_add(struct text_core *c, enum text_source_kind kind);
/* Marks a source as reachable, as it is at first, or not. Its requests are then to be ended. */
void text_core_here(struct text_core *c, int64_t now_us, int source, bool here);
/* Marks a member as linked, and allowed to be asked, or not. Returns the number of its source,
 * which becomes another member's once this one is not linked and not left alone for a lie; -1:
 * there is no place for it now (a member that is not linked needs none). */
int text_core_member(struct text_core *c, int64_t now_us, uint32_t member, bool linked);
/* Returns the number of the source of a member; -1: it has none. */
int text_core_source_of(const struct text_core *c, uint32_t member);
uint32_t text_core_member_of(const struct text_core *c, int source);
/* Marks a source as one that sends whole files only (HTTP without ranges): it gets one request for
 * all that is missing behind the first free range. */
void text_core_whole(struct text_core *c, int source);
struct text_source_view {
	bool left; /* by a pause, or as too slow */
	int64_t until_us;
	double bytes_per_s; /* 0: not known */
	int asks, offences;
};
struct text_source_view text_core_source(const struct text_core *c, int64_t now_us, int source);

/* ---- questions to members ---- */

/* Asks the coordinator for no file, from now on, in the first `us` after it was wanted: links come
 * up and members answer meanwhile. At first 0: there are no members. */
void text_core_expect_members(struct text_core *c, int64_t us);

/* Makes the next question to a source: which of `files` the member holds. Returns their number;
 * 0: there is none now. One is under way at a time, until it is answered or the member is no longer
 * linked. */
int text_core_question(struct text_core *c, int64_t now_us, int source, uint64_t files[TEXT_FILES_MAX]);
/* Takes the answer: bit i of `held` for files[i]. */
void text_core_answer(struct text_core *c, int64_t now_us, int source, const uint64_t *files, int n, uint64_t held);

/* ---- requests ---- */

struct text_request {
	uint32_t id; /* never 0 */
	int source;
	uint64_t file;
	uint32_t first, n; /* ranges */
};
/* Makes the next request of a source. Returns false if there is none now. */
bool text_core_send(struct text_core *c, int64_t now_us, int source, struct text_request *out);
/* Takes the next request to be ended, whose answer is not needed: the caller reports nothing more
 * of it. Returns false if there is none. */
bool text_core_drop(struct text_core *c, uint32_t *id);

/* The four below ignore requests that were dropped. */

/* Reports that `bytes` of the range under way have come. */
void text_core_progress(struct text_core *c, int64_t now_us, uint32_t id, uint32_t bytes);
struct text_arrival {
	bool keep; /* store it; else it is held already, or no longer wanted */
	uint64_t file;
	uint32_t range;
	bool complete; /* nothing is missing: hash the file, then text_core_verdict() */
	bool ended;    /* the request has all its ranges */
};
/* Takes the next range of a request. `check` is a hash of its bytes. */
struct text_arrival text_core_arrived(struct text_core *c, int64_t now_us, uint32_t id, uint64_t check);
enum text_failure {
	TEXT_GONE, /* the source does not have the file */
	TEXT_BUSY, /* it asks for a pause */
	TEXT_CUT,  /* refused, cut, timed out */
	TEXT_WRONG /* an answer that no honest source gives: another length or range */
};
/* Ends a request. `retry_us`: with TEXT_BUSY, the pause asked for; 0: none was named. */
void text_core_failed(struct text_core *c, int64_t now_us, uint32_t id, enum text_failure why, int64_t retry_us);

/* ---- whole files ---- */

/* Takes the verdict on a complete file: whether it has its hash. A bad one is fetched again.
 * Returns how many sources lied, their numbers in `liars`. */
int text_core_verdict(struct text_core *c, int64_t now_us, uint64_t id, bool good, int liars[TEXT_SOURCES_MAX]);
/* Returns true if every reachable source has said that it lacks the file, or none is reachable. */
bool text_core_nowhere(const struct text_core *c, int64_t now_us, uint64_t id);

/* Ends silent requests. Call it at the deadline, then text_core_drop, text_core_question and
 * text_core_send. */
void text_core_tick(struct text_core *c, int64_t now_us);
int64_t text_core_deadline_us(const struct text_core *c); /* INT64_MAX: none */

#endif
