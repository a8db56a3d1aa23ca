/* seal.h: what a member signs of its contribution, and an owner of the means that it gives out;
 * and the proof that it signed two.
 *
 * In an attempt an owner makes the mean of each of its chunks once, and so has one list of their
 * leaves (merkle_leaf: a chunk's number and bytes), in ascending order. A *seal* is its signature
 * over the root of that list, and over what the list is: the attempt with its roster, and whether
 * the means are those of a row or of a column. A receiver takes no mean for which it has no seal.
 * In the same way the owner of a row signs the sums that it gives to the final owner of a column.
 * And before a roster is known, each member signs the root over its contribution's chunks, as the
 * contribution of this process to this round (seal_scope_of_contribution): the coordinator can name
 * no other root than that.
 *
 * Two seals over one scope with different roots prove an *equivocation*: an honest member never
 * makes them, whatever others send, for the scope names the process that contributes; one that
 * makes its contribution again is a later process (report.boot). */
#ifndef RV_NET_SEAL_H
#define RV_NET_SEAL_H

#include "base/bytes.h"
#include "base/hash.h"
#include "net/identity.h"
#include "net/limits.h"

enum seal_kind {
	SEAL_ROW,         /* the means that an owner gives to its row; with one row to all participants */
	SEAL_COLUMN,      /* the means of a column's chunks of which it is the final owner, given to the column */
	SEAL_SUMS,        /* the sums of its row of the chunks of one final owner, given to that one */
	SEAL_CONTRIBUTION /* the chunks of its own contribution, in one codec */
};

struct seal_scope {
	uint8_t run_id[NET_RUN_ID_BYTES];
	/* document.roster_hash: names term, round and attempt, too. CONTRIBUTION: H("rivulet process" |
	 * term u64 | round u64 | boot u64), for it holds in every attempt. */
	struct rv_hash roster;
	uint64_t term, round;
	uint32_t attempt; /* CONTRIBUTION: 0 */
	uint8_t kind;     /* enum seal_kind */
	uint32_t first;   /* ROW: the row; COLUMN: the first chunk of the column; SUMS: of the list; CONTRIBUTION: codec */
};
/* Names a contribution of a member. */
struct contribution_of {
	uint64_t term, round;
	uint64_t boot; /* report.boot of the process that made it */
	uint8_t codec; /* its id; 0: the run's */
};
struct seal_scope seal_scope_of_contribution(const uint8_t run_id[NET_RUN_ID_BYTES], const struct contribution_of *of);

struct seal {
	struct rv_hash root; /* over the leaves of the owner's means, or of the contribution (base/merkle.h) */
	uint8_t signature[NET_SIG_BYTES];
};
enum { SEAL_BYTES = RV_HASH_BYTES + NET_SIG_BYTES };

/* A seal as its receiver holds it. */
struct owner_seal {
	uint32_t member; /* that has signed */
	uint8_t kind;    /* as seal_scope */
	uint32_t first;
	struct seal seal;
};

/* Sign and check: Ed25519 over "rivulet means" NUL (CONTRIBUTION: "rivulet contribution" NUL) | run
 * id | roster | term u64 | round u64 | attempt u32 | kind u8 | first u32 | root. */
void seal_sign(const struct identity *owner, const struct seal_scope *scope, const struct rv_hash *root,
			   struct seal *out);
bool seal_verify(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct seal *seal);
bool seal_scope_equal(const struct seal_scope *a, const struct seal_scope *b);

/* Signatures as the cores reach them: the simulator has cheap ones. */
struct seal_ops {
	void *ctx;
	void (*sign)(void *ctx, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out);
	bool (*verify)(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal);
};
/* Returns Ed25519; `identity` signs, NULL: nobody does. */
struct seal_ops seal_ed25519(const struct identity *identity);

struct equivocation {
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	struct seal_scope scope;
	uint32_t chunk; /* the first that differs, for people; NET_MAX_CHUNKS: not known */
	struct seal seals[2];
};
/* Returns true if it proves that the holder of the key has signed two different lists. */
bool equivocation_proves(const struct equivocation *e, const struct seal_ops *ops);
/* Without the run id, which the reader knows. Reading sets scope.run_id to `run_id`. */
enum { EQUIVOCATION_BYTES = 4 + NET_KEY_BYTES + RV_HASH_BYTES + 8 + 8 + 4 + 1 + 4 + 4 + 2 * SEAL_BYTES };
void equivocation_write(const struct equivocation *e, struct rv_writer *w);
/* Reads one. RV_E_INVALID: an unknown kind, or a chunk past the last; too few bytes fail `r`. */
enum rv_err equivocation_read(struct rv_reader *r, const uint8_t run_id[NET_RUN_ID_BYTES], struct equivocation *out,
							  struct rv_errtext *et);

#endif
