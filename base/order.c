/* order.c: see order.h. */
#include "base/order.h"

#include "base/assert.h"

/* Equal values are ordered by where they stand: so each place is one value's. */
#define NTH(name, type)                                                                                                \
	type name(const type *values, int n, int place) {                                                                  \
		RV_ASSERT(place >= 0 && place < n);                                                                            \
		for (int i = 0; i + 1 < n; i++) {                                                                              \
			int before = 0;                                                                                            \
			for (int k = 0; k < n; k++)                                                                                \
				before += values[k] < values[i] || (values[k] == values[i] && k < i);                                  \
			if (before == place)                                                                                       \
				return values[i];                                                                                      \
		}                                                                                                              \
		return values[n - 1];                                                                                          \
	}

NTH(rv_nth, double)
NTH(rv_nth_u64, uint64_t)
