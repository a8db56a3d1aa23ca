/* preset.c: see preset.h. */
#include "lab/methods/preset.h"

enum { UNCHOSEN = OUTER_nesterov };

void preset_outer(struct lab_config *c, enum outer_choice outer) {
	c->run.outer = outer;
}

void preset_updates(struct lab_config *c, enum run_updates updates) {
	c->run.updates = updates;
}

enum rv_err preset_check_outer(const char *method, const struct run_config *c, enum outer_choice outer,
							   struct rv_errtext *et) {
	if (c->outer == (int)outer || c->outer == UNCHOSEN)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method %s has outer = %s: for outer = %s use --method diloco", method,
				   outer_facts[outer].name, outer_facts[c->outer].name);
}

enum rv_err preset_check_updates(const char *method, const struct run_config *c, enum run_updates updates,
								 struct rv_errtext *et) {
	if (c->updates == (int)updates || !run_config_is_late(c))
		return RV_OK;
	const struct run_config prescribed = {.updates = (int)updates};
	return rv_fail(et, RV_E_INVALID, "method %s has updates = %s: for updates = %s use --method diloco", method,
				   run_config_updates_name(&prescribed), run_config_updates_name(c));
}

enum rv_err preset_check_no_prox(const char *method, const struct run_config *c, struct rv_errtext *et) {
	if (c->prox_mu == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "prox-mu pulls to the shared weights of a round, and workers of method %s never leave them: give "
				   "--prox-mu 0, or --method fedprox",
				   method);
}

enum rv_err preset_check_alone(const char *method, int workers, struct rv_errtext *et) {
	if (workers == 1)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "method %s is of one worker: give --workers 1, or --method diloco for %d", method,
				   workers);
}
