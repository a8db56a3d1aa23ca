/* report.c: the encoding of a worker's report. */
#include "base/assert.h"
#include "net/control/control.h"
#include "net/control/fields.h"

#include <math.h>

static const char WHAT[] = "report";

static void write_measured(const struct report *m, struct rv_writer *w) {
	RV_ASSERT(m->n_measured <= NET_MAX_MEMBERS);
	rv_write_u16(w, m->n_measured);
	for (uint32_t i = 0; i < m->n_measured; i++) {
		rv_write_f32(w, m->measured[i].norm2);
		rv_write_f32(w, m->measured[i].dot);
		rv_write_u32(w, m->measured[i].clipped);
	}
	rv_write_f32(w, m->mean2);
}

static uint8_t count_paths(const struct report *m) {
	uint8_t n = NET_MAX_MEMBERS;
	while (n > 0 && m->paths[n - 1] == PATH_NONE)
		n--;
	return n;
}

bool report_same_process(uint64_t boot_a, uint64_t boot_b) {
	enum { APART_US = 1000 };
	return (boot_a > boot_b ? boot_a - boot_b : boot_b - boot_a) < APART_US;
}

void report_encode(const struct report *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_REPORT, version);
	rv_write_u64(w, m->boot);
	rv_write_u64(w, m->seq);
	rv_write_u8(w, m->phase);
	rv_write_u64(w, m->round);
	rv_write_u32(w, m->attempt);
	rv_write_u64(w, m->tokens);
	rv_write_u32(w, m->n_chunks);
	rv_write_u64(w, m->suspects);
	rv_write_bytes(w, m->digest.b, RV_HASH_BYTES);
	rv_write_bytes(w, m->chain.b, RV_HASH_BYTES);
	rv_write_u64(w, m->full_round);
	rv_write_bytes(w, m->full_hash.b, RV_HASH_BYTES);
	rv_write_str(w, m->addr);
	rv_write_u64(w, m->inner_step);
	rv_write_f32(w, m->loss);
	rv_write_f32(w, m->tokens_per_s);
	rv_write_u64(w, m->tx_bytes);
	rv_write_u64(w, m->rx_bytes);
	rv_write_u64(w, m->compute_us);
	rv_write_u64(w, m->reduce_us);
	rv_write_u64(w, m->term);
	rv_write_u64(w, m->up_bytes_per_s);
	rv_write_u64(w, m->down_bytes_per_s);
	rv_write_u8(w, m->proven_round > m->round);
	rv_write_bytes(w, m->proven_chain.b, RV_HASH_BYTES);
	rv_write_u64(w, m->needs_from);
	rv_write_u8(w, m->storage);
	uint8_t n_paths = count_paths(m);
	rv_write_u8(w, n_paths);
	rv_write_bytes(w, m->paths, n_paths);
	write_measured(m, w);
	rv_write_u8(w, m->relay);
}

static void read_fields(struct rv_reader *r, struct report *out) {
	out->boot = rv_read_u64(r);
	out->seq = rv_read_u64(r);
	out->phase = rv_read_u8(r);
	out->round = rv_read_u64(r);
	out->attempt = rv_read_u32(r);
	out->tokens = rv_read_u64(r);
	out->n_chunks = rv_read_u32(r);
	out->suspects = rv_read_u64(r);
	rv_read_copy(r, out->digest.b, RV_HASH_BYTES);
	rv_read_copy(r, out->chain.b, RV_HASH_BYTES);
	out->full_round = rv_read_u64(r);
	rv_read_copy(r, out->full_hash.b, RV_HASH_BYTES);
	rv_read_str(r, out->addr, sizeof out->addr);
	out->inner_step = rv_read_u64(r);
	out->loss = rv_read_f32(r);
	out->tokens_per_s = rv_read_f32(r);
	out->tx_bytes = rv_read_u64(r);
	out->rx_bytes = rv_read_u64(r);
	out->compute_us = rv_read_u64(r);
	out->reduce_us = rv_read_u64(r);
	out->term = rv_read_u64(r);
	out->up_bytes_per_s = rv_read_u64(r);
	out->down_bytes_per_s = rv_read_u64(r);
	out->proven_round = out->round + control_read_bool(r);
	rv_read_copy(r, out->proven_chain.b, RV_HASH_BYTES);
	out->needs_from = rv_read_u64(r);
	out->storage = rv_read_u8(r);
}

static void read_paths(struct rv_reader *r, struct report *out) {
	uint8_t n = rv_read_u8(r);
	if (n > NET_MAX_MEMBERS)
		r->failed = true;
	else
		rv_read_copy(r, out->paths, n);
}

static bool paths_are_valid(const struct report *m) {
	for (int i = 0; i < NET_MAX_MEMBERS; i++)
		if (m->paths[i] >= PATH_KINDS)
			return false;
	return true;
}

static void read_measured(struct rv_reader *r, struct report *out) {
	uint16_t n = rv_read_u16(r);
	if (n > NET_MAX_MEMBERS) {
		r->failed = true;
		return;
	}
	out->n_measured = n;
	for (uint32_t i = 0; i < n; i++) {
		out->measured[i].norm2 = rv_read_f32(r);
		out->measured[i].dot = rv_read_f32(r);
		out->measured[i].clipped = rv_read_u32(r);
	}
	out->mean2 = rv_read_f32(r);
}

/* Returns NULL, or the fault in an owner's measurements. */
static const char *measured_invalid(const struct report *m) {
	if (m->n_measured > 0 && m->phase != WORKER_VOTED)
		return "measured without a vote";
	if (!isfinite(m->mean2) || m->mean2 < 0)
		return "mean2 is negative or not finite";
	for (uint32_t i = 0; i < m->n_measured; i++) {
		const struct report_measured *p = &m->measured[i];
		if (!isfinite(p->norm2) || p->norm2 < 0 || !isfinite(p->dot))
			return "a measured norm is negative, or not finite, or a dot product is not finite";
		if (p->clipped > m->n_chunks)
			return "more chunks of a contribution were clipped than there are";
	}
	return NULL;
}

enum rv_err report_decode(const void *p, size_t n, struct report *out, struct rv_errtext *et) {
	*out = (struct report){0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_REPORT, WHAT, &out->version, et));
	read_fields(&r, out);
	read_paths(&r, out);
	read_measured(&r, out);
	out->relay = rv_read_u8(&r);
	RV_TRY(control_read_end(&r, WHAT, et));
	if (out->phase < WORKER_SYNCING || out->phase > WORKER_LEAVING)
		return rv_fail(et, RV_E_INVALID, "%s: phase = %u, must be 1..%d", WHAT, out->phase, (int)WORKER_LEAVING);
	bool reducing = out->phase == WORKER_REDUCING || out->phase == WORKER_VOTED;
	if (reducing != (out->attempt != 0))
		return rv_fail(et, RV_E_INVALID, "%s: attempt = %u in phase %u", WHAT, out->attempt, out->phase);
	if (out->n_chunks < 1 || out->n_chunks > NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "%s: n_chunks = %u, must be 1..%d", WHAT, out->n_chunks, (int)NET_MAX_CHUNKS);
	if (out->term > NET_MAX_TERM)
		return rv_fail(et, RV_E_INVALID, "%s: term = %llu, at most %d", WHAT, (unsigned long long)out->term,
					   (int)NET_MAX_TERM);
	if (out->storage > (REPORT_STORAGE_KINDS | REPORT_STORAGE_FULL) || out->storage == REPORT_STORAGE_FULL)
		return rv_fail(et, RV_E_INVALID, "%s: storage = %u, which is no set of things that cannot be stored", WHAT,
					   out->storage);
	if (!paths_are_valid(out))
		return rv_fail(et, RV_E_INVALID, "%s: a path is of an unknown kind, must be 0..%d", WHAT, (int)PATH_KINDS - 1);
	const char *why = control_addr_invalid(out->addr, true);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: addr '%s': %s", WHAT, out->addr, why);
	if (!isfinite(out->loss) || !isfinite(out->tokens_per_s))
		return rv_fail(et, RV_E_INVALID, "%s: loss or tokens_per_s is not finite", WHAT);
	if (out->relay > NET_MAX_RELAYS)
		return rv_fail(et, RV_E_INVALID, "%s: relay = %u, at most %d", WHAT, out->relay, (int)NET_MAX_RELAYS);
	why = measured_invalid(out);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s", WHAT, why);
	return RV_OK;
}
