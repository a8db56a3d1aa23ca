/* pair_tickets.c: POST /v1/pair-tickets: two live members may meet through a relay
 * (docs/decisions/0038). */
#include "coordinator/service/internal.h"

#include <string.h>

static struct pair_end end_of(const struct core_member_view *v) {
	struct pair_end e = {.member = v->member};
	memcpy(e.key, v->key, NET_KEY_BYTES);
	return e;
}

static bool is_live(const struct core_member_view *v) {
	return v->alive && !v->banned;
}

/* Adds a ticket for `self` and each of the requested peers that is live. */
static void add_tickets(const struct service *s, const struct core_member_view *self, const struct pair_request *rq,
						struct pair_reply *out) {
	const struct pair_end own = end_of(self);
	for (int i = 0; i < rq->n; i++) {
		int slot = core_find(s->core, rq->peers[i]);
		if (slot < 0 || (uint32_t)slot == self->slot)
			continue;
		const struct core_member_view v = core_view(s->core, (uint32_t)slot);
		const struct pair_end peer = end_of(&v);
		if (!is_live(&v))
			continue;
		struct pair_ticket *t = &out->tickets[out->n++];
		t->peer = peer.member;
		pair_ticket_sign(s->cfg.serving, s->cfg.run_id, out->term, out->round, &own, &peer, t->signature);
	}
}

enum rv_err service_pair_tickets(const struct service *s, const uint8_t key[NET_KEY_BYTES], const void *body, size_t n,
								 struct rv_writer *reply, struct rv_errtext *et) {
	struct pair_request rq;
	const struct document *d = core_document(s->core);
	struct pair_reply out = {.term = d->term, .round = d->round};
	RV_TRY(pair_request_decode(body, n, &rq, et));
	int slot = service_find_member(s, key);
	if (slot < 0)
		return rv_fail(et, RV_E_AUTH, "pair-tickets: the key is no member's, or the member is banned");
	const struct core_member_view self = core_view(s->core, (uint32_t)slot);
	if (is_live(&self))
		add_tickets(s, &self, &rq, &out);
	pair_reply_encode(&out, rq.version, reply);
	return RV_OK;
}

const struct banned *service_banned(const struct service *s) {
	return &core_document(s->core)->banned;
}
