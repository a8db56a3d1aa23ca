/* preset.h: for methods that are DiLoCo's round with settings of their own: a name from the
 * literature, and an error if the user's options contradict it. An outer optimizer that is the
 * default, nesterov, counts as not chosen: the method's replaces it. */
#ifndef RV_LAB_PRESET_H
#define RV_LAB_PRESET_H

#include "lab/run/lab_run.h"

void preset_outer(struct lab_config *c, enum outer_choice outer);
void preset_updates(struct lab_config *c, enum run_updates updates);
/* Refuses an outer optimizer that is neither the method's nor the default: RV_E_INVALID. */
enum rv_err preset_check_outer(const char *method, const struct run_config *c, enum outer_choice outer,
							   struct rv_errtext *et);
/* Refuses updates that are neither the method's nor the default: RV_E_INVALID. */
enum rv_err preset_check_updates(const char *method, const struct run_config *c, enum run_updates updates,
								 struct rv_errtext *et);
/* Refuses prox-mu for a method whose workers never leave the shared weights: RV_E_INVALID. */
enum rv_err preset_check_no_prox(const char *method, const struct run_config *c, struct rv_errtext *et);
/* Refuses more than one worker: RV_E_RANGE. */
enum rv_err preset_check_alone(const char *method, int workers, struct rv_errtext *et);

#endif
