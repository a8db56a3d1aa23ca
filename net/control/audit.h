/* audit.h: audits of committed averages, as documents order them and reports answer them
 * (coordinator/core/audits.c, worker/audit/auditor.h).
 *
 * After a commit the coordinator draws chunks of the round and, for each, a participant that does
 * not own it: the *auditor*. It fetches that chunk of every contribution, checks it against its
 * sender's contribution root, merges again by the run's rule, and compares the result with the
 * bytes that were committed. */
#ifndef RV_NET_CONTROL_AUDIT_H
#define RV_NET_CONTROL_AUDIT_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "net/limits.h"

#include <stdint.h>

/* In a roster of several rows (net/reduce/grid.h) either the sum of a row is audited, as an average
 * of its members, or what the final owner made of the sums of all rows. First that one is asked to
 * show which sums the rows have given it (net/control/shown_sums.h). */
enum audit_kind {
	AUDIT_OF_AVERAGE,
	AUDIT_OF_SUM,  /* of the receiver's row */
	AUDIT_OF_MEAN, /* of the sums that `member` has */
	AUDIT_SHOW,    /* no audit: the receiver is to show the sums of the chunk */
	AUDIT_KINDS
};
/* A task for the receiver of a document. */
struct audit_order {
	uint64_t round;     /* committed */
	uint32_t attempt;   /* the one that was committed */
	uint32_t chunk;     /* of what the round exchanged */
	uint8_t kind;       /* enum audit_kind */
	uint32_t member;    /* OF_MEAN; else 0 */
	struct rv_hash sum; /* OF_SUM: the leaf that its owner has signed; OF_MEAN: shown_sums_hash(); else zero */
};

enum audit_verdict {
	AUDIT_RIGHT = 1, /* the committed bytes are the merge of the committed contributions; so is what was signed */
	AUDIT_WRONG,     /* they are not: `found` is the hash of what is, or says that this worker lacks some */
	AUDIT_WITHHELD,  /* `member` gave nothing, or bytes that are not what it has committed to, or shown */
	AUDIT_UNABLE,    /* no link of its own to `member`; or, NET_NO_MEMBER, this worker lacks what it needs itself */
	AUDIT_VERDICTS
};
struct audit_result {
	uint64_t round;
	uint32_t chunk;
	uint8_t verdict;      /* enum audit_verdict */
	uint32_t member;      /* WITHHELD, UNABLE; else NET_NO_MEMBER */
	struct rv_hash found; /* WRONG: leaf (base/merkle.h) of the merge, or audit_beyond(); else zero */
};

/* Returns what an auditor has found that lacks contributions, if no such ones give the committed
 * bytes (outer/merge_reach.h): H("rivulet audit beyond"). It agrees with whatever those found that
 * had them all. */
struct rv_hash audit_beyond(void);

/* Returns the hash that a document promises for a secret before it is used: H("rivulet audit
 * promise" | secret). */
struct rv_hash audit_promise_of(const struct rv_hash *secret);
/* Returns the seed of a round's draws: H("rivulet audit" | secret | digest of the round). */
struct rv_hash audit_seed_of(const struct rv_hash *secret, const struct rv_hash *digest);
/* Returns number `i` of a seed's draws, from 0 to below `below`. */
uint32_t audit_draw(const struct rv_hash *seed, uint32_t i, uint32_t below);

/* Check lists that were read. RV_E_INVALID names the entry. */
enum rv_err audit_orders_check(const struct audit_order *orders, int n, uint64_t open_round, struct rv_errtext *et);
enum rv_err audit_results_check(const struct audit_result *results, int n, struct rv_errtext *et);

#endif
