/* record_gap.c: see record_gap.h. */
#include "lab/record_gap.h"

#include "lab/checkpoint_header.h"
#include "lab/run_record.h"
#include "worker/train/metrics.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

bool record_gap(const char *dir, struct rv_errtext *what) {
	char checkpoint[PATH_MAX], metrics[PATH_MAX];
	struct checkpoint_header h;
	struct run_record r;
	snprintf(checkpoint, sizeof checkpoint, "%s/" LAB_CHECKPOINT_FILE, dir);
	snprintf(metrics, sizeof metrics, "%s/" METRICS_FILE, dir);
	if (checkpoint_header_read(checkpoint, &h, NULL) != RV_OK || h.rounds_done == 0)
		return false;
	if (run_record_read(metrics, &r, what) != RV_OK)
		return true;
	uint64_t missing = run_record_missing(&r, h.rounds_done);
	run_record_release(&r);
	if (missing > 0)
		(void)rv_fail(what, RV_E_CORRUPT,
					  "%s: no line of round %" PRIu64 ", and " LAB_CHECKPOINT_FILE " beside it has done %" PRIu64,
					  metrics, missing, h.rounds_done);
	return missing > 0;
}
