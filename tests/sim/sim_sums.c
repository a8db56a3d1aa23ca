/* sim_sums.c: what final owners keep of the sums of rows, and show when a document asks for it, as
 * worker/session/disk.c and evidence.c. It outlives processes, and no fault of a disk touches it:
 * a final owner that has voted can show what it was given. */
#include "sim.h"

#include "base/assert.h"
#include "worker/audit/sums_image.h"

#include <stdlib.h>

void sums_keep(struct sim_worker *w) {
	struct sim_sums *k = &w->kept_sums;
	if (w->sim->opt.audit_chunks == 0 || w->reduce == NULL)
		return;
	struct blob **at = &k->of[w->reduce_round % SIM_SUMS_ROUNDS];
	blob_unref(*at);
	*at = sums_image_new(w->reduce, w->reduce_round, w->reduce_attempt);
	k->round[w->reduce_round % SIM_SUMS_ROUNDS] = w->reduce_round;
}

/* Returns true if it can be shown what `o` asks for. */
static bool find(const struct sim_worker *w, const struct audit_order *o, struct shown_sums *out) {
	const struct sim_sums *k = &w->kept_sums;
	const uint64_t at = o->round % SIM_SUMS_ROUNDS;
	return k->of[at] != NULL && k->round[at] == o->round && sums_image_shown(k->of[at], o->chunk, out) &&
		   out->attempt == o->attempt;
}

static void show(struct sim_worker *w, struct evidence *e) {
	const size_t cap = evidence_max_bytes(0) + SHOWN_SUMS_MAX_BYTES;
	uint8_t *body = sim_alloc(cap);
	struct rv_writer out = rv_writer_of(body, cap);
	evidence_encode(e, w->version, &out);
	RV_ASSERT(!out.failed);
	(void)control_client_show(w->control, body, rv_writer_len(&out));
	free(body);
}

void sums_show(struct sim *s, int host) {
	enum { EVERY_US = SIM_S / 2 };
	struct sim_worker *w = &s->workers[host];
	const struct sim_audits *a = &w->audits;
	const struct document *d = round_document(w->core);
	if (d == NULL || a->n == 0 || s->now_us < w->kept_sums.again_us || audits_hides_sums(s, host))
		return;
	struct evidence *e = sim_alloc(sizeof *e);
	for (int i = 0; i < a->n && !e->has_sums; i++) {
		const struct audit_order *o = &a->orders[(w->kept_sums.turn + i) % a->n];
		if (o->kind != AUDIT_SHOW || !find(w, o, &e->sums))
			continue;
		e->term = d->term;
		e->round = d->round;
		e->has_sums = true;
		show(w, e);
		w->kept_sums.turn = (w->kept_sums.turn + i + 1) % NET_MAX_AUDITS;
	}
	if (e->has_sums)
		w->kept_sums.again_us = s->now_us + EVERY_US;
	free(e);
}

void sums_release(struct sim_worker *w) {
	for (int i = 0; i < SIM_SUMS_ROUNDS; i++)
		blob_unref(w->kept_sums.of[i]);
}
