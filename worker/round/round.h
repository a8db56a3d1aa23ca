/* round.h: the worker's side of a round, as a state machine without I/O: no sockets, no clock, no
 * threads, no allocation.
 *
 * In: the run document, and the results of the actions that the core asked for. Out: actions for
 * the platform, and the report by which the coordinator knows this worker's phase. The real worker,
 * the simulator and the fuzzers drive the same object.
 *
 *   SYNCING -> TRAINING -> READY -> REDUCING -> VOTED -> (commit) -> TRAINING of the next round
 *
 * When a document names a later round with the digest that this worker voted for, the core applies
 * the round. When the worker did not take part, the core fetches the missed rounds' reduced bytes
 * (log entries) or, if it is too far behind, a snapshot and the log entries after it, from peers;
 * verifies them against the document; and applies them. Documents reach back before their snapshot,
 * so the core completes a fetch that is under way, and the log entries after it, even if the run
 * vouches for later snapshots; reports state what it needs (report.needs_from) so that donors keep
 * it. A joiner thus catches up whenever its bandwidth exceeds the rate of new state, no matter how
 * often snapshots are taken. `late` decides whether inner progress is kept. A worker never
 * contributes to a round whose state it does not hold.
 *
 * With overlap_steps (Streaming DiLoCo, arXiv 2501.18512, section 3.2) a worker that has encoded
 * round r goes on with that many inner steps of round r + 1 while r is reduced and voted on, and
 * stops there if r is not committed yet. The outer step of a round that it took part in is applied
 * exactly after those steps, so all workers and the lab compute the same bits; only if the run went
 * on without this worker it does not wait for those steps. Between the commit and the outer step it
 * reports TRAINING of round r + 1: the committed bytes are on its disk, and it needs nothing from
 * peers. Late outer steps (delayed and eager updates, arXiv 2502.12996) are an overlap of all H
 * steps.
 *
 * A bit that flips in theta or v changes no digest (the reduced bytes are right). Therefore each
 * worker reports the full hash of its state (round_on_full_hash) every snapshot_every rounds and
 * after the last one. The coordinator vouches for the hash that more than half of the last
 * participants report, and names a member that has another; that member fetches the snapshot and
 * contributes nothing until it is installed. Its earlier contributions stay in the means. Two
 * workers that differ have no majority: neither is named, no snapshot is vouched for, the run goes
 * on with two states that differ in what flipped, and ends unverified. Remove the state of one of
 * them to make it take the other's. */
#ifndef RV_WORKER_ROUND_ROUND_H
#define RV_WORKER_ROUND_ROUND_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"
#include "net/reduce/grid.h"
#include "train/participant/progress.h"
#include "train/text/reading.h"

#include <stdbool.h>
#include <stdint.h>

enum late_policy { LATE_KEEP, LATE_DISCARD };

struct round_config {
	uint32_t member;
	/* The configuration and the rounds that the worker's person agreed to: a document of others is
	 * refused. Zero: not checked. */
	struct rv_hash run_hash;
	uint64_t rounds;
	struct seal_ops seals;    /* check the roots that rosters name; verify NULL: they are not checked */
	uint64_t term;            /* term of the platform's state, as it last stored it (ROUND_ROLLBACK); 0 at first */
	uint64_t steps_per_round; /* H */
	/* Sequences of a step, in a run that leases them (document.leases): this worker trains on what
	 * it holds only. A contribution ends early where its leases do, and one whose leases were given
	 * to others is lost: its round is trained again. 0: there are no leases. */
	uint32_t step_sequences;
	uint64_t overlap_steps; /* steps of the next round before a round's outer step, at most H; none before the last */
	/* Steps ahead begin from a start of their own (outer/eager.h), which takes the contribution out
	 * of theta_local. If its round is committed without it, it is lost, and LATE_KEEP keeps the
	 * steps ahead; a member that a roster leaves out before that begins with none. */
	bool gives_away;
	/* Round r exchanges fragment r mod n_fragments (0: 1), which has so many chunks in this
	 * worker's vector: a REDUCE document of another size is refused (0: not checked). */
	uint32_t n_fragments, n_chunks[NET_MAX_FRAGMENTS];
	/* An earlier process of this member may have contributed to any round up to that of the first
	 * document that this one sees, with steps that are done again, or are in theta_local
	 * (fragments, mixing). It counts as having done so until a roster of such a round without this
	 * member is seen. */
	bool had_former;
	enum late_policy late;
	/* The state of round 0 cannot be made here: it is fetched like any snapshot, without `expect`;
	 * the platform knows what it must be. */
	bool theta0_from_peers;
	/* Log entries that are as many bytes as a snapshot. A worker that is that many rounds behind
	 * fetches the snapshot, else log entries. 0: log entries as long as documents list their
	 * digests. */
	uint32_t logs_per_snapshot;
	uint32_t min_workers; /* of the run; 0: not known, and no KEEP_SNAPSHOT */
	int64_t heartbeat_us; /* longest time between reports; also the pause after a fetch that failed */
};

/* Actions for the platform. At most one of each kind is outstanding; a later one of the same kind
 * supersedes it. APPLY, and the installation of a fetched snapshot, stop a TRAIN that is under way
 * at a step boundary: the platform calls round_on_trained with what was done before it calls
 * round_on_applied or round_on_fetched. */
enum round_action_type {
	ROUND_NONE,
	/* Do `steps` inner steps of `round`, from its step `from` on, then round_on_trained; stop at a
	 * step boundary when superseded. Steps of the round after the one that is held are ahead, while
	 * that is reduced; what ENCODE made stays unchanged. */
	ROUND_TRAIN,
	ROUND_ENCODE,         /* encode the outer gradient of `round`, then round_on_encoded */
	ROUND_REDUCE_START,   /* run the all-reduce of the current document, the first attempt that names this worker */
	ROUND_REDUCE_RESTART, /* same round, later attempt */
	ROUND_REDUCE_STOP,    /* drop it: the round is committed, or its roster leaves this worker out */
	ROUND_PERSIST,        /* write the reduced bytes of `round` durably, compute the digest, then round_on_persisted */
	ROUND_APPLY,          /* outer step of `round` with the bytes persisted or fetched for it, then round_on_applied */
	/* get the full state at `round` from other members, check `expect`, install it: theta_local =
	 * theta. made_here (round 0, unless theta0_from_peers): install theta0, nothing to fetch */
	ROUND_FETCH_SNAPSHOT,
	ROUND_FETCH_LOG, /* get the reduced bytes of `round`, check that their digest is `expect`, keep them for APPLY */
	ROUND_CANCEL_FETCH,
	/* The run stands still because others have lacked the state for a while: perhaps what they need
	 * is damaged on this worker's disk, or on no disk. Write the state at `round`, which is in
	 * memory, as a snapshot, then call round_on_full_hash: the coordinator lets joiners start there
	 * (coordinator/core/standstill.c). Repeated after four times as long, in case the disk was
	 * full. */
	ROUND_KEEP_SNAPSHOT,
	ROUND_PROBE, /* a PERSIST has failed: try, each heartbeat, whether the disk has room now, then round_on_storage */
	/* The run is done: save and exit 0. Asked for when the end state is verified, or when no
	 * majority has reported its hash for a while (see round_end_verified). */
	ROUND_FINISH,
	/* The operator has taken committed rounds back: `term` began with `round`. Remove later states
	 * from the disk (statestore_rewind), store the term, and start again from the disk with a new
	 * core and a new boot, so that no vote or contribution from before can count in the new term.
	 * This core asks for no further action and sends no further report. */
	ROUND_ROLLBACK
};

struct round_action {
	enum round_action_type type;
	uint64_t round;
	uint64_t term;         /* ROLLBACK */
	uint64_t from, steps;  /* TRAIN: the global inner step is round * H + from */
	bool starts_over;      /* TRAIN: theta_local becomes theta first: the contribution's leases are lost */
	bool made_here;        /* FETCH_SNAPSHOT */
	struct rv_hash expect; /* FETCH_SNAPSHOT: full hash; FETCH_LOG, APPLY: digest */
	struct rv_hash chain;  /* FETCH_SNAPSHOT: state_hash(round) */
	enum late_policy late; /* APPLY: what to do with inner progress (KEEP: add theta's movement to theta_local) */
	/* APPLY: this worker's gradient is in the mean, and `late` does not matter: theta_local becomes
	 * theta in what the round exchanged, except what the run mixes (participant_mix,
	 * train/participant/participant.h); steps ahead are the next round's. */
	bool participated;
};

struct round_core; /* opaque: round_core_size() bytes of the caller's memory */
size_t round_core_size(void);

/* Initializes a core. `round`, `chain`: the state that the platform holds (0 and the chain's start
 * if new, else from the checkpoint). `progress`: inner steps of that round already done. `boot`
 * as in struct report. */
struct round_core *round_core_init(void *memory, const struct round_config *cfg, uint64_t boot, uint64_t round,
								   const struct rv_hash *chain, const struct participant_progress *progress,
								   int64_t now_us);

/* Records, right after init, that the platform holds no state at all: a snapshot is fetched
 * first. */
void round_lacks_state(struct round_core *c);

/* Records, right after init, that an earlier process fetched a part of the snapshot of `round`. Its
 * fetch continues if the document still names that snapshot. */
void round_has_part(struct round_core *c, uint64_t round);

/* Takes a verified, decoded document; ignores one that is not newer (seq). RV_E_CORRUPT: it
 * contradicts what this worker knows. If its chain does not continue this worker's, or its
 * vouched full hash differs, the core adopts the document and resyncs from its snapshot;
 * otherwise (another run, or another number of rounds; a chain that does not follow from its own
 * digests; a round before the one held) it refuses the document. RV_E_PROTOCOL: a vector of
 * another size; refused. */
enum rv_err round_on_document(struct round_core *c, const struct document *d, struct rv_errtext *et);
/* Returns true if `d` is older than what this worker has already followed: the coordinator was
 * restored from an old backup. round_on_document() refuses such a document. */
bool round_knows_later(const struct round_core *c, const struct document *d);
/* Reports what theta_local contains after steps of `round`, the one held or the one after it. May
 * be called at every step. */
void round_on_trained(struct round_core *c, uint64_t round, const struct participant_progress *progress);
/* Reports, after a round_on_trained of `round` with at least one step, that run_config.round_ms is
 * over: the contribution has fewer steps than H. */
void round_on_time_up(struct round_core *c, uint64_t round);
/* Sets *out to the sequences that the contribution to this worker's round has read; returns false
 * if there are none, or no leases. */
bool round_contribution_text(const struct round_core *c, struct reading *out);
/* Reports, after a round_on_trained, that TRAIN ended early because the leases that it was given
 * did. */
void round_on_read_out(struct round_core *c, uint64_t round);
/* Reports the end of ENCODE; the commitment goes into reports. If it is another one than this
 * process has committed to in this round before, it counts as a later process (round_boot). NULL:
 * as round_on_spoiled. */
void round_on_encoded(struct round_core *c, uint64_t round, const struct commitment *commitment);
/* Reports that theta_local is unusable (NaN, or too large to be averaged) and that the platform has
 * replaced it by theta: the round is trained again. Until that is encoded reports state SYNCING, so
 * that rounds do not wait for it. */
void round_on_spoiled(struct round_core *c, uint64_t round);
void round_on_reduced(struct round_core *c, uint64_t round, uint32_t attempt);
/* Reports the end of PERSIST; also called right after init for a log entry of `round` found on
 * disk, which is this worker's vote again and need not be fetched. !ok (disk full): retried each
 * heartbeat; meanwhile reports state LEAVING, so that rounds do not wait. Until something is stored
 * again reports carry REPORT_STORAGE_ROUNDS, and the coordinator begins no round with this
 * worker. */
void round_on_persisted(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt,
						const struct rv_hash *digest, bool ok);
/* Answers PROBE. */
void round_on_storage(struct round_core *c, int64_t now_us, bool ok);
/* Reports the end of APPLY; `progress`: what theta_local contains after it. !ok: the bytes do not
 * match their digest or cannot be decoded: they are fetched again, then a snapshot is. */
void round_on_applied(struct round_core *c, uint64_t round, const struct rv_hash *chain,
					  const struct participant_progress *progress, bool ok);
/* Ends a fetch, unless it is cancelled or superseded. The platform decides which donors it asks and
 * for how long; it looks at its own disk first (an earlier process may have left what the document
 * names). ok: a snapshot is installed. !ok: the core asks again after a pause. */
void round_on_fetched(struct round_core *c, int64_t now_us, enum round_action_type kind, uint64_t round, bool ok);
/* A log entry that was wanted once, of a digest that a signed document committed, is on this
 * worker's disk, although nothing waits for it. Returns true if it proves the round that this
 * worker is in. */
bool round_on_stored_late(struct round_core *c, uint64_t round, const struct rv_hash *digest);
/* Reports, at any time while it is true, that no reachable donor has the file being fetched. If the
 * file is older than the document's snapshot, this worker fetches that snapshot instead; if it is
 * that snapshot, the log entries that lead to it, however many: members that lost all later state
 * return together to the latest round that their disks make. */
void round_on_lacking(struct round_core *c, int64_t now_us);
/* Sets *out to what is fetched after `a` (a FETCH action) if nothing new happens, so that it can be
 * fetched ahead. Returns false if nothing is. */
bool round_fetch_after(const struct round_core *c, const struct round_action *a, struct round_action *out);
/* Takes the full hash of the state that this worker held at `round`, at most the round it holds
 * now: it is reported, and compared with the hash that a majority vouches for. RV_E_CORRUPT: they
 * differ; the worker resyncs from that snapshot. */
enum rv_err round_on_full_hash(struct round_core *c, uint64_t round, const struct rv_hash *hash, struct rv_errtext *et);
/* Takes the peers that the all-reduce of `attempt` finds silent. */
void round_on_suspects(struct round_core *c, uint32_t attempt, const struct grid_suspects *suspects);
/* Reports that the coordinator does not answer, or answers again. At the end of a run, after its
 * last commit, this worker waits for less then. */
void round_on_away(struct round_core *c, int64_t now_us, bool away);
/* Stops what is under way; reports state LEAVING from now on. */
void round_leave(struct round_core *c);
/* Pauses, or ends a pause: a paused worker reports LEAVING, so that rounds go on without it, and
 * asks for no work but what ends an all-reduce or a fetch. Heartbeats are rare meanwhile. Steps
 * under way stay as they are (the platform holds them back), and so does a vote that is on disk;
 * afterwards the worker catches up. */
void round_pause(struct round_core *c, bool paused);

/* Sets *out to the next action; returns false if there is nothing new to do. */
bool round_next_action(struct round_core *c, int64_t now_us, struct round_action *out);
/* Returns true if a report is due (a change, or the heartbeat), and fills its protocol fields, not
 * `candidates` nor the fields for people. */
bool round_next_report(struct round_core *c, int64_t now_us, struct report *out);
/* Makes a report due: what the platform adds to it has changed. */
void round_report_soon(struct round_core *c);
/* Returns when next_action and next_report must be called again, at the latest. */
int64_t round_deadline_us(const struct round_core *c);
/* Sets *out to what the document says that this worker holds of the text. */
void round_reading(const struct round_core *c, struct reading *out);
const struct document *round_document(const struct round_core *c); /* latest, or NULL */
enum worker_phase round_phase(const struct round_core *c);
uint64_t round_round(const struct round_core *c);
uint64_t round_boot(const struct round_core *c); /* as in its reports */
/* Sets *out to the proof that a participant has signed two contributions to one round, as documents
 * have shown; returns false if there is none. */
bool round_two_roots(const struct round_core *c, struct equivocation *out);
/* Returns true if no member in the document can give what this worker must fetch: the others have
 * gone. */
bool round_lacks_donors(const struct round_core *c);
/* Returns true if this worker, not in a round yet, falls further behind than documents reach back:
 * its bandwidth is below the rate of new state. */
bool round_starves(const struct round_core *c);
/* Returns true if the run is done and a majority vouches for this worker's full hash of the last
 * state. */
bool round_end_verified(const struct round_core *c);

#endif
