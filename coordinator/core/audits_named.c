/* audits_named.c: which chunk of a committed round is audited because its mean stands out.
 *
 * An owner that lies about one chunk in many is seldom drawn. But a lie that does much harm is much
 * larger than honest means, and each voter knows which mean is that beside its own contribution
 * (outer/stands_out.h). It says so in its vote, and the audit of one such chunk is added to those
 * that are drawn (audits.c), with auditors that are drawn as theirs.
 *
 * - A voter that nobody else seconds is not heeded: liars that name chunks cost an audit of one
 *   chunk a round at most, if there are two of them.
 * - Of several chunks one is drawn, by the voters that name them, so that those who name another
 *   one do not hide a lie for long.
 *
 * What was named is not durable: a restarted coordinator draws the other audits again. */
#include "base/planted.h"
#include "coordinator/core/internal.h"

/* Returns what participant `i` names, counted from 1, if it voted for what was committed; 0:
 * nothing. */
static uint32_t named_by(const struct core *c, const struct rv_hash *digest, uint32_t i) {
	const struct core_roster *r = &c->roster;
	const bool counts = set_has(r->voted, i) && rv_hash_equal(&r->digests[i], digest);
	return counts && r->stands_out[i] <= r->n_chunks ? r->stands_out[i] : 0;
}

static bool is_seconded(const struct core *c, const struct rv_hash *digest, uint32_t i) {
	const uint32_t chunk = named_by(c, digest, i);
	uint32_t n = 0;
	for (uint32_t k = 0; k < c->roster.n && chunk != 0 && n < 2; k++)
		n += named_by(c, digest, k) == chunk;
	return n == 2;
}

int64_t core_named_chunk(const struct core *c, const struct rv_hash *digest, const struct rv_hash *seed) {
	enum { NUMBER = 1 << 22 }; /* of the draw; those of audits.c are below */
	const uint32_t n = c->roster.n, first = audit_draw(seed, NUMBER, n);
	for (uint32_t k = 0; k < n && !RV_BUG("heed-no-names"); k++) {
		const uint32_t i = (first + k) % n;
		if (is_seconded(c, digest, i))
			return named_by(c, digest, i) - 1;
	}
	return -1;
}
