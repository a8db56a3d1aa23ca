/* gcra.c: see gcra.h. */
#include "base/gcra.h"

#include "base/assert.h"

int64_t gcra_ready_us(const struct gcra *limit, int64_t paid_until_us) {
	RV_ASSERT(limit->each_us > 0 && limit->burst >= 1);
	return paid_until_us - (limit->burst - 1) * limit->each_us;
}

void gcra_count(const struct gcra *limit, int64_t *paid_until_us, int64_t now_us) {
	RV_ASSERT(now_us >= 0 && *paid_until_us >= 0);
	*paid_until_us = (*paid_until_us > now_us ? *paid_until_us : now_us) + limit->each_us;
}

bool gcra_take(const struct gcra *limit, int64_t *paid_until_us, int64_t now_us) {
	if (gcra_ready_us(limit, *paid_until_us) > now_us)
		return false;
	gcra_count(limit, paid_until_us, now_us);
	return true;
}
