/* audit.c: see audit.h. */
#include "net/control/audit.h"

#include "base/assert.h"

#include <string.h>

struct rv_hash audit_promise_of(const struct rv_hash *secret) {
	struct rv_hasher h = rv_hasher_of("rivulet audit promise");
	rv_hash_update(&h, secret->b, sizeof secret->b);
	return rv_hash_final(&h);
}

struct rv_hash audit_seed_of(const struct rv_hash *secret, const struct rv_hash *digest) {
	struct rv_hasher h = rv_hasher_of("rivulet audit");
	rv_hash_update(&h, secret->b, sizeof secret->b);
	rv_hash_update(&h, digest->b, sizeof digest->b);
	return rv_hash_final(&h);
}

struct rv_hash audit_beyond(void) {
	static const char name[] = "rivulet audit beyond";
	return rv_hash_of(name, sizeof name - 1);
}

uint32_t audit_draw(const struct rv_hash *seed, uint32_t i, uint32_t below) {
	struct rv_hasher h = rv_hasher_of("rivulet audit draw");
	uint64_t number = 0;
	RV_ASSERT(below > 0);
	rv_hash_update(&h, seed->b, sizeof seed->b);
	rv_hash_u64(&h, i);
	const struct rv_hash drawn = rv_hash_final(&h);
	for (int k = 0; k < 8; k++)
		number = number << 8 | drawn.b[k];
	return (uint32_t)(number % below); /* of 2^64: even to within 2^-32 */
}

/* Returns true if the order has what its kind needs, and nothing else. */
static bool is_whole(const struct audit_order *o) {
	const bool has_sum = o->kind == AUDIT_OF_SUM || o->kind == AUDIT_OF_MEAN;
	return o->kind < AUDIT_KINDS && (o->kind == AUDIT_OF_MEAN || o->member == 0) &&
		   (o->kind != AUDIT_OF_MEAN || o->member != NET_NO_MEMBER) && has_sum == !rv_hash_is_zero(&o->sum);
}

enum rv_err audit_orders_check(const struct audit_order *orders, int n, uint64_t open_round, struct rv_errtext *et) {
	for (int i = 0; i < n; i++)
		if (orders[i].round >= open_round || orders[i].attempt == 0 || orders[i].chunk >= NET_MAX_CHUNKS ||
			!is_whole(&orders[i]))
			return rv_fail(et, RV_E_INVALID, "audits[%d] of round %llu, attempt %u, chunk %u, kind %u, in round %llu",
						   i, (unsigned long long)orders[i].round, orders[i].attempt, orders[i].chunk, orders[i].kind,
						   (unsigned long long)open_round);
	return RV_OK;
}

/* Returns why a result is impossible; NULL: it is not. */
static const char *invalid(const struct audit_result *r) {
	const bool names = r->verdict == AUDIT_WITHHELD || r->verdict == AUDIT_UNABLE;
	if (r->verdict < AUDIT_RIGHT || r->verdict >= AUDIT_VERDICTS)
		return "an unknown verdict";
	if (r->chunk >= NET_MAX_CHUNKS)
		return "a chunk past the limit";
	if ((r->verdict == AUDIT_WITHHELD && r->member == NET_NO_MEMBER) || (!names && r->member != NET_NO_MEMBER))
		return "a member is named, or missing";
	return (r->verdict == AUDIT_WRONG) == rv_hash_is_zero(&r->found) ? "a hash is there, or missing" : NULL;
}

enum rv_err audit_results_check(const struct audit_result *results, int n, struct rv_errtext *et) {
	for (int i = 0; i < n; i++) {
		const char *why = invalid(&results[i]);
		if (why != NULL)
			return rv_fail(et, RV_E_INVALID, "verdicts[%d]: %s", i, why);
	}
	return RV_OK;
}
