/* preset.h: for methods that are DiLoCo's round with settings of their own: a name from the literature, and an error
 * where what was asked for contradicts it. An outer optimizer that was not chosen is the default, nesterov: it gives
 * way. */
#ifndef RV_LAB_PRESET_H
#define RV_LAB_PRESET_H

#include "lab/run/lab_run.h"

void preset_outer(struct lab_config *c, enum outer_choice outer);
void preset_updates(struct lab_config *c, enum run_updates updates);
/* RV_E_INVALID: c->outer is another than the method's and not the default. */
enum rv_err preset_check_outer(const char *method, const struct run_config *c, enum outer_choice outer,
							   struct rv_errtext *et);
/* RV_E_INVALID: c->updates is another than the method's and not the default. */
enum rv_err preset_check_updates(const char *method, const struct run_config *c, enum run_updates updates,
								 struct rv_errtext *et);
/* RV_E_INVALID: prox-mu, of a method whose workers never leave the shared weights. */
enum rv_err preset_check_no_prox(const char *method, const struct run_config *c, struct rv_errtext *et);
/* RV_E_RANGE: the method is of one worker. */
enum rv_err preset_check_alone(const char *method, int workers, struct rv_errtext *et);

#endif
