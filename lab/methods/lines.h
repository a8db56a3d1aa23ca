/* lines.h: the lines of the workers, by model: who takes part in a round's averaging under
 * slow-members, how each sends its contribution, and how long the exchange takes.
 *
 * Worker i sends lab_config.lines[i].up bytes/s and receives lines[i].down. The functions of
 * base/slow_lines.h decide about slow ones, as in a coordinator: with slow-members = skip one takes
 * part in the rounds whose number is a multiple of slow_lines_every, as a real worker does that is
 * ready in every round, and in all of them if fewer than min-workers are left. With coarser and
 * part worker i sends what member i would.
 *
 * Pure arithmetic: every call gives the same. */
#ifndef RV_LAB_LINES_H
#define RV_LAB_LINES_H

#include "lab/run/lab_run.h"
#include "outer/contribution.h"

/* Bytes that a round exchanges. */
struct lines_round {
	uint64_t round, sent_bytes, mean_bytes; /* of a contribution by the run's codec, and of a mean */
	uint32_t chunks;                        /* 0: many */
};
struct lines_round lines_round_of(const struct lab_run *r, uint64_t round);

/* Clears takes_part[i] of the workers (c->workers) that leave out the round. Without lines none
 * does. */
void lines_leave_out(const struct lab_config *c, const struct lines_round *round, bool *takes_part);
/* Sets forms[i] (c->workers) of those that take part. Without lines all are plain. */
void lines_forms(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
				 const bool *takes_part, struct contribution_form *forms);
/* Returns the least time of an exchange among those that take part: the optimum of the linear
 * program of coordinator/core/shares.c, with what each sends by its form. 0: without lines, or of
 * fewer than two. */
double lines_exchange_ms(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
						 const bool *takes_part, const struct contribution_form *forms);

/* Parses "100mbit:20mbit/5mbit" or with commas, each the rate of both directions or DOWN/UP: worker
 * i has the value i modulo how many there are; "": all 0, no model. RV_E_INVALID; RV_E_RANGE: a
 * rate of 0, or more than LAB_MAX_WORKERS values. */
enum rv_err lines_parse(const char *text, struct slow_line lines[LAB_MAX_WORKERS], struct rv_errtext *et);

#endif
