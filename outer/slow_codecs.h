/* slow_codecs.h: the codecs by which a worker with a slow line may send its contribution
 * (slow-members = coarser, base/slow_lines.h). */
#ifndef RV_OUTER_SLOW_CODECS_H
#define RV_OUTER_SLOW_CODECS_H

#include "base/run_config.h"
#include "base/slow_lines.h"
#include "outer/codec.h"

struct slow_codecs {
	int n;
	const struct codec *step[SLOW_LINES_STEPS]; /* each coarser than the one before, the first than the run's */
};

/* Returns the one of slow-codec; with auto all that are coarser than `codec`, but without
 * error-feedback no sparse ones. n 0: another policy, or there is none. */
struct slow_codecs slow_codecs_of(const struct run_config *run);
/* Refuses slow-members = coarser where no codec is coarser, or slow-codec is not: RV_E_INVALID,
 * with the remedy. */
enum rv_err slow_codecs_check(const struct run_config *run, struct rv_errtext *et);

#endif
