/* heldout.c: the held-out loss by round, as the members say that measure it: the first participant
 * of a round (docs/protocol.md). It decides nothing. */
#include "coordinator/service/internal.h"

#define KEPT_AS "heldout" /* in the store: the text of loss_curve_print */

enum rv_err service_load_heldout(struct service *s, struct rv_errtext *et) {
	char text[LOSS_CURVE_TEXT_BYTES] = "";
	struct rv_errtext why;
	s->heldout.claimed_by = NET_NO_MEMBER;
	RV_TRY(s->cfg.store->ops->get(s->cfg.store, KEPT_AS, text, sizeof text, et));
	if (loss_curve_parse(text, &s->heldout.curve, &why) != RV_OK)
		service_tell(s, RV_WARN, "heldout", "the held-out losses in the store are not shown: %s", why.text);
	return RV_OK;
}

static void keep(struct service *s) {
	char text[LOSS_CURVE_TEXT_BYTES];
	struct rv_errtext why = {0};
	loss_curve_print(&s->heldout.curve, text);
	if (s->cfg.store->ops->set(s->cfg.store, KEPT_AS, text, &why) != RV_OK)
		service_tell_operator(s, RV_WARN, "heldout", why.text,
							  "a held-out loss could not be stored: it is shown until the coordinator ends");
}

void service_note_first(struct service *s, const struct core_record *rec) {
	struct service_heldout *h = &s->heldout;
	for (int i = 0; i < rec->n_members; i++) {
		const int slot = core_find(s->core, rec->members[i]);
		if (slot >= 0 && core_view(s->core, (uint32_t)slot).place == 0)
			h->first[h->n_first++ % SERVICE_FIRSTS] =
				(struct service_first){.rounds = rec->round + 1, .member = rec->members[i]};
	}
}

/* Returns true if this member was to measure the loss after so many rounds. */
static bool was_first(const struct service_heldout *h, uint64_t rounds, uint32_t member) {
	bool was = false;
	for (uint64_t i = 0; i < h->n_first && i < SERVICE_FIRSTS; i++)
		was |= h->first[i].rounds == rounds && h->first[i].member == member;
	return was;
}

void service_take_heldout(struct service *s, uint32_t slot, const struct report *rep) {
	struct service_heldout *h = &s->heldout;
	const struct loss_curve *c = &h->curve;
	const bool is_new = c->seen == 0 || rep->heldout_round > c->last.round;
	if (rep->heldout_round == 0 || rep->term != core_document(s->core)->term || !is_new ||
		!was_first(h, rep->heldout_round, core_view(s->core, slot).member))
		return;
	loss_curve_add(&h->curve, rep->heldout_round, (double)rep->heldout_loss);
	h->claimed_by = core_view(s->core, slot).member;
	keep(s);
}

void service_rewind_heldout(struct service *s, uint64_t round) {
	s->heldout.n_first = 0;
	if (s->heldout.curve.seen == 0 || s->heldout.curve.last.round <= round)
		return;
	loss_curve_rewind(&s->heldout.curve, round);
	s->heldout.claimed_by = NET_NO_MEMBER;
	keep(s);
}

void service_heldout_text(const struct service *s, char out[LOSS_CURVE_TEXT_BYTES]) {
	loss_curve_print(&s->heldout.curve, out);
}

json_t *service_heldout_json(const struct service *s) {
	const struct loss_point *last = &s->heldout.curve.last;
	if (s->heldout.curve.seen == 0)
		return json_null();
	return json_pack("{s:I, s:f, s:o}", "round", (json_int_t)last->round, "loss", last->loss, "claimed_by",
					 s->heldout.claimed_by != NET_NO_MEMBER ? json_integer(s->heldout.claimed_by) : json_null());
}
