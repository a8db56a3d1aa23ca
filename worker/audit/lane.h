/* lane.h: what the auditor (auditor.h) is made of: orders, and lanes in which they are carried out.
 *
 *     auditor.c            orders of documents, which of them begins in which lane, and time
 *     auditor_average.c    an audit of an average in its lane
 *     auditor_rows.c       one of a mean of the sums of rows
 *     auditor_training.c   an audit of training in its lane
 *     auditor_answers.c    what members are asked, and their answers */
#ifndef RV_WORKER_AUDIT_LANE_H
#define RV_WORKER_AUDIT_LANE_H

#include "worker/audit/auditor.h"
#include "worker/audit/piece.h"

/* An ordered audit. */
enum { MAX_ORDERS = NET_MAX_AUDITS + NET_MAX_SCORES };
struct order {
	bool scores; /* it is of training */
	bool done;
	struct audit_order of;
	struct audit_result result;
	struct score_order score;
	struct score_result scored;
	int64_t again_us; /* its author, which has cut its links, is not asked before */
};

/* Parts that are asked for, one after the other: of averages, and of training that is scored, only
 * the first. */
enum stage { STAGE_SENT, STAGE_BEGIN, STAGE_END };

/* An audit under way. The first lanes are for averages, of which all but one stand still; the
 * others for training: one whose sender is slow does not hold up the others. */
enum { LANE_AVERAGES, LANE_TRAINING = LANE_AVERAGES + NET_MAX_AUDITS, LANES = LANE_TRAINING + NET_MAX_SCORES };
struct lane {
	int at;                              /* place in orders; -1: none is under way */
	const struct auditor_roster *roster; /* of averages */
	uint32_t chunk, n_chunks;            /* that is asked for, of so many */
	int64_t until_us;
	int looked;                        /* pieces that were here when average_look() judged them; 0: it has not */
	bool aside;                        /* of averages: it has looked, and others go first */
	uint32_t row;                      /* of a mean of sums: the one that is asked for */
	struct rv_hash sums[NET_MAX_ROWS]; /* leaves of those before it */
	int n;
	struct piece pieces[NET_MAX_ROW];
	void *memory; /* of pieces; of training the contribution, and behind it room for a piece */
	size_t bytes; /* of `memory`, of averages */
	/* The participant whose training is audited, or whose mean, and where its next chunk goes in
	 * `memory`. */
	struct auditor_member author;
	uint8_t *next;
	size_t sent_bytes;
	int64_t latest_us; /* for the last chunk, or of averages the last piece */
	/* The time from which one that repeats has `most_us` for `all_bytes`, of which `got_bytes` are
	 * here. */
	int64_t paced_us, most_us;
	size_t all_bytes, got_bytes;
	bool interrupted; /* since a chunk came, a link has ended while the author owed one */
	enum stage stage;
	bool repeats;
	int n_ends;                 /* pieces of the END that are here */
	struct auditor_repeat what; /* of one that repeats: it grows in this order */
	uint8_t *room;              /* for a piece and its proof */
	bool whole;                 /* all chunks are here: it waits for its score */
};

struct auditor {
	struct auditor_ops ops;
	uint32_t self;
	uint64_t run_tag;
	int64_t patience_us;
	struct auditor_roster rosters[AUDITOR_ROUNDS]; /* by round mod AUDITOR_ROUNDS */
	int n_orders;
	struct order orders[MAX_ORDERS]; /* those of averages first */
	bool news, scoring;              /* scoring: the owner has a contribution that it scores */
	bool exchanging;                 /* since turned_us at least */
	int64_t turned_us;
	struct lane lanes[LANES];
	struct owed_answers owed; /* to audits that have ended */
	uint8_t body[FRAME_FETCH_BYTES];
};

/* ---- auditor.c ---- */

struct order *lane_order(struct auditor *a, const struct lane *l);
/* Returns true for an audit of a mean that was made of the sums of rows. */
bool lane_has_sums(const struct auditor *a, const struct lane *l);
/* Returns what the lane asks for now. */
struct frame_fetch lane_fetch(const struct auditor *a, const struct lane *l);
/* Returns true for an audit of an average that stands still, as another one goes first. */
bool lane_stands_still(const struct auditor *a, const struct lane *l);
/* Begins patience anew, as long as all may still come in time. */
void auditor_wait_on(const struct auditor *a, int64_t now_us, struct lane *l);
/* Ends the audit; answers that are still to come are void. */
void lane_leave(struct auditor *a, struct lane *l);

/* ---- auditor_average.c ---- */

void average_begin(struct auditor *a, int64_t now_us, struct lane *l);
/* Takes memory for pieces; returns false if there is none: the audit waits for those that were set
 * aside, or ends. */
bool average_take(struct auditor *a, struct lane *l, size_t bytes);
/* All pieces are here. */
void average_judge(struct auditor *a, struct lane *l);
void average_conclude(struct auditor *a, struct lane *l, enum audit_verdict verdict, uint32_t member,
					  const struct rv_hash *found);
/* It ends without some pieces, for that reason: WRONG if none could make the mean. */
void average_lack(struct auditor *a, struct lane *l, enum audit_verdict verdict, uint32_t member);
/* Judges the mean by the pieces that are here, if those that are missing will hardly come, and sets
 * the audit aside if that says nothing. */
void average_look(struct auditor *a, struct lane *l);
/* Its time is over: the first participant whose piece is missing is named, if it is linked. */
void average_give_up(struct auditor *a, int64_t now_us, struct lane *l);
/* The participant has ended the link while it owed its piece. */
void average_count_cut(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p);

/* ---- auditor_rows.c ---- */

/* l->roster, l->chunk are set. */
void mean_begin(struct auditor *a, int64_t now_us, struct lane *l);
/* Keeps a sum that is whole; after the last one the mean is judged. */
void mean_keep(struct auditor *a, int64_t now_us, struct lane *l);

/* ---- auditor_training.c ---- */

void training_begin(struct auditor *a, int64_t now_us, struct lane *l);
/* Keeps a chunk, or a piece, that is proven; after the last one it can be scored, or repeated. */
void training_keep(struct auditor *a, int64_t now_us, struct lane *l);
void training_conclude(struct auditor *a, struct lane *l, enum score_verdict verdict);
/* Returns the verdict over an author that is late, or what else may be why. */
enum score_verdict training_late(const struct auditor *a, const struct lane *l, enum score_verdict verdict);
/* Patience, or all of its time, is over. */
void training_give_up(struct auditor *a, int64_t now_us, struct lane *l);
/* The author has ended the link while it owed a chunk. */
void training_count_cut(struct auditor *a, int64_t now_us, struct lane *l);
/* Returns true for a result after which the author is asked again. */
bool training_is_away(const struct score_result *r);
/* Returns true if, a quarter of its time after patience, its author has given less than its part by
 * then. */
bool training_is_behind(const struct lane *l, int64_t now_us);

/* ---- auditor_answers.c ---- */

/* Returns the lane that waits for an answer of the member; NULL: none does. */
struct lane *auditor_asked_lane(struct auditor *a, uint32_t member);
bool auditor_is_linked(const struct auditor *a, const struct piece *p);
/* Returns true if a relay may be why nothing comes. */
bool auditor_hears_a_relay(const struct auditor *a, const struct piece *p);
/* Returns true if the piece could not be asked for, as another one of that member is on its way. */
bool auditor_waits_for_another(struct auditor *a, const struct lane *l, const struct piece *p);

#endif
