/* queue.c: records that wait to be durable: those of members, in which each has its facts, and at
 * most one decision, whose lists may be long. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

bool core_has_queue_room(const struct core *c, int records) {
	return c->n_queue + records <= CORE_QUEUE - 2; /* a decision, and document numbers */
}

static struct core_queued *push(struct core *c, enum core_record_type type) {
	RV_ASSERT(c->n_queue < CORE_QUEUE && type >= CORE_MEMBER && type <= CORE_PROOF);
	struct core_queued *q = &c->queue[c->n_queue++];
	q->id = c->next_id++;
	q->type = (uint8_t)type;
	q->round = c->round;
	if (c->seq_planned < c->doc.seq + CORE_SEQ_BLOCK / 2)
		c->seq_planned = c->doc.seq + CORE_SEQ_BLOCK;
	q->doc_seq = c->seq_planned;
	RV_ASSERT(q->doc_seq > c->doc.seq + 1 && q->doc_seq >= c->seq_durable); /* numbers for what it changes */
	return q;
}

static bool is_decision(uint8_t type) {
	return type != CORE_MEMBER && type != CORE_AWAY && type != CORE_SEQ;
}

/* Begins a record: all but its lists. */
static void begin(const struct core_queued *q, struct core_record *out) {
	memset(out, 0, offsetof(struct core_record, members));
	memset(out->owners, 0, sizeof out->owners);
	memset(out->relayed, 0, sizeof out->relayed);
	out->id = q->id;
	out->type = q->type;
	out->doc_seq = q->doc_seq;
	out->round = q->round;
}

struct core_record *core_push(struct core *c, enum core_record_type type) {
	RV_ASSERT(is_decision((uint8_t)type));
	for (int i = 0; i < c->n_queue; i++)
		RV_ASSERT(!is_decision(c->queue[i].type));
	begin(push(c, type), &c->decision);
	return &c->decision;
}

void core_push_facts(struct core *c, enum core_record_type type, const struct core_facts *f) {
	RV_ASSERT((type == CORE_MEMBER || type == CORE_AWAY) && core_has_queue_room(c, 1));
	push(c, type)->facts = *f;
}

void core_push_seq(struct core *c) {
	(void)push(c, CORE_SEQ);
}

static void put_facts(const struct core_facts *f, struct core_record *out) {
	out->member = f->number;
	memcpy(out->key, f->key, sizeof out->key);
	memcpy(out->name, f->name, sizeof out->name);
	out->n_candidates = f->places.n;
	memcpy(out->candidates, f->places.at, sizeof out->candidates);
	out->banned = f->banned;
	out->token_hash = f->token_hash;
	out->blame_level = f->blame.level;
	out->blame_until = f->blame.until_round;
	out->reputation = f->reputation;
}

void core_record_at(const struct core *c, int i, struct core_record *out) {
	RV_ASSERT(i >= 0 && i < c->n_queue);
	const struct core_queued *q = &c->queue[i];
	if (is_decision(q->type)) {
		core_record_copy(out, &c->decision);
		return;
	}
	begin(q, out);
	if (q->type != CORE_SEQ)
		put_facts(&q->facts, out);
}

void core_queue_drop_first(struct core *c) {
	RV_ASSERT(c->n_queue > 0);
	c->n_queue--;
	memmove(&c->queue[0], &c->queue[1], (size_t)c->n_queue * sizeof c->queue[0]);
}

bool core_next_record(struct core *c, struct core_record *out) {
	if (c->n_queue == 0)
		return false;
	core_record_at(c, 0, out);
	return true;
}

bool core_has_records(const struct core *c) {
	return c->n_queue > 0;
}

int core_count_member_records(const struct core *c) {
	int n = 0;
	while (n < c->n_queue && (c->queue[n].type == CORE_MEMBER || c->queue[n].type == CORE_AWAY))
		n++;
	return n;
}

bool core_has_decision(const struct core *c) {
	return core_count_member_records(c) < c->n_queue;
}

void core_record_copy(struct core_record *to, const struct core_record *from) {
	const size_t n = from->n_members, n_blamed = from->n_blamed;
	RV_ASSERT(n <= NET_MAX_ROSTER && n_blamed <= NET_MAX_ROSTER);
	memcpy(to, from, offsetof(struct core_record, members));
	memcpy(to->members, from->members, n * sizeof to->members[0]);
	memcpy(to->tokens, from->tokens, n * sizeof to->tokens[0]);
	memcpy(to->boots, from->boots, n * sizeof to->boots[0]);
	memcpy(to->rates, from->rates, n * sizeof to->rates[0]);
	memcpy(to->lease_first, from->lease_first, n * sizeof to->lease_first[0]);
	memcpy(to->lease_count, from->lease_count, n * sizeof to->lease_count[0]);
	memcpy(to->downs, from->downs, n * sizeof to->downs[0]);
	memcpy(to->codecs, from->codecs, n * sizeof to->codecs[0]);
	memcpy(to->parts, from->parts, n * sizeof to->parts[0]);
	memcpy(to->roots, from->roots, n * sizeof to->roots[0]);
	memcpy(to->owners, from->owners, sizeof to->owners);
	memcpy(to->relayed, from->relayed, sizeof to->relayed);
	memcpy(to->blamed, from->blamed, n_blamed * sizeof to->blamed[0]);
}

/* ---- what waits ---- */

/* Returns true for a MEMBER record of a key that is not in memory: it joins, or returns. */
static bool takes_slot(const struct core *c, const struct core_queued *q) {
	return q->type == CORE_MEMBER && core_find(c, q->facts.number) < 0;
}

const struct core_facts *core_find_pending(const struct core *c, const uint8_t key[NET_KEY_BYTES]) {
	for (int i = 0; i < c->n_queue; i++)
		if (takes_slot(c, &c->queue[i]) && memcmp(c->queue[i].facts.key, key, NET_KEY_BYTES) == 0)
			return &c->queue[i].facts;
	return NULL;
}

int core_count_pending_slots(const struct core *c) {
	int n = 0;
	for (int i = 0; i < c->n_queue; i++)
		n += takes_slot(c, &c->queue[i]) - (c->queue[i].type == CORE_AWAY);
	return n;
}

bool core_is_leaving(const struct core *c, uint32_t slot) {
	for (int i = 0; i < c->n_queue; i++)
		if (c->queue[i].type == CORE_AWAY && c->queue[i].facts.number == c->members[slot].number)
			return true;
	return false;
}

/* Returns true for the first record of a member. */
static bool is_join(const struct core *c, const struct core_queued *q) {
	return q->type == CORE_MEMBER && q->facts.number >= c->slots.next_number;
}

uint32_t core_count_pending_joins(const struct core *c) {
	uint32_t n = 0;
	for (int i = 0; i < c->n_queue; i++)
		n += is_join(c, &c->queue[i]);
	return n;
}

bool core_is_joining(const struct core *c, const uint8_t key[NET_KEY_BYTES]) {
	for (int i = 0; i < c->n_queue; i++)
		if (is_join(c, &c->queue[i]) && memcmp(c->queue[i].facts.key, key, NET_KEY_BYTES) == 0)
			return true;
	return false;
}

int core_count_joining(const struct core *c, const struct rv_hash *token_hash) {
	int n = 0;
	for (int i = 0; i < c->n_queue; i++)
		n += is_join(c, &c->queue[i]) && rv_hash_equal(&c->queue[i].facts.token_hash, token_hash);
	return n;
}
