/* line.h: what a run would take on a line of one's choice: lab/simulate/simulate.h's model, fed
 * with what the run measured.
 *
 * Compute per inner step and bytes per exchange are the run's own; the line is the reader's.
 * Methods that average one round late (eager, delayed) are one fragment whose exchange overlaps a
 * whole round. */
#ifndef RV_LAB_REPORT_LINE_H
#define RV_LAB_REPORT_LINE_H

#include "lab/report/facts.h"
#include "lab/run/run_record.h"

struct report_line {
	double rate_bits_per_s, latency_s;
	double sync_s; /* what an exchange costs beside the line */
	double step_s; /* 0: as each run measured it */
};

/* Writes "100 Mbit/s, 20 ms one way". */
enum { REPORT_LINE_TEXT_BYTES = 96 };
void report_line_text(const struct report_line *l, char out[REPORT_LINE_TEXT_BYTES]);

struct report_timing {
	double step_wall_s; /* mean wall time of an inner step; NaN: not known */
	double utilisation;
};
/* Returns the timing on the line of the run with record `r` and sums `t`, those of one process. NaN
 * if it has done no step, or if the model does not cover what it did. */
struct report_timing report_line_apply(const struct report_line *l, const struct run_record *r,
									   const struct record_totals *t, const struct report_facts *f);

#endif
