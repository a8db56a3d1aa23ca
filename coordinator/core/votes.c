/* votes.c: REDUCE: votes are counted until the round is committed, or goes on without some
 * participants.
 *
 * Why equal votes of the survivors suffice: the digest covers the reduced bytes, and these are the
 * mean over the whole roster, each chunk encoded once by its owner. A participant that dies after
 * delivering its part changes nothing in them. */
#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

/* Returns true if participant `i` still has the outer gradient that the roster was frozen with, or
 * a vote for this attempt. */
static bool keeps_contribution(const struct core *c, uint32_t i) {
	RV_ASSERT(i < c->roster.n);
	const struct core_member *m = core_participant(c, i);
	if (!m->reported || m->last.phase == WORKER_LEAVING)
		return true; /* no report since the restart, or leaving: not a question of its contribution */
	bool voted_this = m->last.phase == WORKER_VOTED && m->last.attempt == c->attempt;
	const struct rv_hash *root = commitment_find(&m->last.commitment, c->roster.codecs[i]);
	bool same = root == NULL || rv_hash_equal(root, &c->roster.roots[i].root);
	return core_contributes(c, m) && ((m->last.boot == c->roster.boots[i] && same) || voted_this);
}

/* Sets `out` to those that do not. */
static void find_lost(const struct core *c, uint64_t *out) {
	set_clear(out, c->roster_words);
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (!keeps_contribution(c, i))
			set_add(out, i);
}

void core_missed(const struct core *c, uint64_t *out) {
	set_clear(out, c->roster_words);
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (!core_available(c, core_participant(c, i)) || !keeps_contribution(c, i))
			set_add(out, i);
	set_join(out, c->roster.disbelieved, c->roster_words); /* their vote stands, and no other can come */
}

void core_take_vote(struct core *c, uint32_t i) {
	RV_ASSERT(i < c->roster.n && core_participant(c, i)->reported);
	const struct report *rep = &core_participant(c, i)->last;
	if (rep->term != c->term || rep->round != c->round || rep->attempt != c->attempt)
		return;
	if (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED)
		set_add(c->roster.taking_part, i);
	if (rep->phase != WORKER_VOTED || set_has(c->roster.voted, i))
		return; /* the first vote of an attempt stands: disputes and commits rest on it */
	set_add(c->roster.voted, i);
	c->roster.digests[i] = rep->digest;
	c->roster.stands_out[i] = rep->stands_out;
}

/* Sets `out` to the participants whose votes count. */
static void find_voters(const struct core *c, uint64_t *out) {
	uint64_t banned[CORE_ROSTER_WORDS];
	(void)core_participants_that(c, core_is_banned, banned);
	set_copy(out, c->roster.voted, c->roster_words);
	set_less(out, banned, c->roster_words);
	set_less(out, c->roster.disbelieved, c->roster_words);
}

/* Sets `same` to the voters with the digest of voter `i`, none of which comes before it. */
static void find_alike(const struct core *c, const uint64_t *votes, int i, uint64_t *same) {
	set_clear(same, c->roster_words);
	for (int j = i; j >= 0; j = set_next(votes, j + 1, c->roster_words))
		if (rv_hash_equal(&c->roster.digests[i], &c->roster.digests[j]))
			set_add(same, (uint32_t)j);
}

/* Sets `best` to the largest set of voters of one digest; of several, the one with the lowest
 * place. Voters that have been counted with another are not counted again. */
static void find_majority(const struct core *c, const uint64_t *votes, uint64_t *best) {
	const int words = c->roster_words;
	uint64_t left[CORE_ROSTER_WORDS], same[CORE_ROSTER_WORDS];
	int most = 0;
	set_clear(best, words);
	set_copy(left, votes, words);
	for (int i = set_next(left, 0, words); i >= 0; i = set_next(left, i + 1, words)) {
		find_alike(c, left, i, same);
		set_less(left, same, words);
		int n = set_count(same, words);
		if (n > most)
			set_copy(best, same, words);
		most = n > most ? n : most;
	}
	RV_ASSERT(set_is_within(best, votes, words) && (most > 0) == !set_is_empty(votes, words));
}

/* Returns the fewest members that have a committed round on disk. */
static int quorum(const struct core *c) {
	int half = (c->roster.n + 1) / 2;
	RV_ASSERT(half > 0 && c->cfg.min_workers > 0);
	return (int)c->cfg.min_workers < half ? (int)c->cfg.min_workers : half;
}

static void push_participants(const struct core *c, struct core_record *rec, const uint64_t *keep) {
	const struct core_roster *r = &c->roster;
	for (int i = set_next(keep, 0, c->roster_words); i >= 0; i = set_next(keep, i + 1, c->roster_words)) {
		rec->members[rec->n_members] = r->members[i];
		rec->tokens[rec->n_members] = r->tokens[i];
		rec->boots[rec->n_members] = r->boots[i];
		rec->rates[rec->n_members] = r->rates[i];
		rec->lease_first[rec->n_members] = r->lease_first[i];
		rec->lease_count[rec->n_members] = r->lease_count[i];
		rec->downs[rec->n_members] = r->downs[i];
		const int form = RV_BUG("forms-by-the-new-place") ? rec->n_members : i;
		rec->codecs[rec->n_members] = r->codecs[form];
		rec->parts[rec->n_members] = r->parts[form];
		rec->roots[rec->n_members] = r->roots[i];
		rec->n_members++;
	}
	rec->slow_deadline_ms = r->slow_deadline_ms;
	RV_ASSERT(rec->n_members == set_count(keep, c->roster_words) && rec->n_members <= r->n);
}

/* Sets the members that this attempt is blamed on, but for those in `except` (roster places). */
static void put_blame(struct core *c, struct core_record *rec, const uint64_t *except) {
	for (int i = set_next(except, 0, c->roster_words); i >= 0; i = set_next(except, i + 1, c->roster_words))
		set_drop(c->blamed, c->roster.slots[i]);
	RV_ASSERT(set_is_within(c->blamed, c->rostered, c->words)); /* blame is for participants of this round */
	for (int k = 0; k < c->slots.n; k++)
		if (set_has(c->blamed, c->slots.order[k]) && rec->n_blamed < NET_MAX_ROSTER)
			rec->blamed[rec->n_blamed++] = c->slots.numbers[k];
	core_say_blamed(c, c->blamed);
	set_clear(c->blamed, c->words);
}

static void commit(struct core *c, const uint64_t *votes) {
	const struct rv_hash *digest = &c->roster.digests[set_next(votes, 0, c->roster_words)];
	uint64_t all[CORE_ROSTER_WORDS];
	RV_ASSERT(c->roster.n > 0 && c->n_queue == 0 && c->round < c->cfg.final_round);
	RV_ASSERT(set_count(votes, c->roster_words) >= quorum(c)); /* so many have the result on their disks */
	set_first(all, c->roster.n, c->roster_words);
	struct core_record *rec = core_push(c, CORE_COMMIT);
	rec->attempt = c->attempt;
	rec->digest = *digest;
	rec->chain = rv_chain_next(&c->chain, digest);
	push_participants(c, rec, all);
	put_blame(c, rec, votes);
}

static void say_all(struct core *c, enum core_event_type type, const uint64_t *places) {
	for (int i = set_next(places, 0, c->roster_words); i >= 0; i = set_next(places, i + 1, c->roster_words))
		core_say(c, type, c->roster.slots[i], c->round);
}

/* Logs contributions that are lost; members that hold other weights, or are banned for another
 * contribution, are logged elsewhere. */
static void say_lost(struct core *c, const uint64_t *lost) {
	for (int i = set_next(lost, 0, c->roster_words); i >= 0; i = set_next(lost, i + 1, c->roster_words)) {
		const struct core_member *m = core_participant(c, (uint32_t)i);
		if (!core_diverged(c, m) && !m->banned)
			core_say(c, CORE_EVENT_LOST, c->roster.slots[i], c->round);
	}
}

/* Returns true if enough members are ready for a roster of their own. */
static bool others_are_ready(const struct core *c) {
	uint64_t ready[CORE_HERE_WORDS];
	return core_contributors(c, ready) >= (int)c->cfg.min_workers;
}

/* Starts attempt a+1 over the survivors, but for those of rows that fail, or opens the round again;
 * or does nothing, if waiting may help. */
static void go_on_with(struct core *c, const uint64_t *survivors, bool waiting_may_help) {
	RV_ASSERT(c->n_queue == 0);
	uint64_t keep[CORE_ROSTER_WORDS];
	set_copy(keep, survivors, c->roster_words);
	if (core_rows_many(&c->roster.rows))
		core_rows_drop_failed(&c->roster.rows, keep);
	bool enough = set_count(keep, c->roster_words) >= (int)c->cfg.min_workers;
	if (!enough && waiting_may_help && !others_are_ready(c))
		return;
	struct core_record *rec = core_push(c, CORE_ROSTER);
	rec->attempt = c->attempt + 1;
	rec->n_chunks = core_chunks(c, c->round);
	rec->overran = core_count_overran(c);
	if (enough) {
		push_participants(c, rec, keep);
		core_keep_one_whole(c, rec);
		core_put_owners(c, rec);
	}
	RV_ASSERT(rec->n_members == 0 || rec->n_members >= c->cfg.min_workers);
	core_note_gone(c);
	put_blame(c, rec, survivors);
	core_check_roster(c, rec);
}

/* Returns true if a participant that an earlier roster of this round was without is not known to
 * take part again. Such a member treats its contribution as uncounted and keeps it for the next
 * round, but peers may still hold it from before that, and have averaged it. */
static bool is_one_unaware(const struct core *c) {
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (set_has(c->left_out, c->roster.slots[i]) && !set_has(c->roster.taking_part, i))
			return true;
	return false;
}

/* What a decision about the attempt is made from, by roster place. */
struct standing {
	uint64_t lost[CORE_ROSTER_WORDS], missed[CORE_ROSTER_WORDS], present[CORE_ROSTER_WORDS];
	uint64_t votes[CORE_ROSTER_WORDS], best[CORE_ROSTER_WORDS]; /* best: the most that are alike */
	bool overdue, any_lost, any_missed;
};

/* Commits what the voters in `best` hold. Others fetch it, those that voted for something else too:
 * which of them has bad memory, and which was lied to by an owner, is not known. */
static void commit_best(struct core *c, const struct standing *s, const uint64_t *best) {
	uint64_t others[CORE_ROSTER_WORDS];
	uint64_t heard[CORE_ROSTER_WORDS]; /* that gave what was asked of them */
	set_copy(others, s->votes, c->roster_words);
	set_copy(heard, s->votes, c->roster_words);
	set_less(others, best, c->roster_words);
	set_meet(heard, c->roster.vouched, c->roster_words);
	set_join(heard, best, c->roster_words);
	say_all(c, CORE_EVENT_DISAGREED, others);
	core_count_votes(c, s->present, heard);
	commit(c, best);
}

/* Commits if a majority of the roster has voted alike and waits no longer for the others. */
static bool majority_has_voted(struct core *c, const struct standing *s) {
	if (c->majority_us == INT64_MAX || core_majority_waits(c, s->present, s->votes))
		return false;
	commit_best(c, s, s->best);
	return true;
}

/* Asks one of few that voted alike, and are here, for what it got. */
static enum core_settling vouch(struct core *c, const struct standing *s) {
	uint64_t here[CORE_ROSTER_WORDS];
	set_copy(here, s->best, c->roster_words);
	set_less(here, s->missed, c->roster_words);
	return core_vouch(c, here);
}

/* Goes on without the result of few that voted alike, if none of them can show what it got. */
static void give_up_few(struct core *c, const struct standing *s) {
	uint64_t none[CORE_ROSTER_WORDS];
	set_clear(none, c->roster_words);
	go_on_with(c, none, !s->any_lost && !s->overdue);
}

static void all_present_voted(struct core *c, const struct standing *s) {
	const int words = c->roster_words, n_best = set_count(s->best, words), n_votes = set_count(s->votes, words);
	const bool alike = set_is_equal(s->best, s->votes, words), many = core_is_majority(c, n_best);
	uint64_t rest[CORE_ROSTER_WORDS];
	if ((alike || many) && n_best >= quorum(c) && !is_one_unaware(c)) {
		const enum core_settling few = many || c->cfg.seals.verify == NULL ? CORE_SETTLED : vouch(c, s);
		if (few == CORE_SETTLED)
			commit_best(c, s, s->best);
		else if (few == CORE_UNSETTLED)
			give_up_few(c, s);
		return;
	}
	set_clear(rest, words);
	if (core_splits(c, n_best, n_votes)) {
		go_on_with(c, rest, false);
		return;
	}
	set_copy(rest, s->best, words);
	set_less(rest, s->missed, words);
	go_on_with(c, rest, alike && !s->any_lost && !s->overdue);
}

/* Returns true if the process of a missed participant is not the one on the roster: data that the
 * former had not delivered will never come. A vote of the new one (the former one's result, from
 * the disk) does not help the others to theirs. */
static bool is_one_succeeded(const struct core *c, const uint64_t *missed) {
	for (int i = set_next(missed, 0, c->roster_words); i >= 0; i = set_next(missed, i + 1, c->roster_words)) {
		const struct core_member *m = core_participant(c, (uint32_t)i);
		if (m->reported && m->last.boot != c->roster.boots[i])
			return true;
	}
	return false;
}

/* Finds the most votes that are alike, and notes whether they decide. */
static void weigh_votes(struct core *c, struct standing *s) {
	find_majority(c, s->votes, s->best);
	const int n = set_count(s->best, c->roster_words);
	core_note_majority(c, n >= quorum(c) && !is_one_unaware(c) ? n : 0);
}

static void look(struct core *c, struct standing *s) {
	const int words = c->roster_words;
	s->overdue = core_end_overdue(c);
	find_lost(c, s->lost);
	core_missed(c, s->missed);
	find_voters(c, s->votes);
	set_first(s->present, c->roster.n, words);
	set_less(s->present, s->missed, words);
	s->any_lost = !set_is_empty(s->lost, words);
	s->any_missed = !set_is_empty(s->missed, words);
	weigh_votes(c, s);
}

/* Sets `out` to the votes of participants that are there; returns true if they are not all
 * alike. */
static bool present_votes_differ(const struct core *c, const struct standing *s, uint64_t *out) {
	uint64_t best[CORE_ROSTER_WORDS];
	set_copy(out, s->votes, c->roster_words);
	set_less(out, s->missed, c->roster_words);
	find_majority(c, out, best);
	return !set_is_equal(best, out, c->roster_words);
}

/* Keeps the vote of one that is gone only if it is like those of the others. */
static void drop_odd_votes_of_the_missed(struct core *c, struct standing *s, const uint64_t *present) {
	const int first = set_next(present, 0, c->roster_words);
	for (int i = set_next(s->votes, 0, c->roster_words); i >= 0; i = set_next(s->votes, i + 1, c->roster_words))
		if (first >= 0 && !rv_hash_equal(&c->roster.digests[i], &c->roster.digests[first]))
			set_drop(s->votes, (uint32_t)i);
	weigh_votes(c, s);
}

/* Returns true while votes that differ keep the attempt from its end. */
static bool is_disputed(struct core *c, struct standing *s) {
	uint64_t present[CORE_ROSTER_WORDS];
	if (c->cfg.seals.verify == NULL)
		return false; /* nobody signs means */
	while (present_votes_differ(c, s, present)) {
		const enum core_settling so_far = core_dispute(c, present, s->best);
		if (so_far != CORE_SETTLED)
			return so_far == CORE_SETTLING; /* else the majority decides */
		look(c, s);
	}
	if (c->dispute.n > 1)
		core_dispute_end(c);
	drop_odd_votes_of_the_missed(c, s, present);
	return false;
}

void core_decide_reduce(struct core *c) {
	struct standing s;
	RV_ASSERT(c->roster.n > 0 && c->attempt > 0 && c->n_queue == 0);
	RV_ASSERT(c->roster.n_chunks == core_chunks(c, c->round)); /* core_apply() refuses any other */
	look(c, &s);
	say_lost(c, s.lost);
	if (core_attempt_is_void(c)) {
		go_on_with(c, s.present, false);
		return;
	}
	if (is_disputed(c, &s))
		return;
	if (c->owners_apart)
		go_on_with(c, s.present, false);
	else if (set_is_within(s.present, s.votes, c->roster_words))
		all_present_voted(c, &s);
	else if (majority_has_voted(c, &s))
		return;
	else if (s.any_missed)
		go_on_with(c, s.present, !s.overdue && !s.any_lost && !is_one_succeeded(c, s.missed));
}
