/* reduce.h: the all-reduce, as a state machine without I/O: no sockets, no clock, no threads, no allocation.
 *
 * The encoded vector is cut into chunks; each chunk has one owner (the ownership map of the round document).
 *   scatter  every participant sends its encoded chunk c to c's owner;
 *   reduce   the owner, once it holds chunk c of everyone, averages in roster order and encodes once (codec callback);
 *   gather   the owner sends those bytes to everyone.
 * The three overlap chunk by chunk. Each participant sends 2 (N-1)/N of the payload. Everyone ends with identical
 * bytes.
 *
 * Attempts: when a participant dies, the coordinator publishes attempt a+1 over the survivors. Contributions depend
 * only on (round, member, chunk), so those that an owner holds stay valid: reduce_restart() keeps them and says so to
 * their senders (RESUME), who then send only what is missing. Reduced chunks of the old attempt are void: their mean
 * had other terms.
 *
 * The platform pulls: when the link to participant i can take a message it calls reduce_send(r, now, i, &m). So there
 * is no queue, back-pressure is natural, and control (RESUME, PING) always goes before bulk.
 */
#ifndef RV_NET_REDUCE_REDUCE_H
#define RV_NET_REDUCE_REDUCE_H

#include "base/err.h"
#include "base/hash.h"
#include "net/control/control.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the all-reduce must know of the encoding: nothing but sizes and the owner's reduction. Given by the worker. */
struct reduce_codec {
	void *ctx;
	/* Of a contribution: encoded size, <= NET_MAX_CHUNK_BYTES, and where it lies in an encoded vector. */
	size_t (*chunk_bytes)(void *ctx, uint32_t chunk);
	size_t (*chunk_offset)(void *ctx, uint32_t chunk);
	/* Mean of n_in encoded chunks in the order given -> out. RV_E_CORRUPT: input *bad is not an encoding. RV_E_RANGE:
	 * the mean has none, because of input *bad: its values are too large to be averaged. *bad = -1 with any fault: of
	 * no input, but our own (memory). */
	enum rv_err (*reduce)(void *ctx, uint32_t chunk, const uint8_t *const *in, const uint32_t *weights, int n_in,
						  uint8_t *out, int *bad, struct rv_errtext *et);
	/* Whether `data`, an owner's reduction of the chunk, can be decoded by everybody who is to apply it. */
	enum rv_err (*check)(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et);
	/* The same two of a mean, where it is encoded differently; NULL: it is not. */
	size_t (*mean_bytes)(void *ctx, uint32_t chunk);
	size_t (*mean_offset)(void *ctx, uint32_t chunk);
};

/* One message between participants, decoded. `data` borrows: from the caller in reduce_receive, from the core in
 * reduce_send (valid until the next call on it). */
enum reduce_type { REDUCE_SCATTER = 1, REDUCE_GATHER, REDUCE_RESUME, REDUCE_PING };
struct reduce_msg {
	uint8_t type;
	uint64_t round;
	uint32_t attempt;
	uint32_t chunk;      /* SCATTER, GATHER */
	const uint8_t *data; /* SCATTER, GATHER: chunk bytes; RESUME: bitmap, one bit per chunk: set when the sender
							already holds what the receiver would send it of that chunk: the receiver's contribution
							where the sender is the owner, the reduced bytes where the receiver is */
	uint32_t data_bytes;
	uint32_t
		waiting;   /* PING: chunks that the sender owns and lacks contributions to: 0 says that it owes their means */
	uint8_t flags; /* RESUME: REDUCE_RESUME_* */
};
/* ACK: sent after the receiver's RESUME of this attempt was read, so the bitmap knows all that was sent before that.
 * ASK: the sender wants a RESUME in answer. */
enum { REDUCE_RESUME_ACK = 1, REDUCE_RESUME_ASK = 2 };

struct reduce_config {
	uint32_t self_member;
	uint32_t n_chunks;
	struct reduce_codec codec;
	int64_t silence_us; /* a peer from whom nothing arrives for so long is a suspect */
	int64_t stall_us;   /* a peer that answers, owes data and delivers none of it for so long is a suspect too */
	int64_t ping_interval_us;
};

/* Memory is the caller's. `own` holds one encoded vector, `reduced` one encoded mean; `held` holds NET_MAX_MEMBERS-wide
 * contributions: held[m] is where the encoded vector of roster *member number* m lives (only the chunks that we own are
 * ever touched, so lazily-committed memory is fine). `flags` holds reduce_flags_bytes(n_chunks). */
struct reduce_memory {
	const uint8_t *own;
	uint8_t *reduced;
	uint8_t *held[NET_MAX_MEMBERS];
	uint8_t *flags; /* aligned for uint32_t */
};
size_t reduce_flags_bytes(uint32_t n_chunks);

struct reduce; /* size and alignment known through reduce_size(): the caller provides the memory */
size_t reduce_size(void);

/* `d` is a REDUCE document that names self; it is copied. Asserts what document_decode has checked. Every link counts
 * as down: call reduce_link_up for those that are established. Links survive reduce_restart. */
struct reduce *reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
						   const struct document *d, int64_t now_us);
/* A later attempt of the same round. */
void reduce_restart(struct reduce *r, const struct document *d, int64_t now_us);

/* One message from members[from]. Messages of another round or attempt are counted and ignored (but a SCATTER of
 * an earlier attempt of our round is kept: contributions do not depend on it; unless a roster since has named another
 * process of its sender). RV_E_PROTOCOL or RV_E_CORRUPT: the
 * message breaks the protocol (chunk out of range, wrong size, not ours to own, not its to reduce): the platform drops
 * the link, and the sender becomes a suspect. RV_E_CORRUPT of a GATHER: the owner's mean is no encoding. RV_E_RANGE
 * likewise: the sender's values cannot be averaged. Whoever
 * merely completes a chunk that another spoiled is not blamed: the other becomes a suspect. A chunk that we cannot
 * reduce by a fault of our own (reduce_codec.reduce: *bad is -1, or ourselves) makes a suspect of nobody here; it stays
 * unreduced until the next attempt, and the others take us for stalled. */
enum rv_err reduce_receive(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
						   struct rv_errtext *et);
/* A good part of a message from members[from] that is not whole yet; `bulk`: of SCATTER or GATHER. Progress, too. */
void reduce_part(struct reduce *r, int64_t now_us, int from, bool bulk);
/* Next message for members[to], or false. The caller must send what it is given (or report the link lost). */
bool reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
/* The same, but only RESUME and PING: for a platform that holds bulk back. */
bool reduce_send_control(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
/* The link to members[peer] was established; nothing when it was known to be. Both sides send RESUME first, and bulk
 * once the other's was read. Call it after reduce_init and reduce_restart too, for every link that stands then: a
 * member that was not in the former roster is one whose link nobody told of. */
void reduce_link_up(struct reduce *r, int64_t now_us, int peer);
/* The link broke: what was in flight may be lost, and nothing of it may be given to reduce_receive any more. The peer
 * is a suspect at once when `fatal` (refused, reset), else only once it stays silent. */
void reduce_link_down(struct reduce *r, int64_t now_us, int peer, bool fatal);
/* Checks silence, stalls and the attempt's deadline (suspects.c). Call at reduce_deadline_us. */
void reduce_tick(struct reduce *r, int64_t now_us);
int64_t reduce_deadline_us(const struct reduce *r); /* INT64_MAX: none */

/* All chunks are reduced and held: the vote may be cast. Stay in touch until the commit: others may still need our
 * gather. */
bool reduce_done(const struct reduce *r);
/* Nothing left to send to anybody (and done). */
bool reduce_idle(const struct reduce *r);
uint64_t reduce_suspects(const struct reduce *r); /* set of roster indices */
uint32_t reduce_member(const struct reduce *r, int index);

enum { REDUCE_HEADER_BYTES = 64 }; /* of one message on the wire (net/mesh/frame.h) */

struct reduce_info { /* accounting in results (PCCL's pcclReduceInfo_t): frames, not TLS */
	int world;
	uint64_t tx_bytes, rx_bytes; /* SCATTER and GATHER: REDUCE_HEADER_BYTES + data each; control is not counted */
	uint64_t
		resent_bytes; /* part of tx_bytes: what had gone out before in this round, but was lost with its owner, voided
							  by a later attempt, or on its way when a link broke */
	uint32_t chunks_reduced, ignored_messages;
	int64_t started_us, finished_us;
};
struct reduce_info reduce_info(const struct reduce *r);

/* The wire encoding of these messages: frame_reduce_encode() in net/mesh/frame.h; `data` follows the header as it is. */
#endif
