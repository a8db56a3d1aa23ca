/* preset.c: see preset.h. */
#include "lab/methods/preset.h"

enum { UNCHOSEN = OUTER_nesterov };

void method_configure(struct lab_config *c) {
	const struct lab_method *m = c->method;
	if (m->prescribes_outer)
		c->run.outer = m->prescribed_outer;
	if (m->updates != UPDATES_WAITED)
		c->run.updates = m->updates;
	if (m->configure)
		m->configure(c);
}

enum rv_err method_check_outer(const struct lab_method *m, const struct run_config *c, enum outer_choice outer,
							   struct rv_errtext *et) {
	if (c->outer == (int)outer || c->outer == UNCHOSEN)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method %s has outer = %s: for outer = %s use --method diloco", m->name,
				   outer_facts[outer].name, outer_facts[c->outer].name);
}

static enum rv_err check_updates(const struct lab_method *m, const struct run_config *c, struct rv_errtext *et) {
	const struct run_config prescribed = {.updates = (int)m->updates};
	if (m->updates == UPDATES_WAITED || c->updates == prescribed.updates || !run_config_is_late(c))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "method %s has updates = %s: for updates = %s use --method diloco", m->name,
				   run_config_updates_name(&prescribed), run_config_updates_name(c));
}

enum rv_err method_check(const struct lab_method *m, const struct run_config *c, int workers, struct rv_errtext *et) {
	if (m->alone && workers != 1)
		return rv_fail(et, RV_E_RANGE, "method %s is of one worker: give --workers 1, or --method diloco for %d",
					   m->name, workers);
	if (m->no_prox && c->prox_mu != 0)
		return rv_fail(
			et, RV_E_INVALID,
			"prox-mu pulls to the shared weights of a round, and workers of method %s never leave them: give "
			"--prox-mu 0, or --method fedprox",
			m->name);
	if (m->prescribes_outer)
		RV_TRY(method_check_outer(m, c, m->prescribed_outer, et));
	RV_TRY(check_updates(m, c, et));
	return m->check ? m->check(c, workers, et) : RV_OK;
}
