/* report.c: the encoding of a worker's report. */
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

#include <math.h>

static const char WHAT[] = "report";

static const struct layout measured[] = {
	LAYOUT_FIELD(PLAIN, struct report_measured, norm2),
	LAYOUT_FIELD(PLAIN, struct report_measured, dot),
	LAYOUT_FIELD(PLAIN, struct report_measured, clipped),
	LAYOUT_LAST,
};

/* Behind these goes a byte: 1 if the proven round is the next one. */
static const struct layout state[] = {
	LAYOUT_FIELD(PLAIN, struct report, boot),
	LAYOUT_FIELD(PLAIN, struct report, seq),
	LAYOUT_FIELD(PLAIN, struct report, phase),
	LAYOUT_FIELD(PLAIN, struct report, round),
	LAYOUT_FIELD(PLAIN, struct report, attempt),
	LAYOUT_FIELD(PLAIN, struct report, tokens),
	LAYOUT_FIELD(PLAIN, struct report, n_chunks),
	LAYOUT_FIELD(PLAIN, struct report, suspects),
	LAYOUT_FIELD(PLAIN, struct report, digest),
	LAYOUT_FIELD(PLAIN, struct report, chain),
	LAYOUT_FIELD(PLAIN, struct report, full_round),
	LAYOUT_FIELD(PLAIN, struct report, full_hash),
	LAYOUT_FIELD(PLAIN, struct report, inner_step),
	LAYOUT_FIELD(PLAIN, struct report, loss),
	LAYOUT_FIELD(PLAIN, struct report, tokens_per_s),
	LAYOUT_FIELD(PLAIN, struct report, tx_bytes),
	LAYOUT_FIELD(PLAIN, struct report, rx_bytes),
	LAYOUT_FIELD(PLAIN, struct report, compute_us),
	LAYOUT_FIELD(PLAIN, struct report, reduce_us),
	LAYOUT_FIELD(PLAIN, struct report, term),
	LAYOUT_FIELD(PLAIN, struct report, up_bytes_per_s),
	LAYOUT_FIELD(PLAIN, struct report, down_bytes_per_s),
	LAYOUT_LAST,
};

/* Behind these go the paths, but for the last ones that are PATH_NONE. */
static const struct layout proof[] = {
	LAYOUT_FIELD(PLAIN, struct report, proven_chain),
	LAYOUT_FIELD(PLAIN, struct report, needs_from),
	LAYOUT_FIELD(PLAIN, struct report, storage),
	LAYOUT_LAST,
};

/* Behind these go the candidates. */
static const struct layout figures[] = {
	LAYOUT_COUNTED(struct report, measured, n_measured, measured),
	LAYOUT_FIELD(PLAIN, struct report, mean2),
	LAYOUT_FIELD(PLAIN, struct report, relay),
	LAYOUT_FIELD(PLAIN, struct report, reach),
	LAYOUT_FIELD(PLAIN, struct report, offers_relay),
	LAYOUT_LAST,
};

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
	layout_write(state, m, w);
	rv_write_u8(w, m->proven_round > m->round);
	layout_write(proof, m, w);
	uint8_t n_paths = count_paths(m);
	rv_write_u8(w, n_paths);
	rv_write_bytes(w, m->paths, n_paths);
	layout_write(figures, m, w);
	candidates_write(m->candidates, m->n_candidates, w);
	probed_write(&m->probed, w);
}

static void read_paths(struct rv_reader *r, struct report *out) {
	uint8_t n = rv_read_u8(r);
	if (n > NET_MAX_MEMBERS)
		r->failed = true;
	else
		rv_read_copy(r, out->paths, n);
}

static bool path_is_valid(uint8_t path) {
	enum path_kind kind = path_kind_of(path);
	bool has_more = (path & PATH_MORE) != 0, may_have = kind >= PATH_DIALED && kind <= PATH_PUNCHED;
	return kind < PATH_KINDS && (may_have || !has_more);
}

/* Returns the first member whose path is none; -1: there is none. */
static int invalid_path(const struct report *m) {
	for (int i = 0; i < NET_MAX_MEMBERS; i++)
		if (!path_is_valid(m->paths[i]))
			return i;
	return -1;
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
	RV_TRY(layout_read(state, &r, out, WHAT, et));
	out->proven_round = out->round + control_read_bool(&r);
	RV_TRY(layout_read(proof, &r, out, WHAT, et));
	read_paths(&r, out);
	RV_TRY(layout_read(figures, &r, out, WHAT, et));
	RV_TRY(candidates_read(&r, out->candidates, &out->n_candidates, WHAT, et));
	RV_TRY(probed_read(&r, &out->probed, et));
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
	int wrong_path = invalid_path(out);
	if (wrong_path >= 0)
		return rv_fail(et, RV_E_INVALID, "%s: paths[%d] = %u, must be 0..%d; 2..4 may have 16 and 32 added", WHAT,
					   wrong_path, out->paths[wrong_path], (int)PATH_KINDS - 1);
	enum rv_err e = candidates_check(out->candidates, out->n_candidates, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", WHAT);
	if (!isfinite(out->loss) || !isfinite(out->tokens_per_s))
		return rv_fail(et, RV_E_INVALID, "%s: loss or tokens_per_s is not finite", WHAT);
	if (out->relay > NET_MAX_RELAYS)
		return rv_fail(et, RV_E_INVALID, "%s: relay = %u, at most %d", WHAT, out->relay, (int)NET_MAX_RELAYS);
	if (out->reach >= REACH_KINDS)
		return rv_fail(et, RV_E_INVALID, "%s: reach = %u, must be below %d", WHAT, out->reach, (int)REACH_KINDS);
	const char *why = measured_invalid(out);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s", WHAT, why);
	return RV_OK;
}
