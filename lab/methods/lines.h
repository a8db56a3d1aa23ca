/* lines.h: the lines of the workers, by model: who takes part in a round's averaging under
 * slow-members, and how long its exchange takes.
 *
 * Worker i sends and receives lab_config.lines[i] bytes/s. With slow-members = skip it takes part
 * in the rounds whose number is a multiple of slow_lines_every (base/slow_lines.h), as a real
 * worker does that is ready in every round, and in all of them if fewer than min-workers are left.
 *
 * Pure arithmetic: every call gives the same. */
#ifndef RV_LAB_LINES_H
#define RV_LAB_LINES_H

#include "lab/run/lab_run.h"

/* Clears takes_part[i] of the workers (c->workers) that leave out `round`, whose payload has so
 * many bytes. Without lines none does. */
void lines_leave_out(const struct lab_config *c, uint64_t round, uint64_t payload_bytes, bool *takes_part);
/* Returns the least time of an exchange among those that take part: the optimum of the linear
 * program of coordinator/core/shares.c. 0: without lines, or of fewer than two. */
double lines_exchange_ms(const struct lab_config *c, uint64_t payload_bytes, const bool *takes_part);

/* Parses "100mbit:100mbit:10mbit" or with commas: worker i has the value i modulo how many there
 * are; "": all 0, no model. RV_E_INVALID; RV_E_RANGE: a rate of 0, or more than LAB_MAX_WORKERS
 * values. */
enum rv_err lines_parse(const char *text, int64_t lines[LAB_MAX_WORKERS], struct rv_errtext *et);

#endif
