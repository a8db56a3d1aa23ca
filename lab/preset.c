/* preset.c: see preset.h. */
#include "lab/preset.h"

#include <stdio.h>
#include <string.h>

static const char unchosen[] = "nesterov";

void preset_outer(struct lab_config *c, const char *outer) {
	snprintf(c->run.outer, sizeof c->run.outer, "%s", outer);
}

void preset_updates(struct lab_config *c, const char *updates) {
	snprintf(c->run.updates, sizeof c->run.updates, "%s", updates);
}

enum rv_err preset_check_outer(const char *method, const struct run_config *c, const char *outer,
							   struct rv_errtext *et) {
	if (strcmp(c->outer, outer) == 0 || strcmp(c->outer, unchosen) == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method %s has outer = %s: for outer = %s use --method diloco", method, outer,
				   c->outer);
}

enum rv_err preset_check_updates(const char *method, const struct run_config *c, const char *updates,
								 struct rv_errtext *et) {
	if (strcmp(c->updates, updates) == 0 || !run_config_is_late(c))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method %s has updates = %s: for updates = %s use --method diloco", method,
				   updates, c->updates);
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
