/* about.c: what the operator says of the run, for those who may join and for the dashboard. */
#include "coordinator/service/internal.h"

#include <inttypes.h>

enum { ROUNDS_AVERAGED = 8 };

enum rv_err service_load_about(struct service *s, struct rv_errtext *et) {
	char text[RUN_ABOUT_BYTES] = "";
	RV_TRY(s->cfg.store->ops->get(s->cfg.store, SERVICE_ABOUT, text, sizeof text, et));
	run_about_read(text, &s->about);
	return RV_OK;
}

struct run_about service_about(const struct service *s) {
	struct run_about about = s->about;
	int n = s->n_history < ROUNDS_AVERAGED ? s->n_history : ROUNDS_AVERAGED;
	double sum_s = 0;
	for (int i = 0; i < n; i++)
		sum_s += (double)s->history[s->n_history - 1 - i].duration_us / 1e6;
	about.round_s = n > 0 ? sum_s / n : 0;
	return about;
}

json_t *service_about_json(const struct service *s) {
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", s->about.name, "purpose", s->about.purpose, "operator",
					 s->about.operator_name, "text_license", s->about.text_license, "model_license",
					 s->about.model_license, "model_at", s->about.model_at);
}

const struct address *service_advertised(const struct service *s) {
	return &s->cfg.advertise;
}

enum rv_err service_set_model_at(struct service *s, const char *place, struct rv_errtext *et) {
	struct run_about about = s->about;
	char lines[RUN_ABOUT_BYTES];
	(void)snprintf(about.model_at, sizeof about.model_at, "%s", place);
	RV_TRY(run_about_check(&about, et));
	run_about_print(&about, lines);
	RV_TRY(s->cfg.store->ops->set(s->cfg.store, SERVICE_ABOUT, lines, et));
	s->about = about;
	return RV_OK;
}

enum rv_err service_check_open(const struct service *s, struct rv_errtext *et) {
	const struct document *d = core_document(s->core);
	char where[RUN_ABOUT_MODEL_BYTES];
	if (d->phase != RUN_DONE)
		return RV_OK;
	run_about_where(&s->about, where);
	return rv_fail(et, RV_E_OVER,
				   "join: the run has ended: all %" PRIu64 " rounds are done, and it takes no more computers. %s",
				   d->final_round, where);
}
