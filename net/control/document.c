/* document.c: the encoding of the run document, and everything that must hold inside one.
 *
 * Order on the wire: head, run, snapshot, log, the banned, members; in phase REDUCE also the
 * ownership map; the term, the digests before the snapshot, what is to be kept of them, the members
 * that are behind, the deadline of the attempt, the relays. */
#include "net/control/control.h"
#include "net/control/fields.h"

static const char WHAT[] = "document";

_Static_assert(NET_MAX_MEMBERS <= 64, "a set of members fits into 64 bits");
_Static_assert(512 + NET_MAX_SYNCING * (4 + NET_KEY_BYTES + 2 + NET_ADDR_BYTES + 1) +
					   NET_MAX_LOG_DIGESTS * RV_HASH_BYTES +
					   NET_MAX_MEMBERS * (4 + 4 + 8 + NET_KEY_BYTES + 2 + NET_ADDR_BYTES + 1) + NET_MAX_RANGES * 10 +
					   NET_MAX_RELAYS * (NET_KEY_BYTES + 2 + NET_ADDR_BYTES) +
					   NET_MAX_KEPT_SNAPSHOTS * (8 + RV_HASH_BYTES) + NET_SIG_BYTES <=
				   NET_MAX_DOCUMENT_BYTES,
			   "the largest document fits");

static void write_hash(struct rv_writer *w, const struct rv_hash *h) {
	rv_write_bytes(w, h->b, RV_HASH_BYTES);
}

static void write_ownership_map(const struct document *m, struct rv_writer *w) {
	rv_write_u32(w, m->n_chunks);
	rv_write_u16(w, m->n_ranges);
	for (int i = 0; i < m->n_ranges; i++) {
		rv_write_u32(w, m->ranges[i].first);
		rv_write_u32(w, m->ranges[i].count);
		rv_write_u16(w, m->ranges[i].owner);
	}
}

static void write_older(const struct document *m, struct rv_writer *w) {
	rv_write_u16(w, m->n_older);
	write_hash(w, &m->older_chain);
	for (int i = 0; i < m->n_older; i++)
		write_hash(w, &m->older[i]);
	rv_write_u16(w, m->n_kept_rounds);
	rv_write_u16(w, m->n_kept_snapshots);
	for (int i = 0; i < m->n_kept_snapshots; i++) {
		rv_write_u64(w, m->kept_snapshots[i].round);
		write_hash(w, &m->kept_snapshots[i].hash);
	}
}

static void write_syncing(const struct document *m, struct rv_writer *w) {
	rv_write_u16(w, m->n_syncing);
	for (int i = 0; i < m->n_syncing; i++) {
		rv_write_u32(w, m->syncing[i].member);
		rv_write_bytes(w, m->syncing[i].key, NET_KEY_BYTES);
		rv_write_str(w, m->syncing[i].addr);
		rv_write_u8(w, m->syncing[i].relay);
	}
}

static void write_relays(const struct document *m, struct rv_writer *w) {
	rv_write_u8(w, m->n_relays);
	for (int i = 0; i < m->n_relays; i++) {
		rv_write_bytes(w, m->relays[i].key, NET_KEY_BYTES);
		rv_write_str(w, m->relays[i].addr);
	}
}

void document_encode(const struct document *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_DOCUMENT, version);
	rv_write_bytes(w, m->run_id, sizeof m->run_id);
	rv_write_u64(w, m->seq);
	rv_write_u8(w, m->phase);
	rv_write_u64(w, m->round);
	rv_write_u32(w, m->attempt);
	rv_write_u64(w, m->final_round);
	write_hash(w, &m->run_hash);
	write_hash(w, &m->chain);
	rv_write_u64(w, m->snapshot_round);
	write_hash(w, &m->snapshot_hash);
	write_hash(w, &m->snapshot_chain);
	rv_write_u16(w, m->n_log);
	for (int i = 0; i < m->n_log; i++)
		write_hash(w, &m->log[i]);
	rv_write_u64(w, m->banned);
	rv_write_u16(w, m->n_members);
	for (int i = 0; i < m->n_members; i++) {
		rv_write_u32(w, m->members[i].member);
		rv_write_u32(w, m->members[i].weight);
		rv_write_u64(w, m->members[i].boot);
		rv_write_bytes(w, m->members[i].key, NET_KEY_BYTES);
		rv_write_str(w, m->members[i].addr);
		rv_write_u8(w, m->members[i].relay);
	}
	if (m->phase == RUN_REDUCE)
		write_ownership_map(m, w);
	rv_write_u64(w, m->term);
	rv_write_u64(w, m->term_round);
	write_older(m, w);
	write_syncing(m, w);
	rv_write_u32(w, m->deadline_ms);
	write_relays(m, w);
}

static void read_hash(struct rv_reader *r, struct rv_hash *h) {
	rv_read_copy(r, h->b, RV_HASH_BYTES);
}

static enum rv_err read_log(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_log = rv_read_u16(r);
	if (out->n_log > NET_MAX_LOG_DIGESTS)
		return rv_fail(et, RV_E_INVALID, "%s: n_log = %u, at most %d", WHAT, out->n_log, (int)NET_MAX_LOG_DIGESTS);
	for (int i = 0; i < out->n_log; i++)
		read_hash(r, &out->log[i]);
	return RV_OK;
}

static enum rv_err read_older(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_older = rv_read_u16(r);
	read_hash(r, &out->older_chain);
	if (out->n_older > NET_MAX_LOG_DIGESTS - out->n_log || out->n_older > out->snapshot_round)
		return rv_fail(et, RV_E_INVALID, "%s: n_older = %u before snapshot_round %llu, at most %d with the log's %u",
					   WHAT, out->n_older, (unsigned long long)out->snapshot_round, (int)NET_MAX_LOG_DIGESTS,
					   out->n_log);
	for (int i = 0; i < out->n_older; i++)
		read_hash(r, &out->older[i]);
	out->n_kept_rounds = rv_read_u16(r);
	out->n_kept_snapshots = rv_read_u16(r);
	if (out->n_kept_rounds > out->n_older || out->n_kept_snapshots > NET_MAX_KEPT_SNAPSHOTS)
		return rv_fail(et, RV_E_INVALID, "%s: n_kept_rounds = %u of %u, n_kept_snapshots = %u, at most %d", WHAT,
					   out->n_kept_rounds, out->n_older, out->n_kept_snapshots, (int)NET_MAX_KEPT_SNAPSHOTS);
	for (int i = 0; i < out->n_kept_snapshots; i++) {
		out->kept_snapshots[i].round = rv_read_u64(r);
		read_hash(r, &out->kept_snapshots[i].hash);
	}
	return RV_OK;
}

static enum rv_err read_members(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_members = rv_read_u16(r);
	if (out->n_members > NET_MAX_MEMBERS)
		return rv_fail(et, RV_E_INVALID, "%s: n_members = %u, at most %d", WHAT, out->n_members, (int)NET_MAX_MEMBERS);
	for (int i = 0; i < out->n_members; i++) {
		struct member_ref *m = &out->members[i];
		m->member = rv_read_u32(r);
		m->weight = rv_read_u32(r);
		m->boot = rv_read_u64(r);
		rv_read_copy(r, m->key, NET_KEY_BYTES);
		rv_read_str(r, m->addr, sizeof m->addr);
		m->relay = rv_read_u8(r);
	}
	return RV_OK;
}

static enum rv_err read_relays(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_relays = rv_read_u8(r);
	if (out->n_relays > NET_MAX_RELAYS)
		return rv_fail(et, RV_E_INVALID, "%s: n_relays = %u, at most %d", WHAT, out->n_relays, (int)NET_MAX_RELAYS);
	for (int i = 0; i < out->n_relays; i++) {
		rv_read_copy(r, out->relays[i].key, NET_KEY_BYTES);
		rv_read_str(r, out->relays[i].addr, sizeof out->relays[i].addr);
	}
	return RV_OK;
}

static enum rv_err read_syncing(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_syncing = rv_read_u16(r);
	if (out->n_syncing > NET_MAX_SYNCING)
		return rv_fail(et, RV_E_INVALID, "%s: n_syncing = %u, at most %d", WHAT, out->n_syncing, (int)NET_MAX_SYNCING);
	for (int i = 0; i < out->n_syncing; i++) {
		struct member_ref *m = &out->syncing[i];
		m->member = rv_read_u32(r);
		rv_read_copy(r, m->key, NET_KEY_BYTES);
		rv_read_str(r, m->addr, sizeof m->addr);
		m->relay = rv_read_u8(r);
	}
	return RV_OK;
}

static enum rv_err read_ownership_map(struct rv_reader *r, struct document *out, struct rv_errtext *et) {
	out->n_chunks = rv_read_u32(r);
	out->n_ranges = rv_read_u16(r);
	if (out->n_ranges > NET_MAX_RANGES)
		return rv_fail(et, RV_E_INVALID, "%s: n_ranges = %u, at most %d", WHAT, out->n_ranges, (int)NET_MAX_RANGES);
	for (int i = 0; i < out->n_ranges; i++) {
		out->ranges[i].first = rv_read_u32(r);
		out->ranges[i].count = rv_read_u32(r);
		out->ranges[i].owner = rv_read_u16(r);
	}
	return RV_OK;
}

static enum rv_err check_round(const struct document *d, struct rv_errtext *et) {
	if (d->phase < RUN_WAITING || d->phase > RUN_DONE)
		return rv_fail(et, RV_E_INVALID, "%s: phase = %u, must be 1..%d", WHAT, d->phase, (int)RUN_DONE);
	if ((d->phase == RUN_REDUCE) != (d->attempt != 0))
		return rv_fail(et, RV_E_INVALID, "%s: attempt = %u in phase %u", WHAT, d->attempt, d->phase);
	if (d->deadline_ms > NET_MAX_DEADLINE_MS || (d->phase != RUN_REDUCE && d->deadline_ms != 0))
		return rv_fail(et, RV_E_INVALID, "%s: deadline_ms = %u in phase %u, at most %d and only in phase %d", WHAT,
					   d->deadline_ms, d->phase, (int)NET_MAX_DEADLINE_MS, (int)RUN_REDUCE);
	if (d->round > d->final_round || (d->phase == RUN_DONE) != (d->round == d->final_round))
		return rv_fail(et, RV_E_INVALID, "%s: round %llu of %llu in phase %u", WHAT, (unsigned long long)d->round,
					   (unsigned long long)d->final_round, d->phase);
	if (d->term > NET_MAX_TERM || d->term_round > d->round || (d->term == 0 && d->term_round != 0))
		return rv_fail(et, RV_E_INVALID, "%s: term %llu since round %llu, in round %llu", WHAT,
					   (unsigned long long)d->term, (unsigned long long)d->term_round, (unsigned long long)d->round);
	if (d->snapshot_round > d->round || d->round - d->snapshot_round != d->n_log)
		return rv_fail(et, RV_E_INVALID, "%s: n_log = %u between snapshot_round %llu and round %llu", WHAT, d->n_log,
					   (unsigned long long)d->snapshot_round, (unsigned long long)d->round);
	return RV_OK;
}

static enum rv_err check_kept(const struct document *d, struct rv_errtext *et) {
	uint64_t from = d->snapshot_round - d->n_kept_rounds;
	for (int i = 0; i < d->n_kept_snapshots; i++) {
		uint64_t round = d->kept_snapshots[i].round;
		if (round < from || round >= d->snapshot_round || (i > 0 && round <= d->kept_snapshots[i - 1].round))
			return rv_fail(et, RV_E_INVALID,
						   "%s: kept_snapshots[%d] of round %llu: must ascend from %llu to before %llu", WHAT, i,
						   (unsigned long long)round, (unsigned long long)from, (unsigned long long)d->snapshot_round);
	}
	return RV_OK;
}

/* Checks how a member can be reached: its address, and the relay of its station. */
static enum rv_err check_reach(const struct document *d, const struct member_ref *m, const char *list, int i,
							   struct rv_errtext *et) {
	const char *why = control_addr_invalid(m->addr, false);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s[%d].addr '%s': %s", WHAT, list, i, m->addr, why);
	if (m->relay > d->n_relays)
		return rv_fail(et, RV_E_INVALID, "%s: %s[%d].relay = %u of %u relays", WHAT, list, i, m->relay, d->n_relays);
	return RV_OK;
}

static enum rv_err check_members(const struct document *d, struct rv_errtext *et) {
	bool reduce = d->phase == RUN_REDUCE;
	uint64_t weight_sum = 0;
	if (reduce && d->n_members == 0)
		return rv_fail(et, RV_E_INVALID, "%s: a roster without members", WHAT);
	for (int i = 0; i < d->n_members; i++) {
		const struct member_ref *m = &d->members[i];
		if (m->member >= NET_MAX_MEMBERS || (i > 0 && m->member <= d->members[i - 1].member))
			return rv_fail(et, RV_E_INVALID, "%s: members[%d] = %u: must ascend and stay below %d", WHAT, i, m->member,
						   (int)NET_MAX_MEMBERS);
		if (reduce != (m->weight != 0))
			return rv_fail(et, RV_E_INVALID, "%s: members[%d].weight = %u in phase %u", WHAT, i, m->weight, d->phase);
		RV_TRY(check_reach(d, m, "members", i, et));
		weight_sum += m->weight;
	}
	if (weight_sum > NET_MAX_WEIGHT_SUM)
		return rv_fail(et, RV_E_INVALID, "%s: weights add up to %llu, at most %d", WHAT, (unsigned long long)weight_sum,
					   (int)NET_MAX_WEIGHT_SUM);
	return RV_OK;
}

static enum rv_err check_syncing(const struct document *d, struct rv_errtext *et) {
	for (int i = 0; i < d->n_syncing; i++) {
		const struct member_ref *m = &d->syncing[i];
		if (m->member >= NET_MAX_MEMBERS || (i > 0 && m->member <= d->syncing[i - 1].member))
			return rv_fail(et, RV_E_INVALID, "%s: syncing[%d] = %u: must ascend and stay below %d", WHAT, i, m->member,
						   (int)NET_MAX_MEMBERS);
		if (document_find(d, m->member) >= 0)
			return rv_fail(et, RV_E_INVALID, "%s: syncing[%d] = %u is in members", WHAT, i, m->member);
		RV_TRY(check_reach(d, m, "syncing", i, et));
	}
	return RV_OK;
}

static enum rv_err check_relays(const struct document *d, struct rv_errtext *et) {
	for (int i = 0; i < d->n_relays; i++) {
		const char *why = control_addr_invalid(d->relays[i].addr, false);
		if (why != NULL)
			return rv_fail(et, RV_E_INVALID, "%s: relays[%d].addr '%s': %s", WHAT, i, d->relays[i].addr, why);
	}
	return RV_OK;
}

static enum rv_err check_ownership_map(const struct document *d, struct rv_errtext *et) {
	if (d->n_chunks < 1 || d->n_chunks > NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "%s: n_chunks = %u, must be 1..%d", WHAT, d->n_chunks, (int)NET_MAX_CHUNKS);
	uint32_t next = 0;
	for (int i = 0; i < d->n_ranges; i++) {
		const struct owner_range *g = &d->ranges[i];
		if (g->first != next || g->count == 0 || g->count > d->n_chunks - next)
			return rv_fail(et, RV_E_INVALID, "%s: ranges[%d] = %u+%u: must start at %u and end by %u", WHAT, i,
						   g->first, g->count, next, d->n_chunks);
		if (g->owner >= d->n_members)
			return rv_fail(et, RV_E_INVALID, "%s: ranges[%d].owner = %u of %u members", WHAT, i, g->owner,
						   d->n_members);
		next += g->count;
	}
	if (next != d->n_chunks)
		return rv_fail(et, RV_E_INVALID, "%s: ranges end at %u of %u chunks", WHAT, next, d->n_chunks);
	return RV_OK;
}

static void read_run(struct rv_reader *r, struct document *out) {
	rv_read_copy(r, out->run_id, sizeof out->run_id);
	out->seq = rv_read_u64(r);
	out->phase = rv_read_u8(r);
	out->round = rv_read_u64(r);
	out->attempt = rv_read_u32(r);
	out->final_round = rv_read_u64(r);
	read_hash(r, &out->run_hash);
	read_hash(r, &out->chain);
	out->snapshot_round = rv_read_u64(r);
	read_hash(r, &out->snapshot_hash);
	read_hash(r, &out->snapshot_chain);
}

enum rv_err document_decode(const void *p, size_t n, struct document *out, struct rv_errtext *et) {
	*out = (struct document){0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_DOCUMENT, WHAT, &out->version, et));
	read_run(&r, out);
	RV_TRY(read_log(&r, out, et));
	out->banned = rv_read_u64(&r);
	RV_TRY(read_members(&r, out, et));
	if (out->phase == RUN_REDUCE)
		RV_TRY(read_ownership_map(&r, out, et));
	out->term = rv_read_u64(&r);
	out->term_round = rv_read_u64(&r);
	RV_TRY(read_older(&r, out, et));
	RV_TRY(read_syncing(&r, out, et));
	out->deadline_ms = rv_read_u32(&r);
	RV_TRY(read_relays(&r, out, et));
	RV_TRY(control_read_end(&r, WHAT, et));
	RV_TRY(check_round(out, et));
	RV_TRY(check_kept(out, et));
	RV_TRY(check_members(out, et));
	RV_TRY(check_syncing(out, et));
	RV_TRY(check_relays(out, et));
	return out->phase == RUN_REDUCE ? check_ownership_map(out, et) : RV_OK;
}

int document_find(const struct document *d, uint32_t member) {
	for (int i = 0; i < d->n_members; i++)
		if (d->members[i].member == member)
			return i;
	return -1;
}

uint64_t document_reaches_to(const struct document *d) {
	return d->snapshot_round - d->n_older;
}

const struct rv_hash *document_digest(const struct document *d, uint64_t round) {
	if (round < document_reaches_to(d) || round >= d->round)
		return NULL;
	return round < d->snapshot_round ? &d->older[round - document_reaches_to(d)] : &d->log[round - d->snapshot_round];
}
