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
 * rounds' reduced bytes (the round log) or, when too far behind, a base and the log, from peers; verify against the
 * document; apply. Local inner progress is kept or discarded by policy. A worker never contributes to a round whose
 * state it does not hold.
 */
#ifndef RV_WORKER_ROUND_H
#define RV_WORKER_ROUND_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control.h"

#include <stdbool.h>
#include <stdint.h>

enum late_policy { LATE_KEEP, LATE_DISCARD };

struct round_config {
	uint32_t member;
	uint64_t steps_per_round; /* H */
	enum late_policy late;
	int64_t heartbeat_us;     /* a report at least this often */
	int64_t fetch_timeout_us; /* a donor that delivers nothing for so long is left for the next one */
};

/* What the platform is asked to do. At most one of each kind is outstanding; a later one of the same kind supersedes.
 */
enum round_action_type {
	ROUND_NONE,
	ROUND_TRAIN,          /* do `steps` inner steps, then round_on_trained; stop at a step boundary when superseded */
	ROUND_ENCODE,         /* encode the outer gradient of `round`, then round_on_encoded */
	ROUND_REDUCE_START,   /* run the all-reduce of the current document (attempt 1 of it for us) */
	ROUND_REDUCE_RESTART, /* same round, later attempt */
	ROUND_REDUCE_STOP,    /* forget it: the round committed, or left us out */
	ROUND_PERSIST,        /* write the reduced bytes of `round` durably, compute the digest, then round_on_persisted */
	ROUND_APPLY,          /* outer step of `round` with the bytes persisted or fetched for it, then round_on_applied */
	ROUND_FETCH_BASE,     /* fetch the full state at `round` from document member `donor`, check `expect`, install it */
	ROUND_FETCH_LOG, /* fetch the reduced bytes of `round` from `donor`, check that their digest is `expect`, keep them
					  */
	ROUND_CANCEL_FETCH,
	ROUND_FINISH /* the run is done: save and exit 0 */
};

struct round_action {
	enum round_action_type type;
	uint64_t round;
	uint64_t steps;        /* TRAIN: how many more of this round's H */
	int donor;             /* FETCH_*: index into the document's members */
	struct rv_hash expect; /* FETCH_BASE: full hash; FETCH_LOG, APPLY: digest */
	enum late_policy late; /* APPLY: what to do with inner progress (KEEP: add theta's movement to theta_local) */
	bool participated;     /* APPLY: theta_local is replaced by theta in any case */
};

struct round_core; /* opaque: round_core_size() bytes, the caller's memory */
size_t round_core_size(void);

/* `round`, `chain`: the state that the platform holds (0 and the chain start when fresh; from the checkpoint
 * otherwise). `steps_done`: inner steps already done of that round. `boot` as in struct report. */
struct round_core *round_core_init(void *memory, const struct round_config *cfg, uint64_t boot, uint64_t round,
								   const struct rv_hash *chain, uint64_t steps_done, int64_t now_us);

/* A verified, decoded document. Older seq than one already seen: ignored. RV_E_CORRUPT when it contradicts what this
 * worker knows (another run, chain that does not continue ours): the text says what; the worker resyncs from a base. */
enum rv_err round_on_document(struct round_core *c, int64_t now_us, const struct document *d, struct rv_errtext *et);
void round_on_trained(struct round_core *c, int64_t now_us, uint64_t round, uint64_t steps_done, uint64_t tokens);
void round_on_encoded(struct round_core *c, int64_t now_us, uint64_t round, bool ok);
void round_on_reduced(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt);
void round_on_persisted(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt,
						const struct rv_hash *digest, bool ok);
void round_on_applied(struct round_core *c, int64_t now_us, uint64_t round, const struct rv_hash *chain, bool ok);
void round_on_fetched(struct round_core *c, int64_t now_us, enum round_action_type kind, uint64_t round, bool ok);
void round_on_fetch_progress(struct round_core *c, int64_t now_us);
void round_on_full_hash(struct round_core *c, uint64_t round, const struct rv_hash *hash);
void round_on_suspects(struct round_core *c, int64_t now_us, uint32_t attempt, uint64_t suspects);
void round_leave(struct round_core *c, int64_t now_us);

/* The next action, or false when there is nothing new to do. */
bool round_next_action(struct round_core *c, int64_t now_us, struct round_action *out);
/* True when a report should be sent now (a change, or the heartbeat is due); fills the protocol fields, not the ones
 * for people nor addr. */
bool round_next_report(struct round_core *c, int64_t now_us, struct report *out);
int64_t round_deadline_us(const struct round_core *c);
const struct document *round_document(const struct round_core *c); /* latest, or NULL */
enum worker_phase round_phase(const struct round_core *c);
uint64_t round_round(const struct round_core *c);

#endif
