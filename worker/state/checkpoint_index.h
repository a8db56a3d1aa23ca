/* checkpoint_index.h: what the state files in a worker's directory prove, decided from their names and headers alone:
 * where recovery starts, how far the log goes on from there, what retention may remove. Pure: no I/O, no allocation.
 * The state store and the simulator drive the same object.
 *
 * A *snapshot* at round R is the state before round R is reduced. A *log entry* of round R is the result of R's all-reduce:
 * applied to the state at R it makes the state at R + 1. It is written before the vote, so the newest one may be of an
 * attempt that was never committed. It is *proved* when it was fetched on the word of a signed document (attempt 0), or
 * when something on the disk came after it: the entry or the snapshot of the next round, a replica of a later one. A worker
 * that was left out of a round, and then installed a later snapshot, keeps an entry that was never committed: so what is
 * replayed is compared, in its chain of hashes, with every snapshot on the way.
 */
#ifndef RV_WORKER_STATE_CHECKPOINT_INDEX_H
#define RV_WORKER_STATE_CHECKPOINT_INDEX_H

#include "worker/state/state_pieces.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CHECKPOINT_MAX_FILES = 4096, /* of a kind: of more, the newest are known */
	CHECKPOINT_MAX_KEEP = 4000   /* ... so no policy asks for more */
};

struct checkpoint_file {
	uint64_t round;
	uint32_t attempt;    /* LOG */
	bool damaged;        /* it was there, and cannot be used */
	bool has_hash;       /* its header could be read */
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
	uint64_t replica_round; /* this worker has trained in that round; 0: not known */
	bool replica_waits;     /* with all its steps, and goes on with steps ahead of its outer step (overlap-steps) */
};

/* When the full hash of a state is looked at, and a snapshot is kept: every `snapshot_every` rounds (0: never), and after the
 * last of `rounds`. */
struct checkpoint_schedule {
	uint64_t snapshot_every, rounds;
};
/* Returns true if the state of `round` is one of those. */
bool checkpoint_is_due(const struct checkpoint_schedule *s, uint64_t round);

void checkpoint_index_init(struct checkpoint_index *x, bool theta0, const struct rv_hash *run_hash);
/* A file that is there; again: it replaces what was known of it. `attempt`: of a log entry. `hash` NULL: its header
 * cannot be read, and it is damaged. */
void checkpoint_index_add(struct checkpoint_index *x, enum state_kind kind, uint64_t round, uint32_t attempt,
						  const struct rv_hash *hash);
/* It turned out to be of no use. What it proves of others by being there, it still proves. */
void checkpoint_index_damaged(struct checkpoint_index *x, enum state_kind kind, uint64_t round);
/* NULL: there is none. */
const struct checkpoint_file *checkpoint_index_find(const struct checkpoint_index *x, enum state_kind kind,
													uint64_t round);

/* Where a state begins: at a snapshot, or at theta0 (snapshot == false, round 0). */
struct checkpoint_start {
	uint64_t round;
	bool snapshot;
	struct rv_hash chain;
};
/* The newest whole start at or before `round`. false: there is none. */
bool checkpoint_start_before(const struct checkpoint_index *x, uint64_t round, struct checkpoint_start *out);

bool checkpoint_proved(const struct checkpoint_index *x, uint64_t round); /* a whole log entry, and committed */
/* The latest round whose state follows from `from` by proved entries. Where they contradict a snapshot on the way, it is
 * the round up to which they are known to be right. */
uint64_t checkpoint_reach(const struct checkpoint_index *x, const struct checkpoint_start *from);
/* Where a worker begins again: there, but not behind the outer step that its replica waits for: that comes after steps
 * ahead, which it does again. */
uint64_t checkpoint_goal(const struct checkpoint_index *x, const struct checkpoint_start *from);
/* A whole entry of `round` that nothing proves: perhaps this worker's vote. */
bool checkpoint_is_vote(const struct checkpoint_index *x, uint64_t round);
/* A worker that begins again at `round` has its entry at hand: as a vote, or as what its replica waits for. */
bool checkpoint_is_at_hand(const struct checkpoint_index *x, uint64_t round);

struct checkpoint_policy {
	uint64_t keep_snapshots; /* whole ones at or before what joiners start from, at least 1; 0: all */
	uint64_t keep_log;       /* rounds of log that are kept at least, for workers that were away */
};
enum { CHECKPOINT_NAMED_SNAPSHOTS = 4 };
/* What joiners need, as documents say. */
struct checkpoint_named {
	uint64_t vouched_round; /* the snapshot that they start from */
	uint64_t logs_from;     /* some have started before, and need the entries from here on; at most vouched_round */
	int n_snapshots;        /* and some are still fetching these */
	uint64_t snapshots[CHECKPOINT_NAMED_SNAPSHOTS];
};
/* Files of earlier rounds than these may go, but for snapshots that are named. The newest whole snapshot at or before the
 * vouched round, and every entry after it, always stay: with them any later state is made. */
struct checkpoint_keep {
	uint64_t snapshots_from, logs_from;
};
struct checkpoint_keep checkpoint_retention(const struct checkpoint_index *x, const struct checkpoint_policy *policy,
											const struct checkpoint_named *named);
bool checkpoint_keeps_snapshot(const struct checkpoint_keep *keep, const struct checkpoint_named *named,
							   uint64_t round);

#endif
