/* auditor_average.c: an audit of an average (auditor.h) in its lane. */
#include "worker/audit/lane.h"

#include "base/assert.h"
#include "base/slow_lines.h"

void average_conclude(struct auditor *a, struct lane *l, enum audit_verdict verdict, uint32_t member,
					  const struct rv_hash *found) {
	struct order *o = lane_order(a, l);
	RV_ASSERT(!o->scores && !o->done);
	o->done = true;
	o->result = (struct audit_result){
		.round = o->of.round, .chunk = o->of.chunk, .verdict = (uint8_t)verdict, .member = member};
	if (verdict == AUDIT_WRONG)
		o->result.found = *found;
	a->news = true;
	lane_leave(a, l);
}

void average_judge(struct auditor *a, struct lane *l) {
	const struct audit_order *o = &lane_order(a, l)->of;
	struct auditor_case c = {.roster = l->roster, .chunk = o->chunk, .kind = o->kind, .n = l->n, .sum = o->sum};
	struct rv_hash found = {{0}};
	for (int i = 0; o->kind == AUDIT_OF_MEAN && i < l->roster->n_rows; i++)
		c.data[i] = (const uint8_t *)l->memory + (size_t)i * l->pieces[0].chunk_bytes;
	c.n = o->kind == AUDIT_OF_MEAN ? l->roster->n_rows : l->n;
	for (int i = 0; o->kind != AUDIT_OF_MEAN && i < l->n; i++) {
		c.members[i] = l->pieces[i].from;
		c.data[i] = l->pieces[i].at;
	}
	const enum audit_verdict verdict = a->ops.judge(a->ops.ctx, &c, &found);
	RV_ASSERT(verdict == AUDIT_RIGHT || verdict == AUDIT_WRONG || verdict == AUDIT_UNABLE);
	average_conclude(a, l, verdict, NET_NO_MEMBER, &found);
}

static int count_here(const struct lane *l) {
	int n = 0;
	for (int i = 0; i < l->n; i++)
		n += l->pieces[i].state == PIECE_HERE;
	return n;
}

/* Returns true if no pieces that are missing could make the mean. What is known of sums of rows is
 * a hash alone. */
static bool is_beyond(const struct auditor *a, const struct lane *l) {
	const struct audit_order *o = &a->orders[l->at].of;
	struct auditor_case c = {.roster = l->roster, .chunk = o->chunk, .kind = o->kind, .n = l->n};
	for (int i = 0; i < l->n; i++) {
		c.members[i] = l->pieces[i].from;
		c.data[i] = l->pieces[i].state == PIECE_HERE ? l->pieces[i].at : NULL;
	}
	return o->kind == AUDIT_OF_AVERAGE && a->ops.is_beyond(a->ops.ctx, &c);
}

void average_lack(struct auditor *a, struct lane *l, enum audit_verdict verdict, uint32_t member) {
	const struct rv_hash beyond = audit_beyond();
	if (is_beyond(a, l))
		average_conclude(a, l, AUDIT_WRONG, NET_NO_MEMBER, &beyond);
	else
		average_conclude(a, l, verdict, member, NULL);
}

/* Returns true if an audit that was set aside lacks a piece of that member. */
static bool owes_aside(struct auditor *a, uint32_t member) {
	for (int i = LANE_AVERAGES; i < LANE_TRAINING; i++) {
		struct lane *l = &a->lanes[i];
		const struct piece *p = l->at >= 0 && l->aside ? pieces_find(l->pieces, l->n, member) : NULL;
		if (p != NULL && p->state != PIECE_HERE)
			return true;
	}
	return false;
}

static bool will_hardly_come(struct auditor *a, const struct lane *l, const struct piece *p) {
	return p->cuts > 0 || p->refused || !auditor_is_linked(a, p) || (!l->aside && owes_aside(a, p->from->member));
}

void average_look(struct auditor *a, struct lane *l) {
	const int here = count_here(l);
	bool all = here > l->looked || !l->aside;
	for (int i = 0; i < l->n && all; i++)
		all = l->pieces[i].state == PIECE_HERE || will_hardly_come(a, l, &l->pieces[i]);
	if (!all)
		return;
	const struct rv_hash beyond = audit_beyond();
	const bool more = here > l->looked;
	l->looked = here;
	l->aside = true;
	if (more && is_beyond(a, l))
		average_conclude(a, l, AUDIT_WRONG, NET_NO_MEMBER, &beyond);
}

static const struct auditor_roster *roster_of(const struct auditor *a, const struct audit_order *o) {
	const struct auditor_roster *r = &a->rosters[o->round % AUDITOR_ROUNDS];
	const bool fits = (r->n_rows > 0) == (o->kind != AUDIT_OF_AVERAGE);
	return fits && r->attempt == o->attempt && r->round == o->round && o->chunk < r->n_chunks ? r : NULL;
}

/* Lists the participants that contributed to the chunk; returns the bytes of their pieces. */
static size_t list_pieces(const struct auditor *a, struct lane *l, const struct audit_order *o) {
	const size_t proof_bytes = piece_proof_bytes(l->roster->n_chunks, o->chunk);
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
	if (a->ops.own(a->ops.ctx, o->round, o->chunk, p->at, p->bytes) && piece_is_proven(p, l->n_chunks, l->chunk))
		p->state = PIECE_HERE;
	else
		average_conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
}

/* Sets the time that all pieces have: the slowest line of a member, or this worker's, carries them
 * in it. */
static void give_time(const struct auditor *a, int64_t now_us, struct lane *l) {
	enum { US = 1000000 };
	uint64_t all = 0, most = 0;
	for (int i = 0; i < l->n; i++) {
		const uint64_t bytes = l->pieces[i].from->member != a->self ? l->pieces[i].bytes : 0;
		all += bytes;
		most = bytes > most ? bytes : most;
	}
	const uint64_t us = most * US / SCORE_LEAST_BYTES_PER_S + all * US / AUDITOR_LEAST_BYTES_PER_S;
	l->latest_us = now_us + a->patience_us + (int64_t)us;
}

bool average_take(struct auditor *a, struct lane *l, size_t bytes) {
	size_t held = 0;
	for (int i = LANE_AVERAGES; i < LANE_TRAINING; i++)
		held += a->lanes[i].memory != NULL ? a->lanes[i].bytes : 0;
	if (bytes > 0 && (held == 0 || held + bytes <= AUDITOR_ASIDE_BYTES))
		l->memory = a->ops.take(a->ops.ctx, bytes);
	l->bytes = bytes;
	if (l->memory == NULL && bytes > 0 && held > 0)
		lane_leave(a, l);
	else if (l->memory == NULL)
		average_conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
	return l->memory != NULL;
}

void average_begin(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct audit_order *o = &lane_order(a, l)->of;
	l->roster = roster_of(a, o);
	l->chunk = o->chunk;
	l->n_chunks = l->roster != NULL ? l->roster->n_chunks : 0;
	if (o->kind == AUDIT_OF_MEAN) {
		mean_begin(a, now_us, l);
		return;
	}
	if (!average_take(a, l, l->roster != NULL ? list_pieces(a, l, o) : 0))
		return;
	give_time(a, now_us, l);
	uint8_t *next = l->memory;
	for (int i = 0; i < l->n; i++) {
		l->pieces[i].at = next;
		next += l->pieces[i].bytes;
	}
	for (int i = 0; i < l->n && l->at >= 0; i++)
		if (l->pieces[i].from->member == a->self)
			take_own(a, l, &l->pieces[i], o);
	if (l->at >= 0 && pieces_are_here(l->pieces, l->n))
		average_judge(a, l);
}

/* Returns true if a member has not given what it owed to another audit: it could not be asked. */
static bool one_owes_another(const struct auditor *a, const struct lane *l) {
	for (int i = 0; i < l->n; i++)
		if (l->pieces[i].state == PIECE_WANTED && owed_find(&a->owed, l->pieces[i].from->member) >= 0)
			return true;
	return false;
}

void average_give_up(struct auditor *a, int64_t now_us, struct lane *l) {
	if (now_us < l->latest_us && one_owes_another(a, l)) {
		auditor_wait_on(a, now_us, l);
		return;
	}
	uint32_t unlinked = NET_NO_MEMBER;
	for (int i = 0; i < l->n; i++) {
		const struct piece *p = &l->pieces[i];
		if (p->state == PIECE_HERE)
			continue;
		const bool apart = !auditor_is_linked(a, p) || auditor_hears_a_relay(a, p);
		if (!apart && !auditor_waits_for_another(a, l, p)) {
			average_lack(a, l, AUDIT_WITHHELD, p->from->member);
			return;
		}
		unlinked = apart ? p->from->member : unlinked;
	}
	average_lack(a, l, AUDIT_UNABLE, unlinked);
}

void average_count_cut(struct auditor *a, int64_t now_us, struct lane *l, struct piece *p) {
	p->ready_us = now_us + AUDITOR_AFTER_CUT_US;
	if (++p->cuts == AUDITOR_CUTS)
		average_lack(a, l, p->relayed ? AUDIT_UNABLE : AUDIT_WITHHELD, p->from->member);
}
