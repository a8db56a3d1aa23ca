/* round.h: the worker's side of a round, as a state machine without I/O: no sockets, no clock, no threads, no
 * allocation.
 *
 * In:  the run document, and what became of the actions it asked for. Out: actions for the platform, and the report
 * that tells the coordinator where this worker is. The real worker, the simulator and the fuzzers drive the same
 * object.
 *
 *   SYNCING -> TRAINING -> READY -> REDUCING -> VOTED -> (commit) -> TRAINING of the next round
 *
 * A document of a later round with a digest we voted for: apply it. One we did not take part in: fetch the missed
 * rounds' reduced bytes (the round log) or, when too far behind, a snapshot and the log, from peers; verify against the
 * document; apply. Documents reach back before their snapshot, so a snapshot whose fetch is under way is fetched to its end
 * though the run vouches for later ones, and so is the log from there on; reports say what is needed
 * (report.needs_from), that donors keep it. A line that carries the state faster than the run makes new state thus gets
 * in, however often snapshots are made. Local inner progress is kept or discarded by policy. A worker never contributes to
 * a round whose state it does not hold.
 *
 * With overlap_steps (Streaming DiLoCo, arXiv 2501.18512, section 3.2) a worker that has encoded round r goes on with
 * that many inner steps of round r + 1 while r is reduced and voted on, and stops there when it is not committed yet.
 * The outer step of a round that it took part in is applied exactly there, whoever was fast, so the same bits come out
 * everywhere and in the lab; only when the run has gone on without this worker it does not wait for those steps.
 * Between the commit and the outer step it reports TRAINING of round r + 1: the committed bytes are on its disk, and
 * nobody has to bring it anything. Late outer steps (delayed and eager updates, arXiv 2502.12996) are an overlap of all
 * H steps.
 *
 * A bit that flips in theta or v changes no digest (the reduced bytes are right), so it is looked for: every snapshot_every
 * rounds, and after the last one, each worker reports the full hash of its state (round_on_full_hash). The coordinator
 * vouches for the one that more than half of the last participants have; whoever has another is named, fetches that
 * snapshot, and contributes nothing until it is installed. What it gave before is in the mean, as anybody's gradient is.
 * Two workers that differ have no majority: neither is named, no snapshot is vouched for, the run goes on with two states
 * that differ in what flipped; the end is reached unverified. Remove the state of one of them to make it take the
 * other's.
 */
#ifndef RV_WORKER_ROUND_ROUND_H
#define RV_WORKER_ROUND_ROUND_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"

#include <stdbool.h>
#include <stdint.h>

enum late_policy { LATE_KEEP, LATE_DISCARD };

struct round_config {
	uint32_t member;
	uint64_t term; /* in which the platform's state was made: as it last stored it (ROUND_ROLLBACK); 0 at first */
	uint64_t steps_per_round; /* H */
	uint64_t overlap_steps; /* at most H: of the next round, before a round's outer step; never before the last one's */
	/* Steps ahead begin from a start of their own (outer/eager.h): with the first of them a contribution is out of
	 * theta_local. Where its round is committed without it, it is lost, and LATE_KEEP keeps the steps ahead; whom a
	 * roster leaves out before that begins with none. */
	bool gives_away;
	/* Round r exchanges fragment r mod n_fragments (0: 1), which has so many chunks in this worker's vector: a REDUCE
	 * document of another size is refused (0: not checked). */
	uint32_t n_fragments, n_chunks[NET_MAX_FRAGMENTS];
	/* There may have been a process of this member before: up to the round of the first document that this one sees it
	 * may have contributed to any, with steps that are done again, or are in theta_local (fragments, mixing). Until a
	 * roster of such a round without us is seen, it counts as having done so. */
	bool had_former;
	enum late_policy late;
	bool
		theta0_from_peers; /* the state of round 0 cannot be made here: it is fetched as any snapshot, with no `expect`:
							   * the   platform knows what it must be */
	/* As many log entries are as much to fetch as a snapshot: a worker that is so far behind the latest snapshot takes that,
	 * and log entries while it is less (0: as long as documents list their digests). */
	uint32_t logs_per_snapshot;
	uint32_t min_workers; /* of the run; 0: not known, and no KEEP_SNAPSHOT */
	int64_t heartbeat_us; /* a report at least this often; also the pause after a fetch that was no use */
};

/* What the platform is asked to do. At most one of each kind is outstanding; a later one of the same kind supersedes.
 * APPLY, and the installation of a fetched snapshot, stop a TRAIN that is under way at a step boundary: the platform calls
 * round_on_trained with what was done before it calls round_on_applied or round_on_fetched. */
enum round_action_type {
	ROUND_NONE,
	/* Do `steps` inner steps of `round`, from its step `from` on, then round_on_trained; stop at a step boundary when
	 * superseded. Of the round after the one that is held: ahead, while that is reduced; what ENCODE made stays as it
	 * is. */
	ROUND_TRAIN,
	ROUND_ENCODE,         /* encode the outer gradient of `round`, then round_on_encoded */
	ROUND_REDUCE_START,   /* run the all-reduce of the current document (attempt 1 of it for us) */
	ROUND_REDUCE_RESTART, /* same round, later attempt */
	ROUND_REDUCE_STOP,    /* forget it: the round committed, or left us out */
	ROUND_PERSIST,        /* write the reduced bytes of `round` durably, compute the digest, then round_on_persisted */
	ROUND_APPLY,          /* outer step of `round` with the bytes persisted or fetched for it, then round_on_applied */
	ROUND_FETCH_SNAPSHOT, /* get the full state at `round` from other members, check `expect`, install it: theta_local =
						   * theta. made_here (round 0, unless theta0_from_peers): install theta0, nothing to fetch */
	ROUND_FETCH_LOG, /* get the reduced bytes of `round`, check that their digest is `expect`, keep them for APPLY */
	ROUND_CANCEL_FETCH,
	/* The run stands still because others lack the state, and have not got it for a while: perhaps what they need is
	 * damaged on our disk, or on nobody's. Write the state at `round`, which we hold in memory, as a snapshot, then
	 * round_on_full_hash: the coordinator lets joiners start there (coordinator/core/standstill.c). Again after
	 * four times as long, for the disk may have been full. */
	ROUND_KEEP_SNAPSHOT,
	ROUND_PROBE, /* a PERSIST has failed: does the disk take as much now? Then round_on_storage. Every heartbeat */
	/* The run is done: save and exit 0. Comes when the end state is verified, or when a majority's word on it has not
	 * come for a while (round_end_verified tells). */
	ROUND_FINISH,
	/* The operator has taken committed rounds back: `term` began with `round`. Forget what the disk holds of later
	 * states (statestore_rewind), store the term, and start again from the disk with a new core and a new boot:
	 * nothing of before, neither a vote nor a contribution on its way, can be taken for one of the new term. No other
	 * action and no report comes from this core any more. */
	ROUND_ROLLBACK
};

struct round_action {
	enum round_action_type type;
	uint64_t round;
	uint64_t term;         /* ROLLBACK */
	uint64_t from, steps;  /* TRAIN: the global inner step is round * H + from */
	bool made_here;        /* FETCH_SNAPSHOT */
	struct rv_hash expect; /* FETCH_SNAPSHOT: full hash; FETCH_LOG, APPLY: digest */
	struct rv_hash chain;  /* FETCH_SNAPSHOT: state_hash(round) */
	enum late_policy late; /* APPLY: what to do with inner progress (KEEP: add theta's movement to theta_local) */
	/* APPLY: our gradient is in the mean, whatever `late` says: theta_local becomes theta in what the round exchanged,
	 * but for what the run mixes (train/adopt.h); steps ahead are the next round's. */
	bool participated;
};

struct round_core; /* opaque: round_core_size() bytes, the caller's memory */
size_t round_core_size(void);

/* `round`, `chain`: the state that the platform holds (0 and the chain start when fresh; from the checkpoint
 * otherwise). `steps_done`: inner steps already done of that round. `boot` as in struct report. */
struct round_core *round_core_init(void *memory, const struct round_config *cfg, uint64_t boot, uint64_t round,
								   const struct rv_hash *chain, uint64_t steps_done, int64_t now_us);

/* Right after init: the platform holds no state at all; a snapshot comes first. */
void round_lacks_state(struct round_core *c);

/* Right after init: a former process has fetched a part of the snapshot of `round`. It is gone on with when the document
 * still speaks of that snapshot. */
void round_has_part(struct round_core *c, uint64_t round);

/* A verified, decoded document. Not newer than one already seen (seq): ignored. Faults:
 *   RV_E_CORRUPT   it contradicts what this worker knows. A chain that does not continue ours, or a vouched full hash
 * that is not ours: the document is adopted and this worker resyncs from its snapshot. Otherwise (another run, a chain that
 * does not follow from its own digests, a round before the one we hold): it is refused. RV_E_PROTOCOL  a vector of
 * another size than ours; refused. */
enum rv_err round_on_document(struct round_core *c, int64_t now_us, const struct document *d, struct rv_errtext *et);
/* Of an earlier term, or an earlier round, than this worker knows of: from an older copy of the coordinator's store.
 * round_on_document() refuses it. */
bool round_knows_later(const struct round_core *c, const struct document *d);
/* Totals of the contribution to `round` (progress that a late APPLY kept included); of the round after the one that is
 * held: of the steps ahead. May be called at every step. */
void round_on_trained(struct round_core *c, int64_t now_us, uint64_t round, uint64_t steps_done, uint64_t tokens);
/* Behind a round_on_trained of `round`, by at least one step: that was all (run_config.round_ms is over), the
 * contribution has fewer steps than H. */
void round_on_time_up(struct round_core *c, uint64_t round);
/* !ok: as round_on_spoiled. */
void round_on_encoded(struct round_core *c, int64_t now_us, uint64_t round, bool ok);
/* Theta_local is of no use (not finite, too large to be averaged), and the platform has put theta in its place: the
 * round is trained again. Until that is encoded reports say SYNCING: nobody waits for it; it is in time, or late. */
void round_on_spoiled(struct round_core *c, int64_t now_us, uint64_t round);
void round_on_reduced(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt);
/* Also right after init, for a log entry of `round` found on disk: it is this worker's vote again, and need not be
 * fetched. !ok (disk full): tried again every heartbeat; meanwhile the report says LEAVING, so that nobody waits. Until
 * something is stored again reports say REPORT_STORAGE_ROUNDS: the coordinator begins no round with this worker. */
void round_on_persisted(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt,
						const struct rv_hash *digest, bool ok);
/* The answer to PROBE. */
void round_on_storage(struct round_core *c, int64_t now_us, bool ok);
/* !ok: the bytes were not what their digest says, or could not be decoded: fetched again, then from a snapshot. */
void round_on_applied(struct round_core *c, int64_t now_us, uint64_t round, const struct rv_hash *chain, bool ok);
/* A fetch ends with this, or when it is cancelled or superseded: who is asked, and for how long, is the platform's
 * matter; its own disk is the first (what a former process left there may be what the document names). FETCH_SNAPSHOT ok:
 * installed. !ok: it was no use; asked for again after a pause. */
void round_on_fetched(struct round_core *c, int64_t now_us, enum round_action_type kind, uint64_t round, bool ok);
/* Nobody who can be asked has the file that is being fetched. As long as that is so, at any time: where it is of before
 * the document's snapshot, this worker goes on from that snapshot. */
void round_on_lacking(struct round_core *c, int64_t now_us);
/* What will be fetched after `a` (a FETCH action) if nothing new happens: it can be fetched ahead. False: nothing. */
bool round_fetch_after(const struct round_core *c, const struct round_action *a, struct round_action *out);
/* The full hash of the state that this worker held at `round`, at most the one it holds now: it is reported, and
 * compared with what a majority vouches for. RV_E_CORRUPT: it is another; the worker resyncs from that snapshot. */
enum rv_err round_on_full_hash(struct round_core *c, uint64_t round, const struct rv_hash *hash, struct rv_errtext *et);
/* Peers that the all-reduce of `attempt` finds silent: a set of indices into its roster. */
void round_on_suspects(struct round_core *c, int64_t now_us, uint32_t attempt, uint64_t suspects);
/* Good-bye: stops what is under way and reports LEAVING from now on. */
void round_leave(struct round_core *c, int64_t now_us);

/* The next action, or false when there is nothing new to do. */
bool round_next_action(struct round_core *c, int64_t now_us, struct round_action *out);
/* True when a report should be sent now (a change, or the heartbeat is due); fills the protocol fields, not the ones
 * for people nor addr. */
bool round_next_report(struct round_core *c, int64_t now_us, struct report *out);
int64_t round_deadline_us(const struct round_core *c); /* call next_action and next_report then, at the latest */
const struct document *round_document(const struct round_core *c); /* latest, or NULL */
enum worker_phase round_phase(const struct round_core *c);
uint64_t round_round(const struct round_core *c);
uint64_t round_boot(const struct round_core *c); /* as its reports say it */
/* What this worker has to fetch nobody in the document can give: the others have gone. */
bool round_lacks_donors(const struct round_core *c);
/* It has not got in, and the run has moved further than documents reach back: its line carries less than the run
 * makes. */
bool round_starves(const struct round_core *c);
/* The run is done, and our full hash of its last state is the one that a majority vouches for. */
bool round_end_verified(const struct round_core *c);

#endif
