/* core_rig.h: a coordinator core on a bench: virtual time, records made durable at once (or held
 * back), and a twin that replays every record the moment it is durable and must then announce the
 * same. */
#ifndef RV_TESTS_COORDINATOR_CORE_RIG_H
#define RV_TESTS_COORDINATOR_CORE_RIG_H

#include "coordinator/core/core.h"

enum {
	RIG_CHUNKS = 12,
	RIG_RECORDS_KEPT = 1024,
	RIG_EVENTS = 1024,
	RIG_MOST_TOKENS = 1000000,
	RIG_MISSED_TOKENS = 1000
};
#define RIG_S 1000000ll

struct rig {
	struct core_config cfg;
	struct core *core, *twin;
	int64_t now_us;
	bool hold; /* records stay in the core's queue */
	int n_records;
	struct core_record *last; /* ring: record id % RIG_RECORDS_KEPT */
	uint64_t last_seq;        /* of the document last checked */
	uint64_t report_seq;
	struct core_event seen[RIG_EVENTS]; /* that rig_saw has read; forgotten once more has happened */
	int n_seen;
	bool has_more;
};

/* min_workers, 10 rounds, grace 5 s, liveness 10 s, gather 1 s. Change cfg before rig_start. */
void rig_init(struct rig *r, uint32_t min_workers);
void rig_start(struct rig *r);
void rig_release(struct rig *r);

void rig_key(uint32_t who, uint8_t key[NET_KEY_BYTES]);
/* Joins workers 0..n-1 with a fresh token each; they do not report yet. */
void rig_join(struct rig *r, int n);
/* Joins one, whose number is then `who`. */
void rig_join_one(struct rig *r, uint32_t who);
/* rig_init, rig_start and rig_join of n workers. */
void rig_open(struct rig *r, uint32_t min_workers, int n);
/* Makes every waiting record durable, checks the twin and the document (it decodes, its seq
 * grows). */
void rig_pump(struct rig *r);
/* The coordinator is killed and started again from its records. */
void rig_restart(struct rig *r);
void rig_wait(struct rig *r, int64_t us);

/* What a worker's process says of its contribution to a round, in a codec. */
struct rv_hash rig_root(uint32_t who, uint64_t boot, uint64_t round, uint8_t codec);
/* A report of worker `who` about the current round and attempt; boot 1. Change it, then
 * rig_send. */
struct report rig_report(const struct rig *r, uint32_t who, enum worker_phase phase);
/* Sets the report's suspects: a set of the first 64 places of the roster. */
void rig_accuse(struct report *rep, uint64_t places);
void rig_send(struct rig *r, uint32_t who, const struct report *rep);
/* Both at once. VOTED votes rig_digest(round). */
void rig_say(struct rig *r, uint32_t who, enum worker_phase phase);
void rig_say_all(struct rig *r, int n, enum worker_phase phase);
struct rv_hash rig_digest(uint64_t round);
/* n workers train, are ready, reduce and vote: the round is committed. */
void rig_round(struct rig *r, int n);

/* rig_open, and all n are in the all-reduce of round 0. */
void rig_reducing(struct rig *r, uint32_t min_workers, int n);

const struct document *rig_doc(const struct rig *r);
/* Returns the document of member `who`, until the next call. */
const struct document *rig_doc_of(const struct rig *r, uint32_t who);
/* The latest record; asserts its type. */
const struct core_record *rig_last(const struct rig *r, enum core_record_type type);
/* The members that the latest record blames, below 64: a set. */
uint64_t rig_blamed(const struct rig *r, enum core_record_type type);
/* A member in memory. */
struct core_member_view rig_view(const struct rig *r, uint32_t who);
/* Reads all events; true when one of `type` about `member` was among them, or among those that it
 * has read since somebody reported, or time passed. */
bool rig_saw(struct rig *r, enum core_event_type type, uint32_t member);
/* Reads all events, of which the core keeps the last 128; adds the members below 64 that they are
 * about to the set of each type. */
void rig_read_events(struct rig *r, uint64_t about[CORE_EVENT_COUNT]);
bool rig_takes_part(const struct rig *r, uint32_t who);
bool rig_owns(const struct rig *r, uint32_t who); /* chunks */
void rig_expect(const struct rig *r, enum run_phase phase, uint64_t round, uint32_t attempt);
void rig_expect_members(const struct rig *r, int n, const uint32_t *members);
#define RIG_EXPECT_MEMBERS(r, ...)                                                                                     \
	rig_expect_members((r), (int)(sizeof((uint32_t[]){__VA_ARGS__}) / 4), (const uint32_t[]){__VA_ARGS__})

#endif
