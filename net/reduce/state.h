/* state.h: the inside of struct reduce, shared by reduce*.c. Internal to net/.
 *
 * Peers are kept in *slots*, because they outlive a roster; messages name them by roster index. A
 * slot belongs to one member until another needs it and that one is no longer in the roster.
 * Bitmaps have one bit per chunk. */
#ifndef RV_NET_REDUCE_STATE_H
#define RV_NET_REDUCE_STATE_H

#include "base/planted.h"
#include "base/slow_lines.h"
#include "net/reduce/reduce.h"

struct reduce_peer {
	uint32_t member;       /* to which the slot belongs, if `taken` */
	bool taken, present;   /* present: in the roster */
	uint64_t boot;         /* the process whose contributions are held */
	uint8_t codec;         /* of these contributions */
	struct rv_hash root;   /* that they were committed to */
	uint32_t boot_attempt; /* the first attempt in which we know of it: older frames are of a former process */
	/* link */
	bool up;
	bool lost; /* refused or reset: a suspect until the link is up again */
	bool bad;  /* broke the protocol: refused for the rest of the round, and a suspect where it deals */
	/* RESUME handshake (docs/protocol.md): bulk flows once the peer's bitmap is known to be
	 * exact */
	bool heard;      /* its RESUME of this attempt arrived on this link */
	bool flowing;    /* its bitmap is applied: `delivered` is what it holds or what this link will bring it */
	bool sent_bulk;  /* bulk went out on this link since its last exact bitmap */
	bool resume_due; /* this side owes it a RESUME */
	bool ping_due;
	bool seal_due; /* this side owes it its seal, once that is made */
	/* bulk: where to look for the next chunk to send */
	uint32_t scatter_next; /* chunk */
	uint32_t leaves_next;  /* chunk: leaves of those below, of its own, went out on this link */
	uint32_t gather_next;  /* index into reduce->order */
	struct reduce_load load;
	uint64_t again; /* chunks that went out to it in this attempt, and had before */
	/* liveness */
	uint32_t owes_scatter; /* its contributions to own chunks that are missing here */
	uint32_t owes_gather;  /* its reduced chunks that are missing here */
	bool owes_seal;        /* a seal that fits them is missing here */
	bool has_seal;         /* one of this attempt is here, whether it fits or not */
	struct seal seal;
	/* sums.c: own ones for it that are not made yet; the list of these, signed, and owed to it; and
	 * of its sums, the list that it has signed: one that fits is missing here, or one is here. */
	uint32_t unmade_sums;
	bool has_given, sums_due;
	bool owes_sums, has_sums;
	struct seal given, sums;
	bool complete; /* its PING of this attempt states that it lacks no contribution */
	bool silent, stalled;
	int64_t heard_us;    /* last whole message */
	int64_t progress_us; /* last data from it, or when its debt began: the attempt, the link, `complete` */
	int64_t sent_us;     /* last message to it */
	int64_t given_us;    /* when the last contribution that it owed came; 0: it owes some, or owed none */
};

struct reduce {
	struct reduce_config cfg;
	struct reduce_memory mem;
	/* roster */
	uint64_t round;
	uint32_t attempt;
	int n_members, self; /* roster index */
	struct reduce_place places[NET_MAX_ROW];
	uint8_t slot[NET_MAX_ROW]; /* by roster index */
	bool owns[NET_MAX_ROW];    /* by roster index: any chunk */
	/* chunks: views into mem.flags */
	size_t bitmap_bytes;
	uint32_t *order;                 /* (n_chunks) own chunks in the order in which they were reduced */
	uint32_t *ready;                 /* (n_chunks) chunks for reduce_take */
	uint8_t *owner;                  /* (n_chunks) roster index */
	uint8_t *reduced;                /* bitmap: mem.reduced holds this attempt's bytes */
	uint8_t *summed;                 /* bitmap, later_mean: codec.reduce was called with this roster's contributions */
	uint8_t *resume;                 /* bitmap: the outgoing RESUME */
	uint8_t *held[NET_MAX_ROW];      /* bitmap by slot: mem.held holds its contribution (any attempt of the round) */
	uint8_t *delivered[NET_MAX_ROW]; /* bitmap by slot: chunks that it no longer needs from here */
	uint8_t *sent[NET_MAX_ROW];      /* bitmap by slot: chunks that went out to it, in any attempt */
	uint8_t *proven[NET_MAX_ROW];    /* bitmap by slot: mem.leaves has the leaf of its contribution */
	uint32_t n_own;                  /* own chunks */
	uint32_t n_order, n_reduced;
	uint32_t n_ready, n_taken;
	uint32_t n_waiting;   /* own chunks that lack contributions */
	uint32_t n_unoffered; /* later_own: chunks that lack this participant's; own ones among them: */
	uint32_t n_own_unoffered;
	int64_t due_us;                        /* when this attempt's debts must be paid; INT64_MAX: no deadline is known */
	struct reduce_peer peers[NET_MAX_ROW]; /* by slot */
	struct seal_scope scope;
	bool may_seal, has_own_seal;
	struct seal own_seal;
	uint8_t seal_bytes[SEAL_BYTES]; /* the outgoing SEAL */
	bool has_twice;
	struct equivocation twice;
	struct reduce_info info;
	bool restarted; /* another attempt of this round came before: contributions were here at its begin */
};

/* ---- invariants.c ---- */

/* Asserts that debts, counters and cursors agree: a pass over the roster. */
void reduce_check(const struct reduce *r);
/* Asserts the same chunk by chunk, from the bitmaps: at the start of an attempt and at its end. */
void reduce_check_chunks(const struct reduce *r);

static inline bool reduce_bit(const uint8_t *map, uint32_t chunk) {
	return (map[chunk >> 3] >> (chunk & 7)) & 1;
}

static inline void reduce_bit_set(uint8_t *map, uint32_t chunk) {
	map[chunk >> 3] |= (uint8_t)(1u << (chunk & 7));
}

/* Returns the peer at a roster index. */
static inline struct reduce_peer *reduce_peer_at(struct reduce *r, int index) {
	return &r->peers[r->slot[index]];
}

/* Returns true if the contribution of the participant at `index` is here. This one's always is,
 * unless it comes later. */
static inline bool reduce_holds(const struct reduce *r, int index, uint32_t chunk) {
	return (index == r->self && !r->cfg.later_own) || reduce_bit(r->held[r->slot[index]], chunk);
}

/* Returns true if the participant at `index` contributes to the chunk. */
static inline bool reduce_contributes(const struct reduce *r, int index, uint32_t chunk) {
	const struct reduce_place *p = &r->places[index];
	const uint32_t member = RV_BUG("part-of-another-member") ? (uint32_t)index : p->member;
	return slow_contributes(p->part, member, r->round, chunk);
}

/* Returns true if the chunk needs a contribution of the participant at `index`, which is not
 * here. */
static inline bool reduce_lacks(const struct reduce *r, int index, uint32_t chunk) {
	return !reduce_holds(r, index, chunk) && reduce_contributes(r, index, chunk);
}

/* Returns true if data passes between this participant and the one at `index`: one of them owns
 * chunks. Others owe each other nothing, not even a link. */
static inline bool reduce_deals_with(const struct reduce *r, int index) {
	return index != r->self && (r->owns[index] || r->owns[r->self]);
}

static inline bool reduce_seals(const struct reduce *r) {
	return r->cfg.seals.verify != NULL;
}

/* Returns true in a column whose participants sign the sums that they contribute. */
static inline bool reduce_seals_sums(const struct reduce *r) {
	return r->cfg.later_own && reduce_seals(r);
}

/* ---- sums.c: seals of partial sums ---- */

/* Notes the leaf of a sum that the participant at `index` has made, and that is here. */
void reduce_note_sum(struct reduce *r, int index, uint32_t chunk);
/* Signs the own sums for the owner at `to`, if all are made. */
void reduce_seal_sums(struct reduce *r, int to);
void reduce_put_sums(struct reduce *r, const struct reduce_peer *p, struct reduce_msg *out);
enum rv_err reduce_receive_sums(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								struct rv_errtext *et);
/* Compares the sums of the peer at `from` with what it has signed, if all are here. RV_E_PROTOCOL:
 * they differ. */
enum rv_err reduce_settle_sums(struct reduce *r, int64_t now_us, int from, struct rv_errtext *et);
/* Returns true if each participant has signed the sums that are merged here. */
bool reduce_sums_are_sealed(const struct reduce *r);

/* ---- proofs.c: commitments to contributions, and seals of means ---- */

/* Sets *out to a message of that type with the seal, which is copied into r->seal_bytes. */
void reduce_put_signed(struct reduce *r, uint8_t type, const struct seal *seal, struct reduce_msg *out);
/* Returns the seal in a message of SEAL_BYTES. */
struct seal reduce_signed_in(const struct reduce_msg *m);
/* Sets *out to the LEAVES of chunks from `chunk` on, which the participant at `to` owns. */
void reduce_put_leaves(struct reduce *r, int to, uint32_t chunk, struct reduce_msg *out);
enum rv_err reduce_receive_leaves(struct reduce *r, int from, const struct reduce_msg *m, struct rv_errtext *et);
/* Return true if the leaf of a chunk of the participant at `from` is known; if `data` is that
 * chunk. */
bool reduce_is_proven(const struct reduce *r, int from, uint32_t chunk);
bool reduce_fits_leaf(const struct reduce *r, int from, uint32_t chunk, const uint8_t *data, size_t bytes);
/* Notes the leaf of a mean that is in mem.reduced. */
void reduce_note_mean(struct reduce *r, uint32_t chunk);
/* Seals the own means, if all are made. */
void reduce_seal_own(struct reduce *r);
void reduce_put_seal(struct reduce *r, struct reduce_msg *out);
enum rv_err reduce_receive_seal(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								struct rv_errtext *et);
/* Compares the means of the owner at `from` with its seal, if all are here. RV_E_PROTOCOL: they
 * differ. */
enum rv_err reduce_settle(struct reduce *r, int64_t now_us, int from, struct rv_errtext *et);

/* ---- send.c ---- */

/* Counts from its bitmap what the peer at `index` gets from here. */
void reduce_count_load(struct reduce *r, int index);

/* ---- chunks.c: contributions, means, bitmaps ---- */

/* Return the size of a chunk of a contribution of the participant at `index`, or of a mean, and its
 * offset in the vector. */
size_t reduce_given_bytes(const struct reduce *r, int index, uint32_t chunk);
size_t reduce_given_offset(const struct reduce *r, int index, uint32_t chunk);
size_t reduce_mean_bytes(const struct reduce *r, uint32_t chunk);
size_t reduce_mean_offset(const struct reduce *r, uint32_t chunk);
/* Recounts what every peer owes, and reduces every complete chunk. To be called after a change of
 * roster; `same`: places, weights and contributions are those of the attempt before. */
void reduce_chunks_begin(struct reduce *r, int64_t now_us, bool same);
/* Stores one contribution of the peer at `from`, and reduces the chunk if it was the last.
 * RV_E_PROTOCOL: it differs from the one held. RV_E_CORRUPT: it is not an encoding. RV_E_RANGE: its
 * values spoil the mean. */
enum rv_err reduce_chunks_contribute(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *msg,
									 struct rv_errtext *et);
/* Stores the reduced bytes of a chunk that another one owns. */
enum rv_err reduce_chunks_adopt(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *msg,
								struct rv_errtext *et);
/* Returns how many chunks make this participant wait for others (PING). */
uint32_t reduce_chunks_waiting(const struct reduce *r);
/* Fills r->resume for the peer at `index`. */
void reduce_chunks_resume(struct reduce *r, int index);
/* Checks `map`, sent by the peer at `index`. RV_E_PROTOCOL: it claims the impossible. */
enum rv_err reduce_chunks_check_resume(const struct reduce *r, int index, const uint8_t *map, struct rv_errtext *et);

#endif
