/* auditor.h: executes the audits that documents order. For one of an average (net/control/audit.h)
 * it remembers the rosters of the last rounds, asks each participant for its contribution to the
 * chunk, and judges when all are there.
 *
 *   ORDERED --> ASKING -- all pieces there, and proven --> RIGHT | WRONG
 *      |          +-- one gives what it has not committed to, or ends AUDITOR_CUTS links while it
 *      |          |   owes its piece --> WITHHELD by it
 *      |          +-- no slice for as long as patience, or all pieces take longer than one at
 *      |          |   SCORE_LEAST_BYTES_PER_S and all at AUDITOR_LEAST_BYTES_PER_S: WITHHELD by one
 *      |          |   that is linked, else UNABLE
 *      |          +-- some give nothing, and nothing that they could give makes the mean: WRONG
 *      +-- this process did not take part in that attempt: UNABLE
 *
 * In a roster of several rows it has the contributions of its row for the sum of that, which it
 * compares with what the sum's owner has signed; for a mean it asks the final owner for the sum of
 * each row (auditor_rows.c), and those that are not what it has shown are WITHHELD by it.
 *
 * For one of training (net/control/score.h) it asks one participant for its contribution, chunk by
 * chunk.
 *
 *   ORDERED --> ASKING -- all chunks there, and proven --> SCORING --> MEASURED | UNABLE
 *      |          +-- it gives what it has not committed to --> WITHHELD
 *      |          +-- no chunk for as long as patience, or all of them take longer than at
 *      |          |   SCORE_LEAST_BYTES_PER_S: WITHHELD if it is linked, else UNREACHED, and
 *      |          |   ASKING again once it is
 *      |          +-- it has ended AUDITOR_CUTS links in a row while it owed a chunk: CUT, and ASKING
 *      |          |   again after patience, once it is linked
 *      +-- what is ordered cannot be of this run, or is its own: UNABLE
 *
 * If its steps are to be repeated, it asks for the author's inner state before them too, and for
 * some pieces of that after them, which it draws itself; then they are REPEATED instead of
 * MEASURED. One such audit is under way at a time: it takes the most memory. It has
 * SCORE_REPEAT_MOST_S beside patience and exchanges, then it is SLOW; and earlier, if another one
 * waits for its place while its author gives less than the part of that time.
 *
 * Silence, slowness and ends of a link that goes by a relay may be the relay's: UNABLE instead of
 * WITHHELD, CUT or SLOW.
 *
 * An owner that lies keeps its own contribution from auditors: by giving another one, by ending its
 * links, or by being away. So the last line is looked at as soon as all that is missing is of those
 * that are not linked, have ended a link or answered NONE, and at every end that names one. It
 * blames no honest owner, whatever became of it: means within reach of the limit of norms are
 * possible (outer/merge_reach.h).
 *
 * One audit of an average goes on at a time. One that has looked in vain is set aside: those that
 * have not looked go first, so that a liar which keeps its piece of honest owners' chunks does not
 * keep its own from being looked at; then the others go on, the oldest first. It keeps its pieces,
 * patience and counts of cuts meanwhile, and its time stands still. If it dropped them, it would
 * fetch all again for each turn, and honest members give an auditor only so much
 * (worker/transfer/donor_budget.h): they would seem to withhold. One with which more than
 * AUDITOR_ASIDE_BYTES would be held waits for those set aside. An audit also looks as soon as all
 * that it lacks is of members that owe theirs to one set aside.
 *
 * Beside it go all audits of training whose authors differ: a slow sender holds up no other one.
 * The owner scores one contribution at a time. A member is asked for one chunk at a time. Results
 * are repeated in each report until the document orders them no more. No I/O, no clock; memory of
 * pieces is the owner's. One thread. */
#ifndef RV_WORKER_AUDIT_AUDITOR_H
#define RV_WORKER_AUDIT_AUDITOR_H

#include "net/control/control.h"
#include "net/mesh/peers.h"
#include "train/repeat.h"

enum {
	AUDITOR_ROUNDS = 16,                /* rosters that are remembered: audit-window at most */
	AUDITOR_AGAIN_US = 2 * 1000 * 1000, /* after a NONE */
	AUDITOR_CUTS = 3,
	AUDITOR_LEAST_BYTES_PER_S = 128 * 1024, /* of an auditor's line, for all pieces of an average */
	AUDITOR_AFTER_CUT_US = 1000 * 1000,     /* asked at once, a link would be down all the time */
	AUDITOR_ASIDE_BYTES = 8 << 20           /* of pieces of averages, if some are set aside */
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
	struct auditor_member members[NET_MAX_ROW]; /* with several rows: of this worker's */
	int n_rows;                                 /* in the mean; 0: there is one row */
	uint32_t row_weights[NET_MAX_ROWS];         /* of these, in their order */
};
/* Sets *out to that of a document in REDUCE; of several rows: to none. */
void auditor_roster_of(const struct document *d, struct auditor_roster *out);

/* Inputs of steps that are repeated, all in one memory of `take`. */
struct auditor_repeat {
	uint8_t *encoded; /* its contribution; also the memory */
	uint8_t *inner;   /* its inner state (train/inner_state.h) before them, aligned as a u64 */
	/* Pieces of that after them, INNER_PIECE_BYTES apart: the first one, and others in ascending
	 * order. */
	int n_pieces;
	uint32_t pieces[REPEAT_PIECES];
	uint8_t *ends;
};

/* All that an audit is judged by. */
struct auditor_case {
	const struct auditor_roster *roster;
	uint32_t chunk;
	uint8_t kind; /* enum audit_kind */
	int n;        /* contributions to the chunk; OF_MEAN: sums, one of each row in the mean */
	const struct auditor_member *members[NET_MAX_ROW]; /* but OF_MEAN */
	const uint8_t *data[NET_MAX_ROW];                  /* their encoded chunks; is_beyond: NULL if not here */
	struct rv_hash sum;                                /* OF_SUM: leaf of what its owner has signed */
};

struct auditor_ops {
	void *ctx;
	/* Returns the bytes of a contribution's encoded chunk in this codec. */
	size_t (*chunk_bytes)(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk);
	size_t (*sum_bytes)(void *ctx, uint64_t round, uint32_t chunk); /* the same of a row's sum */
	/* Copies this worker's own piece, `bytes` of chunk and proof; returns false if it is not
	 * there. */
	bool (*own)(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes);
	/* Returns RIGHT, WRONG with *found, or UNABLE: the committed bytes are not here. */
	enum audit_verdict (*judge)(void *ctx, const struct auditor_case *c, struct rv_hash *found);
	/* Returns true if no contributions of those that have not given theirs make the committed bytes
	 * of an average. */
	bool (*is_beyond)(void *ctx, const struct auditor_case *c);
	bool (*linked)(void *ctx, uint32_t member);
	bool (*relayed)(void *ctx, uint32_t member); /* the link goes by a relay */
	bool (*is_busy)(void *ctx, uint32_t member); /* it owes an answer to somebody else here */
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
	/* Returns the bytes of an inner state of this run; 0: this worker cannot repeat these steps. */
	size_t (*inner_bytes)(void *ctx, const struct score_order *o);
	/* Returns a number below `below` that no other member can guess. */
	uint32_t (*draw)(void *ctx, uint32_t below);
	/* As `score`, of an order to repeat. */
	void (*repeat)(void *ctx, const struct score_order *o, const struct auditor_repeat *what);
	/* Says that nobody wants the answer to what `score` or `repeat` began: it should come
	 * soon, but not before this call returns. */
	void (*drop)(void *ctx);
};

struct auditor; /* opaque: auditor_size() bytes, the caller's memory */
size_t auditor_size(void);
/* patience_us: for each slice of what is asked for. */
struct auditor *auditor_init(void *memory, uint32_t self_member, uint64_t run_tag, int64_t patience_us,
							 const struct auditor_ops *ops);
/* Gives memory of pieces back. */
void auditor_release(struct auditor *a);

/* Remembers the roster of an attempt in which this worker takes part. */
void auditor_note_roster(struct auditor *a, const struct document *d);
/* Takes the orders of a new document. */
void auditor_follow(struct auditor *a, int64_t now_us, const struct document *d);
/* Notes that this worker's exchange of the round is under way, or is not. */
void auditor_note_exchange(struct auditor *a, int64_t now_us, bool exchanging);
/* Puts the results into a report. */
void auditor_report(const struct auditor *a, struct report *r);
/* Takes the end of what `score` or `repeat` began: MEASURED, REPEATED or UNABLE. */
void auditor_scored(struct auditor *a, const struct score_result *result);
/* Returns true once after a result was reached: a report is due. */
bool auditor_has_news(struct auditor *a);

/* Writes the next FETCH for `member`; *out is borrowed until the next call. Returns false if there
 * is none. */
bool auditor_send(struct auditor *a, int64_t now_us, uint32_t member, struct peers_message *out);
/* Takes a PIECE or NONE of kind CONTRIBUTION or INNER. RV_E_PROTOCOL: not the answer to what was
 * asked. */
enum rv_err auditor_receive(struct auditor *a, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et);
/* The link is gone. `by_member`: this worker has not ended it; so does one seem that the network
 * ends, hence three in a row, without new bytes. Ends of a member that a document
 * does not name, as one that pauses, begin a new row. */
void auditor_link_down(struct auditor *a, int64_t now_us, uint32_t member, bool by_member);
/* Returns true if the member owes an answer. */
bool auditor_awaits(struct auditor *a, uint32_t member);
void auditor_tick(struct auditor *a, int64_t now_us);
int64_t auditor_deadline_us(const struct auditor *a);

#endif
