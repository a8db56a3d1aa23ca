/* record.c: what a durable record changes. Live and in replay it is the same code, so a restarted
 * core stands where the last durable record left it. */
#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"
#include "base/rows.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* ---- what waits ---- */

/* A record of this core's own making cannot be refused. */
static void apply_own(struct core *c, const struct core_record *rec) {
	struct rv_errtext et = {0};
	enum rv_err e = core_apply(c, rec, &et);
	RV_ASSERT(e == RV_OK);
	core_check(c);
}

void core_persisted(struct core *c, uint64_t record_id, int64_t now_us) {
	struct core_record rec;
	core_record_at(c, 0, &rec);
	RV_ASSERT(rec.id == record_id);
	core_queue_drop_first(c);
	if (!c->ahead)
		apply_own(c, &rec);
	c->ahead = false;
	RV_ASSERT(c->seq_durable >= rec.doc_seq && c->seq_durable <= c->seq_planned);
	core_step(c, now_us);
}

void core_apply_ahead(struct core *c) {
	if (!RV_BUG("announce-before-persist") || c->n_queue == 0 || c->ahead)
		return;
	uint8_t type = c->queue[0].type;
	if (type != CORE_ROSTER && type != CORE_COMMIT)
		return;
	apply_own(c, &c->decision);
	c->ahead = true;
}

/* ---- what a record changes ---- */

static enum rv_err corrupt(struct rv_errtext *et, const struct core_record *rec, const char *why) {
	return rv_fail(et, RV_E_CORRUPT, "record %llu (type %u, round %llu, attempt %u): %s", (unsigned long long)rec->id,
				   rec->type, (unsigned long long)rec->round, rec->attempt, why);
}

void core_note_banned(struct core *c, uint32_t member, bool banned) {
	struct banned *b = &c->banned;
	int at = 0;
	while (at < b->n && b->members[at] < member)
		at++;
	bool is = at < b->n && b->members[at] == member;
	size_t behind = (size_t)(b->n - at);
	if (banned && !is) {
		memmove(&b->members[at + 1], &b->members[at], behind * sizeof b->members[0]);
		b->members[at] = member;
		b->n++;
	} else if (!banned && is) {
		memmove(&b->members[at], &b->members[at + 1], (behind - 1) * sizeof b->members[0]);
		b->n--;
	}
}

/* Returns why the facts cannot follow the records before them; NULL: they can. */
static const char *check_facts(const struct core *c, const struct core_facts *f) {
	int by_key = core_find_key(c, f->key), by_number = core_find(c, f->number);
	if (f->number > c->slots.next_number || f->number == NET_NO_MEMBER)
		return "a member number was skipped";
	if (by_key != by_number)
		return "another key than this member's, or a key of another member";
	if (f->blame.level > CORE_LEVEL_MAX)
		return "its level of blame is too high";
	if (f->reputation.strikes > CORE_STRIKES_MAX || f->reputation.reason >= CORE_STRIKE_REASONS)
		return "it has more strikes than there can be, or for an unknown reason";
	if (f->reputation.evaded > CORE_EVADED_MAX)
		return "it has evaded more audits in a row than are counted";
	if (f->reputation.audited > f->reputation.rounds)
		return "audits have vouched for more rounds than it took part in";
	if (f->banned && c->banned.n == NET_MAX_BANNED && !banned_has(&c->banned, f->number))
		return "too many members are banned";
	return NULL;
}

static enum rv_err apply_member(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	struct core_facts f;
	core_facts_of_record(rec, &f);
	const char *why = check_facts(c, &f);
	int known = core_find(c, f.number);
	if (why != NULL)
		return corrupt(et, rec, why);
	if (known < 0 && c->slots.n == (int)c->cfg.max_here)
		return corrupt(et, rec, "more members than this program keeps in memory");
	uint32_t slot = known < 0 ? core_slots_take(c, &f) : (uint32_t)known;
	if (known < 0)
		c->views.refs[slot] = (struct member_ref){0};
	bool moves = known < 0 || !core_same_places(&c->members[slot].places, &f.places);
	if (moves && known >= 0)
		core_houses_leave(c, slot);
	if (f.number == c->slots.next_number)
		c->slots.next_number++;
	struct core_member *m = &c->members[slot];
	memcpy(m->name, f.name, sizeof m->name);
	if (!core_same_places(&m->places, &f.places))
		core_pairs_moved(c, slot);
	m->places = f.places;
	if (moves) {
		core_houses_enter(c, slot);
		core_views_touch(c, slot);
	}
	m->banned = f.banned;
	core_take_reputation(m, &f.reputation);
	if (f.reputation.rounds == 0)
		core_scores_struck(c, f.number);
	if (known < 0) { /* it joins, or returns: nothing else is wanted yet */
		m->want_places = f.places;
		m->want_banned = f.banned;
	}
	core_note_banned(c, f.number, f.banned);
	if (known < 0)
		core_leases_join(c, slot);
	RV_ASSERT(core_find_key(c, f.key) == (int)slot); /* a key is one member's only */
	return RV_OK;
}

static enum rv_err apply_away(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	int slot = core_find(c, rec->member);
	if (slot < 0 || core_find_key(c, rec->key) != slot)
		return corrupt(et, rec, "it is of a member that is not in memory, or of another key than this member's");
	core_houses_leave(c, (uint32_t)slot);
	core_leases_away(c, (uint32_t)slot);
	core_slots_give(c, (uint32_t)slot);
	set_drop(c->views.stale, (uint32_t)slot);
	return RV_OK;
}

bool core_named(const struct core *c, const struct core_record *rec, uint64_t *set) {
	set_clear(set, c->words);
	for (int i = 0; i < rec->n_members; i++) {
		int slot = core_find(c, rec->members[i]);
		if (slot < 0)
			return false;
		set_add(set, (uint32_t)slot);
	}
	return true;
}

/* Sets `blamed` to the slots of the blamed; returns false if one is not in memory. */
static bool find_blamed(const struct core *c, const struct core_record *rec, uint64_t *blamed) {
	set_clear(blamed, c->words);
	for (int i = 0; i < rec->n_blamed; i++) {
		int slot = core_find(c, rec->blamed[i]);
		if (slot < 0)
			return false;
		set_add(blamed, (uint32_t)slot);
	}
	return true;
}

/* Returns true if each participant is named once, and they and those that are blamed are in memory:
 * fills both sets. In one row they ascend; in several the order is how they were dealt (deal.c). */
static bool valid_participants(const struct core *c, const struct core_record *rec, uint64_t *named, uint64_t *blamed) {
	if (rec->n_members > c->cfg.max_roster || rec->n_blamed > NET_MAX_ROSTER)
		return false;
	const bool rows = (c->roster.n > 0 && core_rows_many(&c->roster.rows)) || rec->n_members > core_row_size(c);
	for (int i = 1; i < rec->n_members && !rows; i++)
		if (rec->members[i] <= rec->members[i - 1])
			return false;
	return core_named(c, rec, named) && core_size_of(c, named) == rec->n_members && find_blamed(c, rec, blamed);
}

/* Sets `keep` to the old places that are in the record; returns true if it names no other
 * member. */
static bool find_kept(const struct core_roster *r, const struct core_record *rec, int words, uint64_t *keep) {
	int at = 0;
	set_clear(keep, words);
	for (uint32_t i = 0; i < r->n && at < rec->n_members; i++) {
		if (r->members[i] != rec->members[at])
			continue;
		set_add(keep, i);
		at++;
	}
	RV_ASSERT(set_count(keep, words) == at && at <= r->n);
	return at == rec->n_members;
}

static void note_owners(struct core *c) {
	const struct core_roster *r = &c->roster;
	uint32_t owned[NET_MAX_ROW];
	const bool many = core_rows_many(&r->rows);
	if (r->n == 0)
		return;
	if (!many)
		core_ownership_count(r->ranges, r->n_ranges, owned);
	memset(c->owned, 0, c->cfg.max_here * sizeof c->owned[0]);
	c->owned_of = r->n_chunks;
	uint64_t sum = 0;
	for (int i = 0; i < r->n; i++)
		sum += c->owned[r->slots[i]] = many ? core_rows_owned(&r->rows, i) : owned[i];
	RV_ASSERT(many || sum == r->n_chunks); /* each chunk has one owner, who is in the roster */
}

/* Says which participant of a single row owns which chunks. `keep`: those of the attempt before
 * that go on; 0: none do. */
static void divide_row(struct core *c, const struct core_record *rec, uint64_t keep) {
	struct core_roster *r = &c->roster;
	static const uint64_t unknown[NET_MAX_ROW];
	const uint64_t *rates = c->cfg.equal_ownership ? unknown : rec->rates;
	const struct core_owners owners = {.all = rec->owners[0], .relayed = rec->relayed[0]};
	RV_ASSERT(rec->n_members <= NET_MAX_ROW);
	if (keep != 0)
		r->n_ranges = core_ownership_hand_over(r->ranges, r->n_ranges, keep, owners, rates);
	else if (!core_kept_split(c, rec, owners, rates))
		r->n_ranges = core_ownership_split(rec->n_chunks, rec->n_members, owners, rates, r->ranges);
}

/* Says who owns what. Returns true if the rows of the attempt before go on with those in `keep`:
 * then their weights do too, and partial sums of rows that have lost nobody stay valid. */
static bool divide(struct core *c, const struct core_record *rec, uint64_t *keep) {
	struct core_roster *r = &c->roster;
	bool subset = find_kept(r, rec, c->roster_words, keep);
	if (rec->n_members == 0)
		return false;
	bool goes_on = r->n > 0 && subset && rec->n_chunks == r->n_chunks;
	if (goes_on && core_rows_many(&r->rows)) {
		core_rows_keep(&r->rows, keep, rec->owners, rec->attempt);
		return true;
	}
	if (!goes_on)
		core_lay_out(c, rec, &r->rows);
	if (!core_rows_many(&r->rows))
		divide_row(c, rec, goes_on ? keep[0] : 0);
	return false;
}

static void keep_weights(struct core_roster *r, const uint64_t *keep, int words) {
	int n = 0;
	for (int i = set_next(keep, 0, words); i >= 0; i = set_next(keep, i + 1, words))
		r->weights[n++] = r->weights[i];
}

/* Adds who owns what. */
static void hash_owners(struct rv_hasher *h, const struct core_roster *r) {
	const struct rows_plan *p = &r->rows.plan;
	if (!core_rows_many(&r->rows)) {
		for (int i = 0; i < r->n_ranges; i++)
			rv_hash_u64(h, r->ranges[i].owner | (uint64_t)r->ranges[i].first << 32);
		return;
	}
	for (int row = 0; row <= p->n_rows; row++)
		rv_hash_u64(h, p->first[row] | (uint64_t)(row < p->n_rows ? p->since[row] : 0) << 32);
	for (int j = 0; j < p->n_columns; j++) {
		rv_hash_u64(h, p->columns[j].first | (uint64_t)p->columns[j].count << 32);
		for (int row = 0; row < p->n_rows; row++)
			rv_hash_u64(h, (uint64_t)p->columns[j].owner[row]);
	}
}

/* Names the attempt, its participants, what they have committed to, what it weighs, and who merges
 * it: all that makes a mean what it is. A coordinator that was restored from an older copy may
 * make the same attempt of the same processes with other weights and owners; under one name an
 * honest owner would have signed two lists. */
static struct rv_hash hash_roster(const struct core *c, const struct core_record *rec) {
	const struct core_roster *r = &c->roster;
	struct rv_hasher h = rv_hasher_of("rivulet roster");
	rv_hash_update(&h, c->cfg.run_hash.b, RV_HASH_BYTES);
	rv_hash_u64(&h, c->term);
	rv_hash_u64(&h, rec->round);
	rv_hash_u64(&h, rec->attempt);
	rv_hash_u64(&h, r->n);
	for (int i = 0; i < r->n; i++) {
		rv_hash_u64(&h, r->members[i]);
		rv_hash_u64(&h, r->boots[i]);
		rv_hash_u64(&h, r->codecs[i] | (uint64_t)r->parts[i] << 8 | (uint64_t)r->weights[i] << 32);
		rv_hash_update(&h, r->roots[i].root.b, RV_HASH_BYTES);
	}
	if (r->n > 0)
		hash_owners(&h, r);
	return rv_hash_final(&h);
}

static void set_roster(struct core *c, const struct core_record *rec) {
	struct core_roster *r = &c->roster;
	const size_t n = rec->n_members;
	uint64_t keep[CORE_ROSTER_WORDS];
	bool rows_go_on = divide(c, rec, keep);
	if (rows_go_on)
		keep_weights(r, keep, c->roster_words);
	r->n = rec->n_members;
	r->n_owners = set_count(rec->owners, c->roster_words);
	r->n_chunks = rec->n_chunks;
	if (r->n > 0)
		core_check_ranges(r);
	memcpy(r->members, rec->members, n * sizeof r->members[0]);
	memcpy(r->tokens, rec->tokens, n * sizeof r->tokens[0]);
	memcpy(r->boots, rec->boots, n * sizeof r->boots[0]);
	memcpy(r->rates, rec->rates, n * sizeof r->rates[0]);
	memcpy(r->lease_first, rec->lease_first, n * sizeof r->lease_first[0]);
	memcpy(r->lease_count, rec->lease_count, n * sizeof r->lease_count[0]);
	memcpy(r->downs, rec->downs, n * sizeof r->downs[0]);
	memcpy(r->codecs, rec->codecs, n * sizeof r->codecs[0]);
	memcpy(r->parts, rec->parts, n * sizeof r->parts[0]);
	memcpy(r->roots, rec->roots, n * sizeof r->roots[0]);
	r->slow_deadline_ms = rec->slow_deadline_ms;
	if (rec->attempt == 1)
		core_count_looks(c);
	for (size_t i = 0; i < n; i++) {
		r->slots[i] = (uint16_t)core_find(c, r->members[i]);
		struct core_member *m = &c->members[r->slots[i]];
		core_recall_line(c, m, r->codecs[i] != 0 || r->parts[i] != 0);
		m->rostered_at = c->round + 1;
		m->place = (uint16_t)i;
		m->codec = r->codecs[i];
		m->part = r->parts[i];
	}
	set_clear(r->voted, c->roster_words);
	set_clear(r->taking_part, c->roster_words);
	set_clear(r->disbelieved, c->roster_words);
	set_clear(r->vouched, c->roster_words);
	core_dispute_end(c);
	if (!rows_go_on || RV_BUG("weigh-rows-again"))
		core_weigh(c);
	note_owners(c);
	r->attempt_ms = n > 0 ? core_attempt_ms(c) : 0;
	r->hash = hash_roster(c, rec);
}

static void note_left_out(struct core *c, const struct core_record *rec, const uint64_t *named) {
	if (rec->attempt == 1) {
		set_clear(c->rostered, c->words);
		set_clear(c->left_out, c->words);
	}
	for (int w = 0; w < c->words && rec->n_members > 0; w++) /* a roster of none leaves no member out */
		c->left_out[w] |= c->rostered[w] & ~named[w];
	set_join(c->rostered, named, c->words);
	RV_ASSERT(core_size_of(c, named) == c->roster.n && set_is_within(c->left_out, c->rostered, c->words));
}

/* Returns why a roster's owners are impossible; NULL: they are not. */
static const char *check_owners(const struct core *c, const struct core_record *rec) {
	const int words = c->roster_words;
	uint64_t all[CORE_ROSTER_WORDS];
	set_first(all, rec->n_members, words);
	bool relayed = !set_is_empty(rec->relayed, words);
	if (set_is_empty(rec->owners, words) != (rec->n_members == 0))
		return "nobody on its roster may own chunks";
	if (!set_is_within(rec->owners, all, words))
		return "it names an owner that is not on the roster";
	if (!set_is_within(rec->relayed, rec->owners, words) || (relayed && set_is_equal(rec->relayed, rec->owners, words)))
		return "it names a relayed owner that owns nothing, or none that needs no relay";
	return NULL;
}

/* Returns why the forms of the contributions are impossible; NULL: they are not. */
static const char *check_forms(const struct core *c, const struct core_record *rec) {
	int parts = 0;
	for (int i = 0; i < rec->n_members; i++) {
		parts += rec->parts[i] != 0;
		if (rec->parts[i] == 1 || rec->parts[i] > NET_MAX_PART)
			return "a participant's part is out of range";
	}
	const bool many = rows_choose(rec->n_members > 0 ? rec->n_members : 1, core_row_size(c)) > 1;
	if (parts > 0 && (parts == rec->n_members || many))
		return "no participant contributes to all chunks, or not all in a roster of rows";
	if (rec->overran != CORE_OVERRAN_UNKNOWN && (rec->overran > CORE_OVERRAN_MAX || rec->overran >= rec->attempt))
		return "more attempts before it ran into their deadline than there were";
	return rec->slow_deadline_ms <= NET_MAX_DEADLINE_MS ? NULL : "its deadline of an exchange is out of range";
}

/* Returns why a roster cannot be applied; NULL: it can. */
static const char *check_roster(const struct core *c, const struct core_record *rec) {
	const char *why = check_owners(c, rec);
	if (why == NULL)
		why = check_forms(c, rec);
	return why != NULL ? why : core_leases_check_roster(c, rec);
}

void core_check_roster(const struct core *c, const struct core_record *rec) {
	RV_ASSERT(rec->type == CORE_ROSTER && (check_roster(c, rec) == NULL || RV_BUG("forms-of-a-former-roster")));
}

static enum rv_err apply_roster(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	uint64_t named[CORE_HERE_WORDS], blamed[CORE_HERE_WORDS];
	if (rec->round != c->round || rec->round == c->cfg.final_round || rec->attempt != c->attempt + 1)
		return corrupt(et, rec, "not the next attempt of the current round");
	if (!valid_participants(c, rec, named, blamed))
		return corrupt(et, rec, "it names a participant twice, out of order, or a number that no member has");
	const char *why = check_roster(c, rec);
	if (why != NULL)
		return corrupt(et, rec, why);
	if (rec->n_chunks != core_chunks(c, c->round))
		return corrupt(et, rec, "another number of chunks than the run's");
	c->attempt = rec->attempt;
	if (rec->attempt == 1)
		c->reduce_since_us = c->now_us;
	c->attempt_since_us = c->now_us;
	if (rec->n_members == 0)
		core_note_reopened(c);
	core_take_overran(c, rec);
	core_blame(c, blamed);
	set_join(c->spoilers, blamed, c->words);
	set_roster(c, rec);
	note_left_out(c, rec, named);
	c->owners_apart = false;
	c->ready_since_us = c->accused_since_us = c->majority_us = INT64_MAX;
	c->gathered_anew = false;
	return RV_OK;
}

/* Sets `clean` to those of `named` that spoiled no attempt of the round. */
static void find_clean(const struct core *c, const uint64_t *named, const uint64_t *blamed, uint64_t *clean) {
	set_copy(clean, named, c->words);
	set_less(clean, c->spoilers, c->words);
	set_less(clean, blamed, c->words);
}

static void open_next_round(struct core *c, const struct core_record *rec, const uint64_t *named) {
	c->log[c->round - c->snapshot_round] = rec->digest;
	c->chain = rec->chain;
	c->round++;
	set_copy(c->last_commit, named, c->words);
	set_clear(c->seen_holding, c->words);
	set_clear(c->spoilers, c->words);
	c->attempt = 0;
	core_dispute_end(c);
	c->exchange_us = c->now_us - c->reduce_since_us;
	c->roster.n = 0;
	c->ready_since_us = c->accused_since_us = c->majority_us = INT64_MAX;
	c->gathered_anew = false;
}

static enum rv_err apply_commit(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	const struct core_roster *r = &c->roster;
	uint64_t named[CORE_HERE_WORDS], blamed[CORE_HERE_WORDS], clean[CORE_HERE_WORDS];
	if (rec->round != c->round || rec->attempt != c->attempt || r->n == 0)
		return corrupt(et, rec, "not the attempt that is under way");
	if (rec->n_members != r->n || memcmp(rec->members, r->members, r->n * sizeof r->members[0]) != 0)
		return corrupt(et, rec, "other participants than the roster's");
	if (!valid_participants(c, rec, named, blamed))
		return corrupt(et, rec, "it names a number that no member has");
	const char *why = core_leases_check_commit(c, rec);
	if (why != NULL)
		return corrupt(et, rec, why);
	struct rv_hash chain = rv_chain_next(&c->chain, &rec->digest);
	if (!rv_hash_equal(&chain, &rec->chain))
		return corrupt(et, rec, "its state hash does not follow from its digest");
	if (c->round - c->snapshot_round >= NET_MAX_LOG_DIGESTS)
		return corrupt(et, rec, "too many rounds since the last snapshot");
	core_past_commit(c, rec, named);
	core_kept_note(c);
	core_pairs_met(c, named);
	core_blame(c, blamed);
	core_count_gone(c);
	find_clean(c, named, blamed, clean);
	core_absolve(c, clean);
	core_close_reopened(c, named);
	core_scores_commit(c, &rec->digest);
	core_leases_commit(c);
	core_audits_commit(c, &rec->digest);
	core_count_round(c, named);
	open_next_round(c, rec, named);
	RV_ASSERT(c->round == rec->round + 1 && core_size_of(c, c->last_commit) == rec->n_members);
	return RV_OK;
}

static enum rv_err apply_snapshot(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	if (rec->round <= c->snapshot_round || rec->round > c->round)
		return corrupt(et, rec, "a snapshot outside the log");
	struct rv_hash chain = core_chain_at(c, rec->round);
	if (!rv_hash_equal(&chain, &rec->chain))
		return corrupt(et, rec, "its state hash is not that of the log");
	uint64_t dropped = rec->round - c->snapshot_round, left = c->round - rec->round;
	RV_ASSERT(dropped > 0 && dropped + left <= NET_MAX_LOG_DIGESTS);
	memmove(c->log, c->log + dropped, left * sizeof c->log[0]);
	c->snapshot_round = rec->round;
	c->snapshot_hash = rec->digest;
	c->snapshot_chain = chain;
	const struct rv_hash end = core_chain_at(c, c->round);
	RV_ASSERT(rv_hash_equal(&end, &c->chain)); /* what is left of the log leads from the snapshot to here */
	core_past_snapshot(c, rec->round, &rec->digest);
	return RV_OK;
}

static enum rv_err apply_rollback(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	const char *why = core_apply_rollback(c, rec);
	return why == NULL ? RV_OK : corrupt(et, rec, why);
}

static enum rv_err apply_seq(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	(void)c, (void)rec, (void)et;
	return RV_OK; /* every record carries document numbers, this one nothing else */
}

static enum rv_err apply_leases(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	const char *why = rec->n_members > NET_MAX_ROSTER ? "too many members" : core_leases_apply(c, rec);
	return why == NULL ? RV_OK : corrupt(et, rec, why);
}

static enum rv_err apply_proof(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	const char *why = core_apply_proof(c, rec);
	return why == NULL ? RV_OK : corrupt(et, rec, why);
}

enum rv_err core_apply(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	static enum rv_err (*const apply[])(struct core *, const struct core_record *, struct rv_errtext *) = {
		[CORE_MEMBER] = apply_member,     [CORE_ROSTER] = apply_roster, [CORE_COMMIT] = apply_commit,
		[CORE_SNAPSHOT] = apply_snapshot, [CORE_SEQ] = apply_seq,       [CORE_ROLLBACK] = apply_rollback,
		[CORE_AWAY] = apply_away,         [CORE_LEASES] = apply_leases, [CORE_PROOF] = apply_proof};
	if (rec->type < CORE_MEMBER || rec->type > CORE_PROOF)
		return corrupt(et, rec, "an unknown type");
	RV_TRY(apply[rec->type](c, rec, et));
	c->seq_durable = rec->doc_seq > c->seq_durable ? rec->doc_seq : c->seq_durable;
	return RV_OK;
}

/* Known from before the restart: given time to report, and left as the records say. */
static void await(const struct core *c, struct core_member *m) {
	RV_ASSERT(!m->reported); /* no report comes between the records */
	m->awaited = m->from_before = true;
	m->heard_us = c->now_us;
	m->want_places = m->places;
	m->want_banned = m->banned;
}

enum rv_err core_replay(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	RV_ASSERT(c->n_queue == 0);
	if (rec->id != c->next_id)
		return corrupt(et, rec, "a record is missing before it, or it is there twice");
	if (RV_BUG("forget-rows-at-a-restart") && core_rows_many(&c->roster.rows))
		c->roster.n = 0;
	RV_TRY(core_apply(c, rec, et));
	c->next_id++;
	RV_ASSERT(c->seq_planned <= c->seq_durable &&
			  set_is_empty(c->roster.voted, c->roster_words)); /* votes are not durable */
	c->seq_planned = c->seq_durable;
	if (rec->type == CORE_MEMBER)
		await(c, &c->members[core_find(c, rec->member)]);
	c->replaying = true;
	return RV_OK;
}

void core_replayed(struct core *c) {
	c->replaying = false;
	core_recall_rests(c);
	core_check(c);
	core_republish(c);
}
