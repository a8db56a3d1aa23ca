/* record.c: the records: decisions that wait to be durable, and what a durable one changes. Live
 * and in replay it is the same code, so a restarted core stands where the last durable record left
 * it. */
#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* ---- the queue ---- */

struct core_record *core_push(struct core *c, enum core_record_type type) {
	RV_ASSERT(c->n_queue < CORE_QUEUE && type >= CORE_MEMBER && type <= CORE_ROLLBACK);
	struct core_record *rec = &c->queue[c->n_queue++];
	memset(rec, 0, sizeof *rec);
	rec->id = c->next_id++;
	rec->type = (uint8_t)type;
	rec->round = c->round;
	if (c->seq_planned < c->doc.seq + CORE_SEQ_BLOCK / 2)
		c->seq_planned = c->doc.seq + CORE_SEQ_BLOCK;
	rec->doc_seq = c->seq_planned;
	RV_ASSERT(rec->doc_seq > c->doc.seq + 1 && rec->doc_seq >= c->seq_durable); /* numbers for what it changes */
	return rec;
}

/* Returns true for a MEMBER record of a key that no durable one has. */
static bool is_join(const struct core *c, const struct core_record *rec) {
	return rec->type == CORE_MEMBER && rec->member >= (uint32_t)c->n_members;
}

int core_find_pending(const struct core *c, const uint8_t key[NET_KEY_BYTES]) {
	for (int i = 0; i < c->n_queue; i++)
		if (is_join(c, &c->queue[i]) && memcmp(c->queue[i].key, key, NET_KEY_BYTES) == 0)
			return (int)c->queue[i].member;
	return -1;
}

int core_count_pending_joins(const struct core *c) {
	int n = 0;
	for (int i = 0; i < c->n_queue; i++)
		n += is_join(c, &c->queue[i]);
	return n;
}

bool core_next_record(struct core *c, struct core_record *out) {
	if (c->n_queue == 0)
		return false;
	*out = c->queue[0];
	return true;
}

/* A record of this core's own making cannot be refused. */
static void apply_own(struct core *c, const struct core_record *rec) {
	struct rv_errtext et = {0};
	enum rv_err e = core_apply(c, rec, &et);
	RV_ASSERT(e == RV_OK);
}

void core_persisted(struct core *c, uint64_t record_id, int64_t now_us) {
	RV_ASSERT(c->n_queue > 0 && c->queue[0].id == record_id);
	struct core_record rec = c->queue[0];
	c->n_queue--;
	memmove(&c->queue[0], &c->queue[1], (size_t)c->n_queue * sizeof c->queue[0]);
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
	apply_own(c, &c->queue[0]);
	c->ahead = true;
}

/* ---- what a record changes ---- */

static enum rv_err corrupt(struct rv_errtext *et, const struct core_record *rec, const char *why) {
	return rv_fail(et, RV_E_CORRUPT, "record %llu (type %u, round %llu, attempt %u): %s", (unsigned long long)rec->id,
				   rec->type, (unsigned long long)rec->round, rec->attempt, why);
}

static enum rv_err apply_member(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	int known = core_find_member(c, rec->key);
	if (rec->member > (uint32_t)c->n_members || rec->member >= NET_MAX_MEMBERS)
		return corrupt(et, rec, "a member number was skipped");
	if (known != (rec->member < (uint32_t)c->n_members ? (int)rec->member : -1))
		return corrupt(et, rec, "another key than this member's, or a key of another member");
	struct core_member *m = &c->members[rec->member];
	if (known < 0) {
		memset(m, 0, sizeof *m);
		memcpy(m->key, rec->key, sizeof m->key);
		m->token_hash = rec->token_hash;
		c->n_members++;
	}
	memcpy(m->name, rec->name, sizeof m->name);
	if (!candidates_equal(m->places.at, m->places.n, rec->candidates, rec->n_candidates))
		core_pairs_forget(c, rec->member);
	m->places.n = rec->n_candidates;
	memcpy(m->places.at, rec->candidates, sizeof m->places.at);
	m->banned = rec->banned;
	RV_ASSERT(core_find_member(c, rec->key) == (int)rec->member); /* a key is one member's only */
	return RV_OK;
}

/* Returns true if the participants ascend, and they and those that are blamed are members. */
static bool valid_participants(const struct core *c, const struct core_record *rec) {
	if (rec->n_members > NET_MAX_MEMBERS || (rec->blamed & ~core_first(c->n_members)) != 0)
		return false;
	for (int i = 0; i < rec->n_members; i++)
		if (rec->members[i] >= (uint32_t)c->n_members || (i > 0 && rec->members[i] <= rec->members[i - 1]))
			return false;
	return true;
}

/* Returns the old roster indices that are in the record; *subset: it names no other member. */
static uint64_t kept_indices(const struct core_roster *r, const struct core_record *rec, bool *subset) {
	uint64_t keep = 0;
	int at = 0;
	for (uint32_t i = 0; i < r->n && at < rec->n_members; i++) {
		if (r->members[i] != rec->members[at])
			continue;
		keep |= core_bit(i);
		at++;
	}
	*subset = at == rec->n_members;
	RV_ASSERT(core_count(keep) == at && at <= r->n);
	return keep;
}

/* Returns the roster indices of a set of members. */
static uint64_t indices_of(const struct core_record *rec, uint64_t members) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < rec->n_members; i++)
		if (members & core_bit(rec->members[i]))
			set |= core_bit(i);
	return set;
}

static void note_owners(struct core *c) {
	const struct core_roster *r = &c->roster;
	uint32_t owned[NET_MAX_MEMBERS];
	if (r->n == 0)
		return;
	core_ownership_count(r->ranges, r->n_ranges, owned);
	memset(c->owned, 0, sizeof c->owned);
	c->owned_of = r->n_chunks;
	uint32_t sum = 0;
	for (int i = 0; i < r->n; i++)
		sum += c->owned[r->members[i]] = owned[i];
	RV_ASSERT(sum == r->n_chunks); /* each chunk has one owner, who is in the roster */
}

static void set_roster(struct core *c, const struct core_record *rec) {
	struct core_roster *r = &c->roster;
	bool subset = false;
	uint64_t keep = kept_indices(r, rec, &subset);
	static const uint64_t unknown[NET_MAX_MEMBERS];
	const uint64_t *rates = c->cfg.equal_ownership ? unknown : rec->rates;
	const struct core_owners owners = {.all = indices_of(rec, rec->owners), .relayed = indices_of(rec, rec->relayed)};
	bool same_size = rec->n_chunks == r->n_chunks;
	if (rec->n_members > 0 && r->n > 0 && subset && same_size)
		r->n_ranges = core_ownership_hand_over(r->ranges, r->n_ranges, keep, owners, rates);
	else if (rec->n_members > 0)
		r->n_ranges = core_ownership_split(rec->n_chunks, rec->n_members, owners, rates, r->ranges);
	r->n = rec->n_members;
	r->n_owners = core_count(owners.all);
	r->n_chunks = rec->n_chunks;
	if (r->n > 0)
		core_check_ranges(r);
	memcpy(r->members, rec->members, sizeof r->members);
	memcpy(r->tokens, rec->tokens, sizeof r->tokens);
	memcpy(r->boots, rec->boots, sizeof r->boots);
	memcpy(r->rates, rec->rates, sizeof r->rates);
	r->voted = r->taking_part = 0;
	core_weigh(c);
	note_owners(c);
}

static void note_left_out(struct core *c, const struct core_record *rec) {
	uint64_t now = core_named(rec);
	if (rec->attempt == 1)
		c->rostered = c->left_out = 0;
	if (now != 0) /* a roster of none leaves no member out */
		c->left_out |= c->rostered & ~now;
	c->rostered |= now;
	RV_ASSERT(core_count(now) == c->roster.n && (c->left_out & ~c->rostered) == 0);
}

static enum rv_err apply_roster(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	if (rec->round != c->round || rec->round == c->cfg.final_round || rec->attempt != c->attempt + 1)
		return corrupt(et, rec, "not the next attempt of the current round");
	if (!valid_participants(c, rec))
		return corrupt(et, rec, "its participants do not ascend, or it names a number that no member has");
	if ((indices_of(rec, rec->owners) == 0) != (rec->n_members == 0))
		return corrupt(et, rec, "nobody on its roster may own chunks");
	if ((rec->relayed & ~rec->owners) != 0 || (rec->relayed != 0 && rec->relayed == rec->owners))
		return corrupt(et, rec, "it names a relayed owner that owns nothing, or none that needs no relay");
	if (rec->n_chunks != core_chunks(c, c->round))
		return corrupt(et, rec, "another number of chunks than the run's");
	RV_ASSERT(rec->attempt > c->attempt && rec->blamed == (rec->blamed & core_first(c->n_members)));
	c->attempt = rec->attempt;
	if (rec->attempt == 1)
		c->reduce_since_us = c->now_us;
	c->attempt_since_us = c->now_us;
	if (rec->n_members == 0)
		core_note_reopened(c);
	core_blame(c, rec->blamed);
	c->spoilers |= rec->blamed;
	set_roster(c, rec);
	note_left_out(c, rec);
	c->owners_apart = false;
	c->ready_since_us = c->accused_since_us = INT64_MAX;
	return RV_OK;
}

static enum rv_err apply_commit(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	const struct core_roster *r = &c->roster;
	if (rec->round != c->round || rec->attempt != c->attempt || r->n == 0)
		return corrupt(et, rec, "not the attempt that is under way");
	if (rec->n_members != r->n || memcmp(rec->members, r->members, r->n * sizeof r->members[0]) != 0)
		return corrupt(et, rec, "other participants than the roster's");
	if (!valid_participants(c, rec))
		return corrupt(et, rec, "it names a number that no member has");
	struct rv_hash chain = rv_chain_next(&c->chain, &rec->digest);
	if (!rv_hash_equal(&chain, &rec->chain))
		return corrupt(et, rec, "its state hash does not follow from its digest");
	uint64_t n_log = c->round - c->snapshot_round;
	if (n_log >= NET_MAX_LOG_DIGESTS)
		return corrupt(et, rec, "too many rounds since the last snapshot");
	core_past_commit(c, rec);
	core_pairs_met(c, rec);
	core_blame(c, rec->blamed);
	core_absolve(c, core_named(rec) & ~(c->spoilers | rec->blamed));
	core_close_reopened(c, core_named(rec));
	c->spoilers = 0;
	c->log[n_log] = rec->digest;
	c->chain = chain;
	c->round++;
	c->last_commit = core_named(rec);
	c->seen_holding = 0;
	RV_ASSERT(c->round == rec->round + 1 && core_count(c->last_commit) == r->n);
	c->attempt = 0;
	c->exchange_us = c->now_us - c->reduce_since_us;
	c->roster.n = 0;
	c->ready_since_us = c->accused_since_us = INT64_MAX;
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

enum rv_err core_apply(struct core *c, const struct core_record *rec, struct rv_errtext *et) {
	static enum rv_err (*const apply[])(struct core *, const struct core_record *, struct rv_errtext *) = {
		[CORE_MEMBER] = apply_member,     [CORE_ROSTER] = apply_roster, [CORE_COMMIT] = apply_commit,
		[CORE_SNAPSHOT] = apply_snapshot, [CORE_SEQ] = apply_seq,       [CORE_ROLLBACK] = apply_rollback};
	if (rec->type < CORE_MEMBER || rec->type > CORE_ROLLBACK)
		return corrupt(et, rec, "an unknown type");
	RV_TRY(apply[rec->type](c, rec, et));
	c->seq_durable = rec->doc_seq > c->seq_durable ? rec->doc_seq : c->seq_durable;
	core_check(c);
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
	RV_TRY(core_apply(c, rec, et));
	c->next_id++;
	RV_ASSERT(c->seq_planned <= c->seq_durable && c->roster.voted == 0); /* votes are not durable */
	c->seq_planned = c->seq_durable;
	for (int i = 0; i < c->n_members; i++)
		await(c, &c->members[i]);
	core_republish(c);
	return RV_OK;
}
