/* mean_check.h: is what was averaged the mean of what was given? After a run, from the
 * coordinator's store (who took part in what was committed) and the workers' dumps
 * (mean_dump.h): every committed round's contributions are decoded, averaged in fp32
 * in roster order with the roster's weights, encoded once, and compared byte for byte with what
 * each worker reduced, and by digest and chain with what was committed. A roster above `row-size`
 * is averaged as it is laid out: sums of rows, by the first roster of the round, are added in row
 * order. The sums here are written again, not the product's. */
#ifndef TESTS_CHAOS_MEAN_CHECK_H
#define TESTS_CHAOS_MEAN_CHECK_H

#include "base/hash.h"

#include <stdint.h>

enum { MEAN_CHECK_MAX_ROUNDS = 4096 };

struct mean_check {
	uint64_t rounds;                                 /* committed and checked */
	uint64_t contributions;                          /* in all of them */
	uint64_t reduced;                                /* dumps that were equal */
	uint64_t by_later_attempts;                      /* rounds whose first attempt was not the one that committed */
	uint64_t in_rows;                                /* rounds over several rows */
	struct rv_hash chain[MEAN_CHECK_MAX_ROUNDS + 1]; /* state_hash(round), up to `rounds` */
};

/* `store`: the store's file, of a coordinator that was stopped. RV_E_CORRUPT names the round and
 * what does not agree; RV_E_NOTFOUND: a participant's contribution was not dumped. */
enum rv_err mean_check(const char *store, const char *dump_dir, struct mean_check *out, struct rv_errtext *et);

#endif
