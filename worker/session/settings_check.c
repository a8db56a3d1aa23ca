/* settings_check.c: whether the run can live with a worker's settings, looked at before they are
 * kept: one that is kept and refused would break the next start, too. */
#include "worker/session/internal.h"
#include "worker/session/session.h"

#include <stdlib.h>

/* Checks that the run fits what the person allows. What is free now does not matter: this worker
 * may have a part of it. */
static enum rv_err check_memory(const struct session *s, struct rv_errtext *et) {
	struct trainer_config c = {.run = &s->member.config, .device = s->opt->device, .threads = (int)s->opt->threads};
	struct device_choice device;
	RV_TRY(device_choose(c.device, &device, et));
	struct memory_room room = {.device = SIZE_MAX, .host = SIZE_MAX};
	memory_room_cap(&room, s->opt->max_memory, s->opt->gpu_memory);
	session_choose_savings_within(s, &device, &room, &c);
	return session_memory_fits(&c, &device, &room, et);
}

enum rv_err session_check_settings(const struct session *s, struct rv_errtext *et) {
	struct model_extent extent;
	struct session_disk_plan disk;
	struct global_config g;
	if (!s->member.joined)
		return RV_OK;
	RV_TRY(session_check_shard(s, &s->member.config, et));
	RV_TRY(session_global_of(&s->member.config, &extent, &g, et));
	RV_TRY(session_check_caps(s, &s->member.config, &g, et));
	RV_TRY(session_plan_disk(s, &s->member.config, &g, &disk, et));
	return check_memory(s, et);
}

enum rv_err session_check_kept(const struct worker_options *o, struct rv_errtext *et) {
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to check the settings");
	struct worker_options opt = *o;
	enum rv_err e = RV_OK;
	struct rv_hash accepted;
	s->opt = &opt;
	(void)terms_read(o->dir, &s->about, &accepted);
	if (membership_load(o->dir, NULL, &s->member, NULL) == RV_OK) { /* a fault is reported by the start */
		e = session_check_settings(s, et);
		membership_release(&s->member);
	}
	free(s);
	return e;
}
