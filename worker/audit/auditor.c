/* auditor.c: see auditor.h. */
#include "worker/audit/auditor.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "base/slow_lines.h"

#include <string.h>

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

/* The piece of one participant. */
enum piece_state { PIECE_WANTED, PIECE_ASKED, PIECE_HERE };
struct piece {
	const struct auditor_member *from;
	enum piece_state state;
	int64_t ready_us; /* not asked before; INT64_MIN: at once */
	size_t chunk_bytes, bytes, got;
	uint8_t *at;
};

/* An audit under way. The first lane is for averages, the others for training: one whose sender is
 * slow does not hold up the others. */
enum { LANE_AVERAGES, LANE_TRAINING, LANES = LANE_TRAINING + NET_MAX_SCORES };
struct lane {
	int at;                              /* place in orders; -1: none is under way */
	const struct auditor_roster *roster; /* of averages */
	uint32_t chunk, n_chunks;            /* that is asked for, of so many */
	int64_t until_us;
	int n;
	struct piece pieces[NET_MAX_ROW];
	void *memory; /* of pieces; of training the contribution, and behind it room for a piece */
	/* The participant whose training is audited, and where its next chunk goes in `memory`. */
	struct auditor_member author;
	uint8_t *next;
	size_t sent_bytes;
	int64_t latest_us; /* for the last chunk */
	int cuts;          /* links that have ended since a chunk came, while it owed one */
	bool whole;        /* all chunks are here: it waits for its score */
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
	struct lane lanes[LANES];
	/* Answers that are still due to an audit that has ended: the next one of each of these members,
	 * which are linked. */
	struct {
		uint32_t member;
		struct frame_fetch of;
	} void_answers[NET_MAX_PEERS];
	int n_void;
	uint8_t body[FRAME_FETCH_BYTES];
};

size_t auditor_size(void) {
	return sizeof(struct auditor);
}

struct auditor *auditor_init(void *memory, uint32_t self_member, uint64_t run_tag, int64_t patience_us,
							 const struct auditor_ops *ops) {
	struct auditor *a = memory;
	memset(a, 0, sizeof *a);
	a->ops = *ops;
	a->self = self_member;
	a->run_tag = run_tag;
	a->patience_us = patience_us;
	for (int i = 0; i < LANES; i++)
		a->lanes[i].at = -1;
	return a;
}

static struct order *order_of(struct auditor *a, const struct lane *l) {
	RV_ASSERT(l->at >= 0 && l->at < a->n_orders);
	return &a->orders[l->at];
}

static struct frame_fetch fetch_of(const struct auditor *a, const struct lane *l) {
	const struct order *o = &a->orders[l->at];
	return (struct frame_fetch){.kind = FRAME_FETCH_CONTRIBUTION,
								.part = FRAME_PART_PIECE,
								.round = o->scores ? o->score.round : o->of.round,
								.index = l->chunk};
}

/* Ends the audit; answers that are still to come are void. */
static void leave(struct auditor *a, struct lane *l) {
	for (int i = 0; i < l->n; i++) {
		if (l->pieces[i].state != PIECE_ASKED)
			continue;
		RV_ASSERT(a->n_void < NET_MAX_PEERS); /* one of each linked member */
		a->void_answers[a->n_void].member = l->pieces[i].from->member;
		a->void_answers[a->n_void++].of = fetch_of(a, l);
	}
	if (l->memory != NULL)
		a->ops.give(a->ops.ctx, l->memory);
	l->memory = NULL;
	l->whole = false;
	l->n = 0;
	l->at = -1;
}

void auditor_release(struct auditor *a) {
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0)
			leave(a, &a->lanes[i]);
}

/* Returns true for a result after which the author is asked again. */
static bool is_away(const struct score_result *r) {
	return r->verdict == SCORE_UNREACHED || r->verdict == SCORE_CUT;
}

/* Returns true if the verdict says more than the one before, of an author that was away. */
static bool is_better(enum score_verdict verdict, uint8_t before) {
	return verdict != SCORE_UNREACHED && verdict != before;
}

static void conclude_score(struct auditor *a, struct lane *l, enum score_verdict verdict) {
	struct order *o = order_of(a, l);
	RV_ASSERT(o->scores && (!o->done || is_away(&o->scored)));
	if (!o->done || is_better(verdict, o->scored.verdict)) {
		a->news = true;
		o->scored =
			(struct score_result){.round = o->score.round, .member = o->score.member, .verdict = (uint8_t)verdict};
	}
	o->done = true;
	leave(a, l);
}

static void conclude(struct auditor *a, struct lane *l, enum audit_verdict verdict, uint32_t member,
					 const struct rv_hash *found) {
	struct order *o = order_of(a, l);
	RV_ASSERT(!o->scores && !o->done);
	o->done = true;
	o->result = (struct audit_result){
		.round = o->of.round, .chunk = o->of.chunk, .verdict = (uint8_t)verdict, .member = member};
	if (verdict == AUDIT_WRONG)
		o->result.found = *found;
	a->news = true;
	leave(a, l);
}

/* The member gives nothing, or not what it has committed to. */
static void conclude_withheld(struct auditor *a, struct lane *l, uint32_t member) {
	if (order_of(a, l)->scores)
		conclude_score(a, l, SCORE_WITHHELD);
	else
		conclude(a, l, AUDIT_WITHHELD, member, NULL);
}

/* ---- rosters and orders ---- */

void auditor_note_roster(struct auditor *a, const struct document *d) {
	struct auditor_roster *r = &a->rosters[d->round % AUDITOR_ROUNDS];
	RV_ASSERT(d->phase == RUN_REDUCE);
	struct lane *l = &a->lanes[LANE_AVERAGES];
	if (l->at >= 0 && l->roster == r)
		conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL); /* it took too long, or its round was taken back */
	*r = (struct auditor_roster){.round = d->round, .attempt = d->n_rows > 1 ? 0 : d->attempt, .n_chunks = d->n_chunks};
	for (int i = 0; i < d->n_members && d->n_rows <= 1; i++) {
		const struct member_ref *m = &d->members[i];
		r->members[r->n++] = (struct auditor_member){
			.member = m->member, .weight = m->weight, .codec = m->codec, .part = m->part, .root = m->contribution_root};
	}
}

static bool same_order(const struct order *a, const struct order *b) {
	if (a->scores != b->scores)
		return false;
	return a->scores ? a->score.round == b->score.round && a->score.member == b->score.member &&
						   rv_hash_equal(&a->score.root, &b->score.root)
					 : a->of.round == b->of.round && a->of.attempt == b->of.attempt && a->of.chunk == b->of.chunk;
}

/* Lists what the document orders. Returns how many. */
static int list_orders(const struct document *d, struct order out[MAX_ORDERS]) {
	int n = 0;
	for (int i = 0; i < d->n_audits; i++)
		out[n++] = (struct order){.of = d->audits[i]};
	for (int i = 0; i < d->n_scores; i++)
		out[n++] = (struct order){.scores = true, .score = d->scores[i]};
	return n;
}

/* Returns the lane in which that order is under way; NULL: it is not. */
static struct lane *lane_of(struct auditor *a, int order) {
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at == order)
			return &a->lanes[i];
	return NULL;
}

void auditor_follow(struct auditor *a, int64_t now_us, const struct document *d) {
	struct order orders[MAX_ORDERS];
	int at[LANES];
	const int n = list_orders(d, orders);
	for (int i = 0; i < LANES; i++)
		at[i] = -1;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < a->n_orders; k++)
			if (same_order(&orders[i], &a->orders[k])) {
				const struct lane *l = lane_of(a, k);
				orders[i] = a->orders[k];
				if (l != NULL)
					at[l - a->lanes] = i;
			}
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0 && at[i] < 0)
			leave(a, &a->lanes[i]);
	a->n_orders = n;
	memcpy(a->orders, orders, (size_t)n * sizeof orders[0]);
	for (int i = 0; i < LANES; i++)
		a->lanes[i].at = at[i];
	auditor_tick(a, now_us);
}

void auditor_report(const struct auditor *a, struct report *r) {
	r->n_verdicts = r->n_scores = 0;
	for (int i = 0; i < a->n_orders; i++) {
		const struct order *o = &a->orders[i];
		if (o->done && o->scores)
			r->scores[r->n_scores++] = o->scored;
		else if (o->done)
			r->verdicts[r->n_verdicts++] = o->result;
	}
}

bool auditor_has_news(struct auditor *a) {
	const bool news = a->news;
	a->news = false;
	return news;
}

/* ---- one audit ---- */

static void judge(struct auditor *a, struct lane *l) {
	struct auditor_case c = {.roster = l->roster, .chunk = order_of(a, l)->of.chunk, .n = l->n};
	struct rv_hash found = {{0}};
	for (int i = 0; i < l->n; i++) {
		c.members[i] = l->pieces[i].from;
		c.data[i] = l->pieces[i].at;
	}
	const enum audit_verdict verdict = a->ops.judge(a->ops.ctx, &c, &found);
	RV_ASSERT(verdict == AUDIT_RIGHT || verdict == AUDIT_WRONG || verdict == AUDIT_UNABLE);
	conclude(a, l, verdict, NET_NO_MEMBER, &found);
}

static bool has_all(const struct lane *l) {
	for (int i = 0; i < l->n; i++)
		if (l->pieces[i].state != PIECE_HERE)
			return false;
	return true;
}

/* Returns true if the piece is the chunk that its sender has committed to. */
static bool is_proven(const struct lane *l, const struct piece *p) {
	const struct merkle_range range = {l->n_chunks, l->chunk, 1};
	const struct rv_hash leaf = merkle_leaf(range.first, p->at, p->chunk_bytes);
	struct rv_hash proof[MERKLE_MAX_PROOF];
	memcpy(proof, p->at + p->chunk_bytes, p->bytes - p->chunk_bytes);
	return merkle_check(&p->from->root, &range, &leaf, proof, merkle_proof_hashes(&range));
}

static const struct auditor_roster *roster_of(const struct auditor *a, const struct audit_order *o) {
	const struct auditor_roster *r = &a->rosters[o->round % AUDITOR_ROUNDS];
	return r->attempt == o->attempt && r->round == o->round && o->chunk < r->n_chunks ? r : NULL;
}

/* Lists the participants that contributed to the chunk; returns the bytes of their pieces. */
static size_t list_pieces(const struct auditor *a, struct lane *l, const struct audit_order *o) {
	const struct merkle_range range = {l->roster->n_chunks, o->chunk, 1};
	const size_t proof_bytes = merkle_proof_hashes(&range) * sizeof(struct rv_hash);
	size_t bytes = 0;
	l->n = 0;
	for (int i = 0; i < l->roster->n; i++) {
		const struct auditor_member *m = &l->roster->members[i];
		if (!slow_contributes(m->part, m->member, o->round, o->chunk))
			continue;
		const size_t chunk_bytes = a->ops.chunk_bytes(a->ops.ctx, o->round, m->codec, o->chunk);
		l->pieces[l->n++] = (struct piece){
			.from = m, .ready_us = INT64_MIN, .chunk_bytes = chunk_bytes, .bytes = chunk_bytes + proof_bytes};
		bytes += l->pieces[l->n - 1].bytes;
	}
	return bytes;
}

/* Takes this worker's own piece. */
static void take_own(struct auditor *a, struct lane *l, struct piece *p, const struct audit_order *o) {
	if (a->ops.own(a->ops.ctx, o->round, o->chunk, p->at, p->bytes) && is_proven(l, p))
		p->state = PIECE_HERE;
	else
		conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
}

/* ---- of a whole contribution ---- */

static bool has_chunk(const struct score_order *o, uint32_t chunk) {
	return slow_contributes(o->part, o->member, o->round, chunk);
}

/* Asks for the first chunk from l->chunk on that the author has contributed; returns false if there
 * is none. */
static bool ask_for_chunk(struct auditor *a, struct lane *l) {
	const struct score_order *o = &order_of(a, l)->score;
	while (l->chunk < l->n_chunks && !has_chunk(o, l->chunk))
		l->chunk++;
	if (l->chunk == l->n_chunks)
		return false;
	const size_t chunk_bytes = a->ops.chunk_bytes(a->ops.ctx, o->round, o->codec, l->chunk);
	const struct merkle_range range = {l->n_chunks, l->chunk, 1};
	l->pieces[0] = (struct piece){.from = &l->author,
								  .ready_us = INT64_MIN,
								  .chunk_bytes = chunk_bytes,
								  .bytes = chunk_bytes + merkle_proof_hashes(&range) * sizeof(struct rv_hash),
								  .at = (uint8_t *)l->memory + l->sent_bytes};
	return true;
}

/* Returns the time that a contribution of this size has: a drip must not hold an audit up. */
static int64_t fetch_us(const struct auditor *a, size_t bytes) {
	return a->patience_us + (int64_t)((uint64_t)bytes * 1000000 / AUDITOR_LEAST_BYTES_PER_S);
}

static void begin_score(struct auditor *a, int64_t now_us, struct lane *l) {
	enum { PIECE_BYTES = NET_MAX_CHUNK_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash) };
	const struct score_order *o = &order_of(a, l)->score;
	l->roster = NULL;
	l->author = (struct auditor_member){.member = o->member, .codec = o->codec, .part = o->part, .root = o->root};
	l->n_chunks = o->n_chunks;
	l->chunk = 0;
	l->cuts = 0;
	l->sent_bytes = o->member != a->self ? a->ops.sent_bytes(a->ops.ctx, o) : 0;
	if (l->sent_bytes > 0)
		l->memory = a->ops.take(a->ops.ctx, l->sent_bytes + PIECE_BYTES);
	l->next = l->memory;
	l->latest_us = now_us + fetch_us(a, l->sent_bytes);
	l->n = 1;
	if (l->memory == NULL || !ask_for_chunk(a, l)) {
		l->n = 0;
		conclude_score(a, l, SCORE_UNABLE);
	}
}

/* Gives the owner a contribution to score, if one is here and it has none. */
static void score_next(struct auditor *a) {
	for (int i = LANE_TRAINING; i < LANES && !a->scoring; i++) {
		struct lane *l = &a->lanes[i];
		uint8_t *encoded = l->memory;
		if (!l->whole || encoded == NULL)
			continue;
		a->scoring = true;
		l->memory = NULL;
		a->ops.score(a->ops.ctx, &order_of(a, l)->score, encoded);
	}
}

/* Training: patience begins anew, as long as the whole contribution may still come in time. */
static void wait_on(const struct auditor *a, int64_t now_us, struct lane *l) {
	l->until_us = now_us + a->patience_us < l->latest_us ? now_us + a->patience_us : l->latest_us;
}

/* Keeps a chunk that is proven; the last one: the contribution can be scored. */
static void keep_chunk(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct piece p = l->pieces[0];
	memcpy(l->next, p.at, p.chunk_bytes);
	l->next += p.chunk_bytes;
	l->chunk++;
	l->cuts = 0;
	wait_on(a, now_us, l);
	if (ask_for_chunk(a, l))
		return;
	RV_ASSERT(l->next == (uint8_t *)l->memory + l->sent_bytes);
	l->whole = true;
	l->n = 0;
	l->until_us = INT64_MAX;
	score_next(a);
}

void auditor_scored(struct auditor *a, const struct score_result *result) {
	RV_ASSERT(a->scoring);
	a->scoring = false;
	for (int i = LANE_TRAINING; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		struct order *o = l->whole && l->memory == NULL ? order_of(a, l) : NULL;
		if (o == NULL || o->score.round != result->round || o->score.member != result->member)
			continue; /* or it is ordered no more */
		o->done = true;
		o->scored = *result;
		a->news = true;
		leave(a, l);
	}
	score_next(a);
}

/* ---- begin and end ---- */

static struct piece *piece_of(struct lane *l, uint32_t member) {
	for (int i = 0; i < l->n; i++)
		if (l->pieces[i].from->member == member)
			return &l->pieces[i];
	return NULL;
}

/* Returns the lane that waits for an answer of the member; NULL: none does. */
static struct lane *asked_lane(struct auditor *a, uint32_t member) {
	for (int i = 0; i < LANES; i++) {
		const struct piece *p = piece_of(&a->lanes[i], member);
		if (p != NULL && p->state == PIECE_ASKED)
			return &a->lanes[i];
	}
	return NULL;
}

static void begin_average(struct auditor *a, struct lane *l) {
	const struct audit_order *o = &order_of(a, l)->of;
	l->roster = roster_of(a, o);
	l->chunk = o->chunk;
	l->n_chunks = l->roster != NULL ? l->roster->n_chunks : 0;
	const size_t bytes = l->roster != NULL ? list_pieces(a, l, o) : 0;
	if (bytes > 0)
		l->memory = a->ops.take(a->ops.ctx, bytes);
	if (l->memory == NULL) {
		conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
		return;
	}
	uint8_t *next = l->memory;
	for (int i = 0; i < l->n; i++) {
		l->pieces[i].at = next;
		next += l->pieces[i].bytes;
	}
	for (int i = 0; i < l->n && l->at >= 0; i++)
		if (l->pieces[i].from->member == a->self)
			take_own(a, l, &l->pieces[i], o);
	if (l->at >= 0 && has_all(l))
		judge(a, l);
}

/* Returns true if contributions of the author of this order are being fetched: they come one after
 * the other, or one would wait for the other with its patience running. */
static bool author_is_busy(const struct auditor *a, const struct score_order *o) {
	for (int i = LANE_TRAINING; i < LANES; i++)
		if (a->lanes[i].at >= 0 && !a->lanes[i].whole && a->lanes[i].author.member == o->member)
			return true;
	return false;
}

/* Returns the lane in which the order can begin; NULL: it has to wait. */
static struct lane *lane_for(struct auditor *a, const struct order *o) {
	const int first = o->scores ? LANE_TRAINING : LANE_AVERAGES, end = o->scores ? LANES : LANE_TRAINING;
	if (o->scores && author_is_busy(a, &o->score))
		return NULL;
	for (int i = first; i < end; i++)
		if (a->lanes[i].at < 0)
			return &a->lanes[i];
	return NULL;
}

static void begin(struct auditor *a, int64_t now_us, int order) {
	struct lane *l = lane_for(a, &a->orders[order]);
	if (l == NULL)
		return;
	l->at = order;
	l->n = 0;
	l->until_us = now_us + a->patience_us;
	if (a->orders[order].scores)
		begin_score(a, now_us, l);
	else
		begin_average(a, l);
}

static bool is_linked(const struct auditor *a, const struct piece *p) {
	return a->ops.linked(a->ops.ctx, p->from->member);
}

/* Returns true if the piece could not be asked for, as another one of that member is on its way. */
static bool waits_for_another(struct auditor *a, const struct lane *l, const struct piece *p) {
	const struct lane *other = asked_lane(a, p->from->member);
	return other != NULL && other != l;
}

/* The first participant whose piece is missing is named: it holds the audit up, if it is linked. */
static void give_up_average(struct auditor *a, struct lane *l) {
	uint32_t unlinked = NET_NO_MEMBER;
	for (int i = 0; i < l->n; i++) {
		const struct piece *p = &l->pieces[i];
		if (p->state == PIECE_HERE)
			continue;
		if (is_linked(a, p) && !waits_for_another(a, l, p)) {
			conclude(a, l, AUDIT_WITHHELD, p->from->member, NULL);
			return;
		}
		unlinked = is_linked(a, p) ? unlinked : p->from->member;
	}
	conclude(a, l, AUDIT_UNABLE, unlinked, NULL);
}

/* Returns the place of the oldest answer of the member that is void; -1: it owes none. */
static int find_void(const struct auditor *a, uint32_t member) {
	for (int i = 0; i < a->n_void; i++)
		if (a->void_answers[i].member == member)
			return i;
	return -1;
}

/* An author that still owes another answer could not be asked for this one, nor could one that cut
 * its link, and has a new one. */
static bool is_not_asked(struct auditor *a, const struct lane *l) {
	const struct piece *p = &l->pieces[0];
	const bool cut = l->cuts > 0 && is_linked(a, p);
	return p->state == PIECE_WANTED && (cut || waits_for_another(a, l, p) || find_void(a, p->from->member) >= 0);
}

static void give_up(struct auditor *a, int64_t now_us, struct lane *l) {
	const bool scores = order_of(a, l)->scores;
	if (scores && now_us < l->latest_us && is_not_asked(a, l))
		wait_on(a, now_us, l);
	else if (scores)
		conclude_score(a, l, is_linked(a, &l->pieces[0]) ? SCORE_WITHHELD : SCORE_UNREACHED);
	else
		give_up_average(a, l);
}

/* Those that gave NONE a while ago may be asked again. */
static void make_ready(struct lane *l, int64_t now_us) {
	for (int i = 0; i < l->n; i++)
		if (now_us >= l->pieces[i].ready_us)
			l->pieces[i].ready_us = INT64_MIN;
}

/* Returns true if the order has no result, or no better one than that its author was away, and it
 * is linked now. */
static bool is_wanted(const struct auditor *a, int64_t now_us, const struct order *o) {
	return !o->done ||
		   (o->scores && is_away(&o->scored) && now_us >= o->again_us && a->ops.linked(a->ops.ctx, o->score.member));
}

void auditor_tick(struct auditor *a, int64_t now_us) {
	for (int i = 0; i < LANES; i++)
		make_ready(&a->lanes[i], now_us);
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0 && now_us >= a->lanes[i].until_us)
			give_up(a, now_us, &a->lanes[i]);
	for (int i = 0; i < a->n_orders; i++)
		if (is_wanted(a, now_us, &a->orders[i]) && lane_of(a, i) == NULL)
			begin(a, now_us, i);
}

static int64_t lane_deadline_us(const struct lane *l) {
	int64_t at = l->at >= 0 ? l->until_us : INT64_MAX;
	for (int i = 0; i < l->n; i++) {
		const struct piece *p = &l->pieces[i];
		if (p->state == PIECE_WANTED && p->ready_us != INT64_MIN && p->ready_us < at)
			at = p->ready_us;
	}
	return at;
}

int64_t auditor_deadline_us(const struct auditor *a) {
	int64_t first = INT64_MAX;
	for (int i = 0; i < LANES; i++) {
		const int64_t at = lane_deadline_us(&a->lanes[i]);
		first = at < first ? at : first;
	}
	return first;
}

/* ---- messages ---- */

static void drop_void(struct auditor *a, int at) {
	a->n_void--;
	memmove(&a->void_answers[at], &a->void_answers[at + 1], (size_t)(a->n_void - at) * sizeof a->void_answers[0]);
}

/* One FETCH of a member at a time, as its answers come in their order; of averages first. */
bool auditor_send(struct auditor *a, int64_t now_us, uint32_t member, struct peers_message *out) {
	if (find_void(a, member) >= 0 || asked_lane(a, member) != NULL)
		return false;
	for (int i = 0; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		struct piece *p = piece_of(l, member);
		if (p == NULL || p->state != PIECE_WANTED || now_us < p->ready_us)
			continue;
		const struct frame_fetch f = fetch_of(a, l);
		p->state = PIECE_ASKED;
		p->got = 0;
		*out = (struct peers_message){.header = frame_fetch_encode(&f, a->run_tag, a->body),
									  .part = {a->body, NULL},
									  .part_bytes = {FRAME_FETCH_BYTES, 0}};
		return true;
	}
	return false;
}

static bool same_fetch(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->round == b->round && a->index == b->index;
}

/* The sender may just be storing it, on a slow disk: it has as long as one that says nothing. */
static void take_none(int64_t now_us, struct piece *p) {
	p->state = PIECE_WANTED;
	p->ready_us = now_us + AUDITOR_AGAIN_US;
}

static void take_piece(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p) {
	if (!is_proven(l, p))
		conclude_withheld(a, l, p->from->member);
	else if (order_of(a, l)->scores)
		keep_chunk(a, now_us, l);
	else if (has_all(l))
		judge(a, l);
}

/* Takes a slice of a piece; a piece of another length is not what was committed to. */
static enum rv_err take_slice(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p,
							  const struct frame_piece *f, struct rv_errtext *et) {
	if (f->offset != p->got)
		return rv_fail(et, RV_E_PROTOCOL, "a slice of a contribution at %u, must be at %zu", f->offset, p->got);
	if (f->offset + f->data_bytes == f->total)
		p->state = PIECE_HERE;
	if (f->total != p->bytes) {
		conclude_withheld(a, l, p->from->member);
		return RV_OK;
	}
	memcpy(p->at + p->got, f->data, f->data_bytes);
	p->got += f->data_bytes;
	if (order_of(a, l)->scores)
		wait_on(a, now_us, l);
	if (p->state == PIECE_HERE)
		take_piece(a, now_us, l, p);
	return RV_OK;
}

/* Takes a part of an answer that is void. */
static enum rv_err take_void(struct auditor *a, int at, const struct frame_header *h, const struct frame_piece *f,
							 struct rv_errtext *et) {
	if (!same_fetch(&a->void_answers[at].of, &f->of))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (h->type == FRAME_NONE || f->offset + f->data_bytes == f->total)
		drop_void(a, at);
	return RV_OK;
}

enum rv_err auditor_receive(struct auditor *a, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et) {
	struct frame_piece f = {.offset = 0};
	if (h->type == FRAME_PIECE)
		RV_TRY(frame_piece_decode(h, body, &f, et));
	else
		RV_TRY(frame_fetch_decode(h, body, &f.of, et));
	const int at = find_void(a, member);
	if (at >= 0)
		return take_void(a, at, h, &f, et);
	struct lane *l = asked_lane(a, member);
	const struct frame_fetch asked = l != NULL ? fetch_of(a, l) : (struct frame_fetch){.kind = 0};
	if (l == NULL || !same_fetch(&asked, &f.of))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (h->type == FRAME_PIECE)
		return take_slice(a, now_us, l, piece_of(l, member), &f, et);
	take_none(now_us, piece_of(l, member));
	return RV_OK;
}

/* The link has ended while the author owed a chunk. */
static void count_cut(struct auditor *a, int64_t now_us, struct lane *l) {
	l->pieces[0].ready_us = now_us + AUDITOR_AFTER_CUT_US;
	if (++l->cuts < AUDITOR_CUTS)
		return;
	order_of(a, l)->again_us = now_us + a->patience_us;
	conclude_score(a, l, SCORE_CUT);
}

void auditor_link_down(struct auditor *a, int64_t now_us, uint32_t member) {
	struct lane *l = asked_lane(a, member);
	for (int at = find_void(a, member); at >= 0; at = find_void(a, member))
		drop_void(a, at);
	if (l == NULL)
		return;
	piece_of(l, member)->state = PIECE_WANTED;
	if (order_of(a, l)->scores)
		count_cut(a, now_us, l);
}
