/* checkpoint_index.h: decides, from names and headers alone, what the state files in a worker's
 * directory prove: where recovery starts, how far the log continues from there, and what retention
 * may remove. Pure: no I/O, no allocation. The state store and the simulator drive the same object.
 *
 * A *snapshot* at round R is the state before round R is reduced. A *log entry* of round R is the
 * result of R's all-reduce: applied to the state at R it makes the state at R + 1. It is written
 * before the vote, so the newest entry may be of an attempt that was never committed. An entry is
 * *proved* if a signed document named its digest when it was fetched (attempt 0), or if something
 * later is on the disk: the entry or the snapshot of the next round, or a replica of a later one. A
 * worker that a roster left out, and that then installed a later snapshot, keeps an entry that was
 * never committed; therefore the chain of a replay is compared with every snapshot on the way. */
#ifndef RV_WORKER_STATE_CHECKPOINT_INDEX_H
#define RV_WORKER_STATE_CHECKPOINT_INDEX_H

#include "worker/state/state_pieces.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CHECKPOINT_MAX_FILES = 4096, /* of a kind; the newest are listed */
	CHECKPOINT_MAX_KEEP = 4000   /* the most that a policy may keep, so that all kept files are listed */
};

struct checkpoint_file {
	uint64_t round;
	uint32_t attempt;    /* LOG */
	bool damaged;        /* it exists and is unusable */
	bool has_hash;       /* its header is readable */
	struct rv_hash hash; /* SNAPSHOT: its chain; LOG: its digest */
};

struct checkpoint_list {
	struct checkpoint_file at[CHECKPOINT_MAX_FILES]; /* ascending by round */
	int n;
};

struct checkpoint_index {
	struct checkpoint_list snapshots, logs;
	bool theta0;            /* the state of round 0 needs no file: it is drawn from a seed, or at hand */
	struct rv_hash chain0;  /* its chain */
	uint64_t replica_round; /* the round that this worker has trained; 0: not known */
	bool replica_waits;     /* with all its steps, so it continues with steps ahead of the outer step (overlap-steps) */
};

/* The rounds whose full hash is reported and whose snapshot is kept: every `snapshot_every` (0:
 * none), and the end after `rounds`. */
struct checkpoint_schedule {
	uint64_t snapshot_every, rounds;
};
/* Returns true if the schedule has `round`. */
bool checkpoint_is_due(const struct checkpoint_schedule *s, uint64_t round);

void checkpoint_index_init(struct checkpoint_index *x, bool theta0, const struct rv_hash *run_hash);
/* Asserts what always holds of the list. */
void checkpoint_check_invariants(const struct checkpoint_index *x);
/* Adds a file, or replaces its entry. `attempt`: of a log entry. `hash` NULL: its header is
 * unreadable, and the file is damaged. */
void checkpoint_index_add(struct checkpoint_index *x, enum state_kind kind, uint64_t round, uint32_t attempt,
						  const struct rv_hash *hash);
/* Marks a file as unusable. It still proves the files before it. */
void checkpoint_index_damaged(struct checkpoint_index *x, enum state_kind kind, uint64_t round);
/* Returns the file's entry, or NULL. */
const struct checkpoint_file *checkpoint_index_find(const struct checkpoint_index *x, enum state_kind kind,
													uint64_t round);

/* The start of a replay: a snapshot, or theta0 (snapshot == false, round 0). */
struct checkpoint_start {
	uint64_t round;
	bool snapshot;
	struct rv_hash chain;
};
/* Finds the newest undamaged start at or before `round`. Returns false if there is none. */
bool checkpoint_start_before(const struct checkpoint_index *x, uint64_t round, struct checkpoint_start *out);

/* Returns true if the log entry of `round` is undamaged and proved. */
bool checkpoint_proved(const struct checkpoint_index *x, uint64_t round);
/* Returns the latest round whose state follows from `from` by proved entries; if they contradict a
 * snapshot on the way, the round up to which they agree. */
uint64_t checkpoint_reach(const struct checkpoint_index *x, const struct checkpoint_start *from);
/* Returns the round in which a restarted worker begins: checkpoint_reach(), but not past the outer
 * step that its replica waits for, because the steps ahead, which it repeats, come first. */
uint64_t checkpoint_goal(const struct checkpoint_index *x, const struct checkpoint_start *from);
/* Returns true if there is an undamaged entry of `round` that nothing proves: perhaps this worker's
 * vote. */
bool checkpoint_is_vote(const struct checkpoint_index *x, uint64_t round);
/* Returns true if a worker that restarts at `round` has its entry: as a vote, or as the outer step
 * that its replica waits for. */
bool checkpoint_is_at_hand(const struct checkpoint_index *x, uint64_t round);

struct checkpoint_policy {
	uint64_t keep_snapshots; /* undamaged ones at or before the joiners' start, at least 1; 0: all */
	uint64_t keep_log;       /* least rounds of log to keep, for workers that were away */
};
enum { CHECKPOINT_NAMED_SNAPSHOTS = 4 };
/* The files that joiners need, according to documents. */
struct checkpoint_named {
	uint64_t vouched_round; /* the snapshot that they start from */
	uint64_t logs_from;     /* entries from here on are needed by joiners that started earlier; at most vouched_round */
	int n_snapshots;        /* earlier snapshots that joiners are still fetching */
	uint64_t snapshots[CHECKPOINT_NAMED_SNAPSHOTS];
};
/* The rounds before which files may go, except snapshots that are named. The newest undamaged
 * snapshot at or before the vouched round, and every entry after it, always stay: every later state
 * is made from them. */
struct checkpoint_keep {
	uint64_t snapshots_from, logs_from;
};
struct checkpoint_keep checkpoint_retention(const struct checkpoint_index *x, const struct checkpoint_policy *policy,
											const struct checkpoint_named *named);
bool checkpoint_keeps_snapshot(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							   uint64_t round);

#endif
