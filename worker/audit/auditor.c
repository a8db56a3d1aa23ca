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
};

/* The piece of one participant. */
enum piece_state { PIECE_WANTED, PIECE_ASKED, PIECE_HERE };
struct piece {
	const struct auditor_member *from;
	enum piece_state state;
	bool again;       /* it gave NONE once */
	int64_t ready_us; /* not asked before */
	size_t chunk_bytes, bytes, got;
	uint8_t *at;
};

struct auditor {
	struct auditor_ops ops;
	uint32_t self;
	uint64_t run_tag;
	struct auditor_roster rosters[AUDITOR_ROUNDS]; /* by round mod AUDITOR_ROUNDS */
	int n_orders;
	struct order orders[MAX_ORDERS]; /* those of averages first */
	bool news;
	/* The audit under way. */
	int at;                              /* place in orders; -1: none */
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

struct auditor *auditor_init(void *memory, uint32_t self_member, uint64_t run_tag, const struct auditor_ops *ops) {
	struct auditor *a = memory;
	memset(a, 0, sizeof *a);
	a->ops = *ops;
	a->self = self_member;
	a->run_tag = run_tag;
	a->at = -1;
	return a;
}

static struct frame_fetch fetch_of(const struct auditor *a) {
	const struct order *o = &a->orders[a->at];
	return (struct frame_fetch){.kind = FRAME_FETCH_CONTRIBUTION,
								.part = FRAME_PART_PIECE,
								.round = o->scores ? o->score.round : o->of.round,
								.index = a->chunk};
}

/* Ends the audit under way; answers that are still to come are void. */
static void leave(struct auditor *a) {
	for (int i = 0; i < a->n; i++) {
		if (a->pieces[i].state != PIECE_ASKED)
			continue;
		RV_ASSERT(a->n_void < NET_MAX_PEERS); /* one of each linked member */
		a->void_answers[a->n_void].member = a->pieces[i].from->member;
		a->void_answers[a->n_void++].of = fetch_of(a);
	}
	if (a->memory != NULL)
		a->ops.give(a->ops.ctx, a->memory);
	a->memory = NULL;
	a->n = 0;
	a->at = -1;
}

void auditor_release(struct auditor *a) {
	if (a->at >= 0)
		leave(a);
}

static void conclude(struct auditor *a, enum audit_verdict verdict, uint32_t member, const struct rv_hash *found) {
	struct order *o = &a->orders[a->at];
	RV_ASSERT(a->at >= 0 && !o->done);
	o->done = true;
	if (o->scores)
		o->scored =
			(struct score_result){.round = o->score.round,
								  .member = o->score.member,
								  .verdict = (uint8_t)(verdict == AUDIT_WITHHELD ? SCORE_WITHHELD : SCORE_UNABLE)};
	o->result = (struct audit_result){
		.round = o->of.round, .chunk = o->of.chunk, .verdict = (uint8_t)verdict, .member = member};
	if (verdict == AUDIT_WRONG)
		o->result.found = *found;
	a->news = true;
	leave(a);
}

/* ---- rosters and orders ---- */

void auditor_note_roster(struct auditor *a, const struct document *d) {
	struct auditor_roster *r = &a->rosters[d->round % AUDITOR_ROUNDS];
	RV_ASSERT(d->phase == RUN_REDUCE);
	if (a->at >= 0 && a->roster == r)
		conclude(a, AUDIT_UNABLE, NET_NO_MEMBER, NULL); /* it took too long, or its round was taken back */
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

void auditor_follow(struct auditor *a, int64_t now_us, const struct document *d) {
	struct order orders[MAX_ORDERS];
	const int n = list_orders(d, orders);
	int at = -1;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < a->n_orders; k++)
			if (same_order(&orders[i], &a->orders[k])) {
				orders[i] = a->orders[k];
				at = k == a->at ? i : at;
			}
	if (a->at >= 0 && at < 0)
		leave(a);
	a->n_orders = n;
	memcpy(a->orders, orders, (size_t)n * sizeof orders[0]);
	a->at = at;
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

static void judge(struct auditor *a) {
	struct auditor_case c = {.roster = a->roster, .chunk = a->orders[a->at].of.chunk, .n = a->n};
	struct rv_hash found = {{0}};
	for (int i = 0; i < a->n; i++) {
		c.members[i] = a->pieces[i].from;
		c.data[i] = a->pieces[i].at;
	}
	const enum audit_verdict verdict = a->ops.judge(a->ops.ctx, &c, &found);
	RV_ASSERT(verdict == AUDIT_RIGHT || verdict == AUDIT_WRONG || verdict == AUDIT_UNABLE);
	conclude(a, verdict, NET_NO_MEMBER, &found);
}

static bool has_all(const struct auditor *a) {
	for (int i = 0; i < a->n; i++)
		if (a->pieces[i].state != PIECE_HERE)
			return false;
	return true;
}

/* Returns true if the piece is the chunk that its sender has committed to. */
static bool is_proven(const struct auditor *a, const struct piece *p) {
	const struct merkle_range range = {a->n_chunks, a->chunk, 1};
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
static size_t list_pieces(struct auditor *a, const struct audit_order *o) {
	const struct merkle_range range = {a->roster->n_chunks, o->chunk, 1};
	const size_t proof_bytes = merkle_proof_hashes(&range) * sizeof(struct rv_hash);
	size_t bytes = 0;
	a->n = 0;
	for (int i = 0; i < a->roster->n; i++) {
		const struct auditor_member *m = &a->roster->members[i];
		if (!slow_contributes(m->part, m->member, o->round, o->chunk))
			continue;
		const size_t chunk_bytes = a->ops.chunk_bytes(a->ops.ctx, o->round, m->codec, o->chunk);
		a->pieces[a->n++] = (struct piece){.from = m, .chunk_bytes = chunk_bytes, .bytes = chunk_bytes + proof_bytes};
		bytes += a->pieces[a->n - 1].bytes;
	}
	return bytes;
}

/* Takes this worker's own piece. */
static void take_own(struct auditor *a, struct piece *p, const struct audit_order *o) {
	if (a->ops.own(a->ops.ctx, o->round, o->chunk, p->at, p->bytes) && is_proven(a, p))
		p->state = PIECE_HERE;
	else
		conclude(a, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
}

/* ---- of a whole contribution ---- */

static bool has_chunk(const struct score_order *o, uint32_t chunk) {
	return slow_contributes(o->part, o->member, o->round, chunk);
}

/* Asks for the first chunk from a->chunk on that the author has contributed; returns false if there
 * is none. */
static bool ask_for_chunk(struct auditor *a) {
	const struct score_order *o = &a->orders[a->at].score;
	while (a->chunk < a->n_chunks && !has_chunk(o, a->chunk))
		a->chunk++;
	if (a->chunk == a->n_chunks)
		return false;
	const size_t chunk_bytes = a->ops.chunk_bytes(a->ops.ctx, o->round, o->codec, a->chunk);
	const struct merkle_range range = {a->n_chunks, a->chunk, 1};
	a->pieces[0] = (struct piece){.from = &a->author,
								  .chunk_bytes = chunk_bytes,
								  .bytes = chunk_bytes + merkle_proof_hashes(&range) * sizeof(struct rv_hash),
								  .at = (uint8_t *)a->memory + a->sent_bytes};
	return true;
}

/* Returns the time that a contribution of this size has: a drip must not hold other audits up. */
static int64_t fetch_us(size_t bytes) {
	return AUDITOR_PATIENCE_US + (int64_t)((uint64_t)bytes * 1000000 / AUDITOR_LEAST_BYTES_PER_S);
}

static void begin_score(struct auditor *a, int64_t now_us) {
	enum { PIECE_BYTES = NET_MAX_CHUNK_BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash) };
	const struct score_order *o = &a->orders[a->at].score;
	a->roster = NULL;
	a->author = (struct auditor_member){.member = o->member, .codec = o->codec, .part = o->part, .root = o->root};
	a->n_chunks = o->n_chunks;
	a->chunk = 0;
	a->sent_bytes = o->member != a->self ? a->ops.sent_bytes(a->ops.ctx, o) : 0;
	if (a->sent_bytes > 0)
		a->memory = a->ops.take(a->ops.ctx, a->sent_bytes + PIECE_BYTES);
	a->next = a->memory;
	a->latest_us = now_us + fetch_us(a->sent_bytes);
	a->n = 1;
	if (a->memory == NULL || !ask_for_chunk(a)) {
		a->n = 0;
		conclude(a, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
	}
}

/* Keeps a chunk that is proven; the last one: the contribution is scored. */
static void keep_chunk(struct auditor *a, int64_t now_us) {
	const struct piece p = a->pieces[0];
	memcpy(a->next, p.at, p.chunk_bytes);
	a->next += p.chunk_bytes;
	a->chunk++;
	a->until_us = now_us + AUDITOR_PATIENCE_US < a->latest_us ? now_us + AUDITOR_PATIENCE_US : a->latest_us;
	if (ask_for_chunk(a))
		return;
	uint8_t *encoded = a->memory;
	RV_ASSERT(a->next == encoded + a->sent_bytes);
	a->memory = NULL;
	a->n = 0;
	a->until_us = INT64_MAX;
	a->ops.score(a->ops.ctx, &a->orders[a->at].score, encoded);
}

void auditor_scored(struct auditor *a, const struct score_result *result) {
	struct order *o = a->at >= 0 ? &a->orders[a->at] : NULL;
	if (o == NULL || !o->scores || a->until_us != INT64_MAX || o->score.round != result->round ||
		o->score.member != result->member)
		return; /* it is ordered no more */
	o->done = true;
	o->scored = *result;
	a->news = true;
	leave(a);
}

/* ---- begin and end ---- */

static void begin_average(struct auditor *a) {
	const struct audit_order *o = &a->orders[a->at].of;
	a->roster = roster_of(a, o);
	a->chunk = o->chunk;
	a->n_chunks = a->roster != NULL ? a->roster->n_chunks : 0;
	const size_t bytes = a->roster != NULL ? list_pieces(a, o) : 0;
	if (bytes > 0)
		a->memory = a->ops.take(a->ops.ctx, bytes);
	if (a->memory == NULL) {
		conclude(a, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
		return;
	}
	uint8_t *next = a->memory;
	for (int i = 0; i < a->n; i++) {
		a->pieces[i].at = next;
		next += a->pieces[i].bytes;
	}
	for (int i = 0; i < a->n && a->at >= 0; i++)
		if (a->pieces[i].from->member == a->self)
			take_own(a, &a->pieces[i], o);
	if (a->at >= 0 && has_all(a))
		judge(a);
}

static void begin(struct auditor *a, int64_t now_us, int at) {
	a->at = at;
	a->n = 0;
	a->until_us = now_us + AUDITOR_PATIENCE_US;
	if (a->orders[at].scores)
		begin_score(a, now_us);
	else
		begin_average(a);
}

/* The first participant whose piece is missing is named: it holds the audit up, if it is linked. */
static void give_up(struct auditor *a) {
	uint32_t unlinked = NET_NO_MEMBER;
	for (int i = 0; i < a->n; i++) {
		const struct piece *p = &a->pieces[i];
		if (p->state == PIECE_HERE)
			continue;
		if (a->ops.linked(a->ops.ctx, p->from->member)) {
			conclude(a, AUDIT_WITHHELD, p->from->member, NULL);
			return;
		}
		unlinked = p->from->member;
	}
	conclude(a, AUDIT_UNABLE, unlinked, NULL);
}

void auditor_tick(struct auditor *a, int64_t now_us) {
	if (a->at >= 0 && now_us >= a->until_us)
		give_up(a);
	for (int i = 0; i < a->n_orders && a->at < 0; i++)
		if (!a->orders[i].done)
			begin(a, now_us, i);
}

int64_t auditor_deadline_us(const struct auditor *a) {
	int64_t at = a->at >= 0 ? a->until_us : INT64_MAX;
	for (int i = 0; i < a->n; i++) {
		const struct piece *p = &a->pieces[i];
		if (p->state == PIECE_WANTED && p->again && p->ready_us < at)
			at = p->ready_us;
	}
	return at;
}

/* ---- messages ---- */

static struct piece *piece_of(struct auditor *a, uint32_t member) {
	for (int i = 0; i < a->n; i++)
		if (a->pieces[i].from->member == member)
			return &a->pieces[i];
	return NULL;
}

/* Returns the place of the oldest answer of the member that is void; -1: it owes none. */
static int find_void(const struct auditor *a, uint32_t member) {
	for (int i = 0; i < a->n_void; i++)
		if (a->void_answers[i].member == member)
			return i;
	return -1;
}

static void drop_void(struct auditor *a, int at) {
	a->n_void--;
	memmove(&a->void_answers[at], &a->void_answers[at + 1], (size_t)(a->n_void - at) * sizeof a->void_answers[0]);
}

bool auditor_send(struct auditor *a, int64_t now_us, uint32_t member, struct peers_message *out) {
	struct piece *p = a->at >= 0 ? piece_of(a, member) : NULL;
	if (p == NULL || p->state != PIECE_WANTED || now_us < p->ready_us || find_void(a, member) >= 0)
		return false;
	const struct frame_fetch f = fetch_of(a);
	p->state = PIECE_ASKED;
	p->got = 0;
	*out = (struct peers_message){.header = frame_fetch_encode(&f, a->run_tag, a->body),
								  .part = {a->body, NULL},
								  .part_bytes = {FRAME_FETCH_BYTES, 0}};
	return true;
}

static bool same_fetch(const struct frame_fetch *a, const struct frame_fetch *b) {
	return a->kind == b->kind && a->part == b->part && a->round == b->round && a->index == b->index;
}

static void take_none(struct auditor *a, int64_t now_us, struct piece *p) {
	p->state = PIECE_WANTED;
	p->ready_us = now_us + AUDITOR_AGAIN_US;
	if (p->again)
		conclude(a, AUDIT_WITHHELD, p->from->member, NULL);
	else
		p->again = true;
}

/* Takes a slice of a piece; a piece of another length is not what was committed to. */
static enum rv_err take_slice(struct auditor *a, int64_t now_us, struct piece *p, const struct frame_piece *f,
							  struct rv_errtext *et) {
	if (f->offset != p->got)
		return rv_fail(et, RV_E_PROTOCOL, "a slice of a contribution at %u, must be at %zu", f->offset, p->got);
	if (f->offset + f->data_bytes == f->total)
		p->state = PIECE_HERE;
	if (f->total != p->bytes) {
		conclude(a, AUDIT_WITHHELD, p->from->member, NULL);
		return RV_OK;
	}
	memcpy(p->at + p->got, f->data, f->data_bytes);
	p->got += f->data_bytes;
	if (p->state != PIECE_HERE)
		return RV_OK;
	if (!is_proven(a, p))
		conclude(a, AUDIT_WITHHELD, p->from->member, NULL);
	else if (a->orders[a->at].scores)
		keep_chunk(a, now_us);
	else if (has_all(a))
		judge(a);
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
	struct piece *p = a->at >= 0 ? piece_of(a, member) : NULL;
	const struct frame_fetch asked = a->at >= 0 ? fetch_of(a) : (struct frame_fetch){.kind = 0};
	if (p == NULL || p->state != PIECE_ASKED || !same_fetch(&asked, &f.of))
		return rv_fail(et, RV_E_PROTOCOL, "a contribution that was not asked for");
	if (h->type == FRAME_PIECE)
		return take_slice(a, now_us, p, &f, et);
	take_none(a, now_us, p);
	return RV_OK;
}

void auditor_link_down(struct auditor *a, uint32_t member) {
	struct piece *p = a->at >= 0 ? piece_of(a, member) : NULL;
	for (int at = find_void(a, member); at >= 0; at = find_void(a, member))
		drop_void(a, at);
	if (p != NULL && p->state == PIECE_ASKED)
		p->state = PIECE_WANTED;
}
