/* reduce.h: the all-reduce, as a state machine without I/O: no sockets, no clock, no threads, no
 * allocation.
 *
 * The encoded vector is cut into chunks; each chunk has one owner (the ownership map of the round
 * document).
 *   scatter  every participant sends its encoded chunk c to the owner of c;
 *   reduce   once the owner holds chunk c of all participants, it averages in roster order and
 *            encodes (codec callback);
 *   gather   the owner sends those bytes to all participants.
 * The three steps overlap chunk by chunk. Each participant sends 2 (N-1)/N of the payload. All end
 * with identical bytes.
 *
 * Slow lines. The roster may give a participant a coarser codec, or a `part`: it then contributes
 * to every k-th chunk (slow_contributes). At least one participant contributes to every chunk.
 *
 * Lies. The roster names the root that each participant has committed to (base/merkle.h). Before
 * its chunks a participant sends the owner their leaves with a proof, and an owner takes a chunk
 * only if it has its leaf. When an owner has made all of its means, it signs the root over them
 * (net/seal.h); a receiver is done when it has a seal for each owner that fits what it was sent. In
 * the column of a grid participants sign what they contribute, too (SUMS, sums.c).
 *
 * Attempts: when a participant dies, the coordinator publishes attempt a+1 over the survivors.
 * Contributions depend only on (round, member, chunk), so those that an owner holds stay valid:
 * reduce_restart() keeps them and announces them to their senders (RESUME), which then send only
 * what is missing. Reduced chunks of the old attempt are void: other contributions.
 *
 * The platform pulls: when the link to participant i can take a message, it calls reduce_send(r,
 * now, i, &m). So the core has no queue, and control (RESUME, PING) always goes before bulk. One
 * thread at a time. */
#ifndef RV_NET_REDUCE_REDUCE_H
#define RV_NET_REDUCE_REDUCE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"
#include "net/limits.h"
#include "net/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The contributions to a chunk, in roster order. */
struct reduce_inputs {
	const uint8_t *const *data;
	const uint32_t *weights;
	const uint8_t *codecs; /* reduce_place.codec of each */
	const uint8_t *places; /* roster index of each */
	int n;                 /* >= 1 */
};

/* The encoding, as far as the all-reduce needs it: sizes and the owner's reduction. The worker
 * provides it. */
struct reduce_codec {
	void *ctx;
	/* Return a contribution's encoded chunk size, <= NET_MAX_CHUNK_BYTES, and its offset in an
	 * encoded vector, in the codec of a reduce_place. */
	size_t (*chunk_bytes)(void *ctx, uint8_t codec, uint32_t chunk);
	size_t (*chunk_offset)(void *ctx, uint8_t codec, uint32_t chunk);
	/* Encodes the mean of the inputs into `out` (NULL: later_mean). RV_E_CORRUPT: input *bad is not
	 * an encoding. RV_E_RANGE: the values of input *bad are too large to be averaged. *bad = -1:
	 * the fault is local (memory). */
	enum rv_err (*reduce)(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
						  struct rv_errtext *et);
	/* Checks that `data`, an owner's reduction of the chunk, can be decoded. RV_E_CORRUPT. */
	enum rv_err (*check)(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et);
	/* Return size and offset of a mean's chunk; NULL: as a contribution's in codec 0. */
	size_t (*mean_bytes)(void *ctx, uint32_t chunk);
	size_t (*mean_offset)(void *ctx, uint32_t chunk);
};

/* One message between participants, decoded. `data` borrows: from the caller in reduce_receive,
 * from the core in reduce_send (valid until the next call on it). */
enum reduce_type {
	REDUCE_SCATTER = 1,
	REDUCE_GATHER,
	REDUCE_RESUME,
	REDUCE_PING,
	REDUCE_LEAVES,
	REDUCE_SEAL,
	REDUCE_SUMS
};
struct reduce_msg {
	uint8_t type;
	uint64_t round;
	uint32_t attempt;
	uint32_t chunk; /* SCATTER, GATHER; LEAVES: the first */
	const uint8_t
		*data; /* SCATTER, GATHER: chunk bytes; LEAVES: count u32, leaves, their proof; SEAL, SUMS: root, signature;
							RESUME: a bit per chunk, set if the sender already holds what the receiver would send of
							it: the receiver's contribution if the sender owns the chunk, the reduced bytes if the
							receiver does */
	uint32_t data_bytes;
	uint32_t waiting; /* PING: chunks for which the sender waits for others; 0: it owes all that it owns */
	uint8_t flags;    /* RESUME: REDUCE_RESUME_* */
	/* Set by a grid (grid.h): the message belongs to the column whose first chunk is `section`, and
	 * `chunk` counts from the begin of the vector. */
	bool column;
	uint32_t section;
};
/* ACK: sent after the receiver's RESUME of this attempt was read, so the bitmap covers all that was
 * sent before that. ASK: the sender wants a RESUME as answer. */
enum { REDUCE_RESUME_ACK = 1, REDUCE_RESUME_ASK = 2 };

enum {
	REDUCE_LEAVES_MOST = 256, /* of one message */
	REDUCE_LEAVES_BYTES = 4 + (REDUCE_LEAVES_MOST + MERKLE_MAX_PROOF) * RV_HASH_BYTES
};

struct reduce_config {
	uint32_t n_chunks;
	struct reduce_codec codec;
	bool commits;          /* contributions are checked against the roots of the roster */
	struct seal_ops seals; /* means are sealed; verify NULL: they are not */
	uint32_t first_chunk;  /* number in the vector of chunk 0, for leaves */
	bool seal_later;       /* this participant seals its means when reduce_may_seal says so */
	int64_t silence_us;    /* a peer from which nothing arrives during this time is a suspect */
	int64_t stall_us;      /* so is a peer that answers, owes data, and delivers none during this time */
	int64_t ping_interval_us;
	/* Multiples of stall_us after the deadline at which a peer is a suspect that says it waits for
	 * others: one that owes contributions, and one that owes only means (suspects.c). */
	int patience_scatter, patience_gather;
	/* The two levels of a grid (grid.h). later_own: this participant's contribution comes chunk by
	 * chunk, by reduce_offer. later_mean: codec.reduce leaves something else than the mean (its
	 * `out` is NULL), which reduce_take gives out; the mean comes by reduce_finish. */
	bool later_own, later_mean;
};

/* Memory of the caller. `own`: this participant's encoded vector. `reduced`: one encoded mean.
 * held[]: room for an encoded vector of each other participant; there are at least as many as
 * participants of a roster, the rest NULL. Only chunks that this participant owns are touched, so
 * lazily committed memory is fine. `flags`: reduce_flags_bytes(n_chunks). */
struct reduce_memory {
	const uint8_t *own;
	uint8_t *reduced;
	uint8_t *held[NET_MAX_ROW];
	uint8_t *flags; /* aligned for uint32_t */
	/* cfg.commits: the tree of `own`, room for the leaves of each held[] (n_chunks), of which only
	 * those of own chunks are touched, and REDUCE_LEAVES_BYTES for a message. */
	const struct rv_hash *own_nodes;
	struct rv_hash *leaves[NET_MAX_ROW];
	uint8_t *proof;
	/* leaves[] has room for those of sums in a column, with cfg.seals. */
	struct rv_hash *means; /* cfg.seals: (n_chunks) leaves of the means; later_mean: another core writes own ones */
};
size_t reduce_flags_bytes(uint32_t n_chunks);

/* The participants of an attempt, in the order in which sums are taken. */
struct reduce_place {
	uint32_t member; /* name of a participant, in all attempts */
	uint32_t weight;
	uint64_t boot; /* of its contribution: one with another boot is another contribution */
	uint8_t codec; /* of its contribution: as member_ref.codec; another one is another contribution */
	uint8_t part;  /* as member_ref.part */
	uint8_t key[NET_KEY_BYTES];
	struct rv_hash root; /* member_ref.contribution: another one is another contribution */
};
struct reduce_roster {
	uint64_t round;
	uint32_t attempt;        /* grows */
	uint32_t deadline_ms;    /* from now; 0: none */
	struct seal_scope scope; /* of the seals of this attempt */
	int n, self;             /* places, and the index of this participant */
	struct reduce_place places[NET_MAX_ROW];
	/* Sets owner[c], an index into `places`, for every chunk c. */
	void (*own)(const void *ctx, uint8_t *owner);
	const void *ctx;
};
/* Returns the roster of a REDUCE document that names `self_member`, with its ownership map. It
 * borrows `d`. */
struct reduce_roster reduce_roster_of(const struct document *d, uint32_t self_member);

struct reduce; /* opaque: reduce_size() bytes of the caller's memory */
size_t reduce_size(void);

/* Begins the first attempt of a round; the facts that document_decode checks are asserted. Every
 * link counts as down: call reduce_link_up for those that are established. */
struct reduce *reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
						   const struct reduce_roster *roster, int64_t now_us);
/* Begins a later attempt of the same round. Links keep their state. */
void reduce_restart(struct reduce *r, const struct reduce_roster *roster, int64_t now_us);

/* Takes one message from places[from]. Messages of another round or attempt are counted and
 * ignored, except a SCATTER of an earlier attempt of this round, which is kept (contributions do
 * not depend on the attempt) unless a later roster named another process of its sender.
 *
 * RV_E_PROTOCOL, RV_E_CORRUPT: the message breaks the protocol (chunk out of range, wrong size,
 * chunk not owned by its receiver or its sender, a mean that is no encoding, a contribution that
 * its sender has not committed to, a seal that does not fit the means). RV_E_RANGE: the sender's
 * values cannot be averaged. After a fault the platform drops the link, and the sender is a
 * suspect. Blame goes to the sender of the bad data, not to the member that completed the chunk. If
 * the failure is local (reduce_codec.reduce: *bad is -1 or this participant), no one is blamed; the
 * chunk stays unreduced until the next attempt, and the others see this participant stall. */
enum rv_err reduce_receive(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
						   struct rv_errtext *et);
/* Counts a part of an incomplete message from places[from] as progress; `bulk`: of SCATTER or
 * GATHER. */
void reduce_part(struct reduce *r, int64_t now_us, int from, bool bulk);
/* Sets *out to the next message for places[to]; returns false if there is none. The caller must
 * send it, or report the link lost. */
bool reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
/* Does the same for RESUME and PING only, for a platform that holds bulk back. */
bool reduce_send_control(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
/* Returns true if members[to] lacks contributions that it may be sent now: others wait for what it
 * makes of them. */
bool reduce_is_awaited(struct reduce *r, int to);
/* Chunks that one participant sends another in an attempt. */
struct reduce_load {
	uint32_t all, left; /* left: the receiver does not have them yet, nor are they on their way */
};
/* Returns what goes from this participant to places[to]; zero until its RESUME was read. */
struct reduce_load reduce_load(const struct reduce *r, int to);
/* Marks the link to places[peer] as established. Both sides send RESUME first, and bulk once the
 * other's RESUME was read. To be called after reduce_init and reduce_restart too, for every
 * established link: the core does not know the links of members that the former roster did not
 * name. */
void reduce_link_up(struct reduce *r, int64_t now_us, int peer);
/* Marks the link as broken: messages in flight may be lost, and none of them may be passed to
 * reduce_receive later. The peer is a suspect at once if `fatal` (refused, reset), else only after
 * silence. */
void reduce_link_down(struct reduce *r, int64_t now_us, int peer, bool fatal);
/* Checks silence, stalls and the attempt's deadline (suspects.c). To be called at
 * reduce_deadline_us. */
void reduce_tick(struct reduce *r, int64_t now_us);
int64_t reduce_deadline_us(const struct reduce *r); /* INT64_MAX: none */

/* Returns true if all chunks are reduced, held and sealed: the vote may be cast. The links must
 * stay until the commit, because others may still need chunks of the gather. */
bool reduce_done(const struct reduce *r);
/* seal_later: all that this participant's means depend on is sealed. Once more does nothing. */
void reduce_may_seal(struct reduce *r);
const struct seal_scope *reduce_scope(const struct reduce *r); /* of this attempt's seals */
/* Returns the seal of an owner in this attempt, of one's own if `index` is this participant; NULL:
 * it has no chunks, or its seal is not here, or does not fit. */
const struct seal *reduce_seal_of(const struct reduce *r, int index);
/* Return of a column with seals, in which this participant owns chunks and is done, the seal of the
 * sums that the one at `index` gave it (NULL: it is not here), the leaf of one of them, and the
 * scope of seals of sums for the owner at a place. */
const struct seal *reduce_sums_of(const struct reduce *r, int index);
const struct rv_hash *reduce_sum_leaf(const struct reduce *r, int index, uint32_t chunk);
struct seal_scope reduce_scope_of_sums(const struct reduce *r, int owner);
/* Return true for a chunk that this participant owns; and the contribution to such a one that the
 * participant at `index` has made, of *bytes. */
bool reduce_is_own(const struct reduce *r, uint32_t chunk);
const uint8_t *reduce_contribution(const struct reduce *r, int index, uint32_t chunk, size_t *bytes);
/* Sets *out to the proof that a participant has sent two seals in this attempt; returns false if
 * none has. */
bool reduce_equivocation(const struct reduce *r, struct equivocation *out);
uint64_t reduce_suspects(const struct reduce *r); /* set of roster indices */
/* The same in two sets: those that are certainly late, and those that may wait for another one;
 * these are suspects where nobody is certain to be. */
void reduce_accuse(const struct reduce *r, uint64_t *sure, uint64_t *perhaps);
uint32_t reduce_member(const struct reduce *r, int index);

/* later_own: this participant's contribution to `chunk` is in mem.own. Says so once; again does
 * nothing. */
void reduce_offer(struct reduce *r, int64_t now_us, uint32_t chunk);
/* Gives out, once in each attempt, the next chunk that became ready: with later_mean an own chunk
 * that codec.reduce was called for, in this attempt or with the same roster before; otherwise a
 * reduced chunk of any owner. Returns false if there is none. */
bool reduce_take(struct reduce *r, uint32_t *chunk);
/* Return true for a chunk that was given out, or is to be, in this attempt. */
bool reduce_is_ready(const struct reduce *r, uint32_t chunk);
/* later_mean: the mean of an own chunk that is ready is in mem.reduced. Called once in an
 * attempt. */
void reduce_finish(struct reduce *r, int64_t now_us, uint32_t chunk);
/* later_mean: the mean of this chunk is here. */
bool reduce_is_reduced(const struct reduce *r, uint32_t chunk);

enum { REDUCE_HEADER_BYTES = 64 }; /* of one message on the wire (net/mesh/frame.h) */

struct reduce_info { /* accounting (as PCCL's pcclReduceInfo_t): frames, not TLS */
	int world;
	uint64_t tx_bytes, rx_bytes; /* SCATTER and GATHER: REDUCE_HEADER_BYTES + data each; control is not counted */
	uint64_t proof_bytes;        /* LEAVES, SEAL and SUMS that were sent, likewise */
	/* Part of tx_bytes: sent before in this round, but lost with its owner, voided by a later
	 * attempt, or in flight when a link broke. */
	uint64_t resent_bytes;
	uint32_t chunks_reduced, ignored_messages;
	int64_t started_us, finished_us;
};
struct reduce_info reduce_info(const struct reduce *r);

/* How long it took until all was here that a participant owed of its contribution, from the begin
 * of the exchange on; and what it sends of it to all others, who should have got it by then too. */
struct reduce_receipt {
	uint32_t member;
	uint64_t bytes;
	int64_t us;
};
/* Lists those that have given all that they owe this participant, if that was something; returns
 * how many. A later attempt has none: it begins with what is here. */
int reduce_receipts(const struct reduce *r, struct reduce_receipt out[NET_MAX_ROW]);

/* frame_reduce_encode() in net/mesh/frame.h encodes these messages; `data` follows the header
 * unchanged. */
#endif
