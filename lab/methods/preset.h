/* preset.h: the settings that a method prescribes, often DiLoCo's round under a name from the
 * literature, and an error if the user's options contradict them. An outer optimizer that is the
 * default, nesterov, counts as not chosen: the method's replaces it. */
#ifndef RV_LAB_PRESET_H
#define RV_LAB_PRESET_H

#include "lab/run/lab_run.h"

/* Sets the options that c->method prescribes. */
void method_configure(struct lab_config *c);
/* Refuses a configuration, as it is before method_configure, that contradicts the method:
 * RV_E_INVALID, RV_E_RANGE (workers), and the faults of m->check. */
enum rv_err method_check(const struct lab_method *m, const struct run_config *c, int workers, struct rv_errtext *et);
/* Refuses an outer optimizer that is neither `outer` nor the default: RV_E_INVALID. */
enum rv_err method_check_outer(const struct lab_method *m, const struct run_config *c, enum outer_choice outer,
							   struct rv_errtext *et);

#endif
