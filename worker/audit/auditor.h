/* auditor.h: executes the audits that documents order. For one of an average (net/control/audit.h)
 * it remembers the rosters of the last rounds, asks each participant for its contribution to the
 * chunk, and judges when all are there.
 *
 *   ORDERED --> ASKING -- all pieces there, and proven --> RIGHT | WRONG
 *      |          +-- one gives what it has not committed to --> WITHHELD by it
 *      |          +-- patience over: WITHHELD by one that is linked, else UNABLE
 *      +-- this process did not take part in that attempt: UNABLE
 *
 * For one of training (net/control/score.h) it asks one participant for its contribution, chunk by
 * chunk.
 *
 *   ORDERED --> ASKING -- all chunks there, and proven --> SCORING --> MEASURED | UNABLE
 *      |          +-- it gives what it has not committed to --> WITHHELD
 *      |          +-- no chunk for as long as patience, or all of them take longer than at
 *      |          |   AUDITOR_LEAST_BYTES_PER_S: WITHHELD if it is linked, else UNREACHED, and
 *      |          |   ASKING again once it is
 *      |          +-- AUDITOR_CUTS links in a row ended while it owed a chunk: CUT, and ASKING again
 *      |          |   after patience, once it is linked
 *      +-- what is ordered cannot be of this run, or is its own: UNABLE
 *
 * One audit of an average is under way at a time, and beside it all of training whose authors
 * differ: a slow sender holds up no other audit. The owner scores one contribution at a time. A
 * member is asked for one chunk at a time. Results are repeated in each report
 * until the document orders them no more. No I/O, no clock; memory of pieces is the owner's. One
 * thread. */
#ifndef RV_WORKER_AUDIT_AUDITOR_H
#define RV_WORKER_AUDIT_AUDITOR_H

#include "net/control/control.h"
#include "net/mesh/peers.h"

enum {
	AUDITOR_ROUNDS = 16,                /* rosters that are remembered: audit-window at most */
	AUDITOR_LEAST_BYTES_PER_S = 32768,  /* of training: a whole contribution has as long, and patience */
	AUDITOR_AGAIN_US = 2 * 1000 * 1000, /* after a NONE */
	AUDITOR_CUTS = 3,
	AUDITOR_AFTER_CUT_US = 1000 * 1000 /* asked at once, a link would be down all the time */
};

/* A participant of an attempt, as far as an audit needs it. */
struct auditor_member {
	uint32_t member, weight;
	uint8_t codec, part; /* of its contribution, as in member_ref */
	struct rv_hash root; /* that it has committed to */
};

struct auditor_roster {
	uint64_t round;
	uint32_t attempt; /* 0: none */
	uint32_t n_chunks;
	int n;
	struct auditor_member members[NET_MAX_ROW];
};

/* All that an audit is judged by. */
struct auditor_case {
	const struct auditor_roster *roster;
	uint32_t chunk;
	int n; /* contributions to the chunk */
	const struct auditor_member *members[NET_MAX_ROW];
	const uint8_t *data[NET_MAX_ROW]; /* their encoded chunks */
};

struct auditor_ops {
	void *ctx;
	/* Returns the bytes of a contribution's encoded chunk in this codec. */
	size_t (*chunk_bytes)(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk);
	/* Copies this worker's own piece, `bytes` of chunk and proof; returns false if it is not
	 * there. */
	bool (*own)(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes);
	/* Returns RIGHT, WRONG with *found, or UNABLE: the committed bytes are not here. */
	enum audit_verdict (*judge)(void *ctx, const struct auditor_case *c, struct rv_hash *found);
	bool (*linked)(void *ctx, uint32_t member);
	/* Returns memory of that many bytes for pieces, which auditor takes back by give(); NULL: there
	 * is none. */
	void *(*take)(void *ctx, size_t bytes);
	void (*give)(void *ctx, void *memory);
	/* Returns the bytes of a contribution that is to be scored; 0: there is no such one in this
	 * run, or this worker cannot score now. */
	size_t (*sent_bytes)(void *ctx, const struct score_order *o);
	/* Begins to score the contribution, whose memory (of take) passes to the owner. The answer is
	 * auditor_scored(), later or at once; until then there is no other. */
	void (*score)(void *ctx, const struct score_order *o, uint8_t *encoded);
};

struct auditor; /* opaque: auditor_size() bytes, the caller's memory */
size_t auditor_size(void);
/* patience_us: for one audit of an average, and for each chunk of a contribution that is scored. */
struct auditor *auditor_init(void *memory, uint32_t self_member, uint64_t run_tag, int64_t patience_us,
							 const struct auditor_ops *ops);
/* Gives memory of pieces back. */
void auditor_release(struct auditor *a);

/* Remembers the roster of an attempt in which this worker takes part. One of several rows is not
 * audited. */
void auditor_note_roster(struct auditor *a, const struct document *d);
/* Takes the orders of a new document. */
void auditor_follow(struct auditor *a, int64_t now_us, const struct document *d);
/* Puts the results into a report. */
void auditor_report(const struct auditor *a, struct report *r);
/* Takes the end of what `score` began: MEASURED or UNABLE. */
void auditor_scored(struct auditor *a, const struct score_result *result);
/* Returns true once after a result was reached: a report is due. */
bool auditor_has_news(struct auditor *a);

/* Writes the next FETCH for `member`; *out is borrowed until the next call. Returns false if there
 * is none. */
bool auditor_send(struct auditor *a, int64_t now_us, uint32_t member, struct peers_message *out);
/* Takes a PIECE or NONE of kind CONTRIBUTION. RV_E_PROTOCOL: not the answer to what was asked. */
enum rv_err auditor_receive(struct auditor *a, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et);
void auditor_link_down(struct auditor *a, int64_t now_us, uint32_t member);
void auditor_tick(struct auditor *a, int64_t now_us);
int64_t auditor_deadline_us(const struct auditor *a);

#endif
