/* record_gap.c: see record_gap.h. */
#include "lab/run/record_gap.h"

#include "lab/run/checkpoint_header.h"
#include "lab/run/run_record.h"
#include "train/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

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

static bool is_of_run(const char *checkpoint, const struct lab_run *r) {
	const struct checkpoint_header mine = checkpoint_header_of(r);
	struct checkpoint_header h;
	return checkpoint_header_read(checkpoint, &h, NULL) == RV_OK && checkpoint_header_check(&h, &mine, NULL) == RV_OK;
}

enum rv_err record_gap_forget(const struct lab_run *r, const char *dir, struct rv_errtext *what,
							  struct rv_errtext *et) {
	char checkpoint[PATH_MAX];
	struct rv_errtext gap = {0};
	*what = (struct rv_errtext){0};
	snprintf(checkpoint, sizeof checkpoint, "%s/" LAB_CHECKPOINT_FILE, dir);
	if (!record_gap(dir, &gap) || !is_of_run(checkpoint, r))
		return RV_OK;
	if (unlink(checkpoint) != 0)
		return rv_fail_errno(et, errno, "%s: cannot remove it, to train anew", checkpoint);
	*what = gap;
	return RV_OK;
}
