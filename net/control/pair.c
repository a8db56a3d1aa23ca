/* pair.c: the encoding of a request for pair tickets, and of its reply. */
#include "net/control/control.h"
#include "net/control/fields.h"

static const char REQUEST[] = "request for pair tickets", REPLY[] = "pair tickets";

void pair_request_encode(const struct pair_request *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_PAIR_REQUEST, version);
	rv_write_u64(w, m->peers);
}

enum rv_err pair_request_decode(const void *p, size_t n, struct pair_request *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct pair_request){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_PAIR_REQUEST, REQUEST, &version, et));
	out->peers = rv_read_u64(&r);
	return control_read_end(&r, REQUEST, et);
}

void pair_reply_encode(const struct pair_reply *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_PAIR_REPLY, version);
	rv_write_u64(w, m->term);
	rv_write_u64(w, m->round);
	rv_write_u8(w, m->n);
	for (int i = 0; i < m->n; i++) {
		rv_write_u32(w, m->tickets[i].peer);
		rv_write_bytes(w, m->tickets[i].signature, NET_SIG_BYTES);
	}
}

static enum rv_err read_tickets(struct rv_reader *r, struct pair_reply *out, struct rv_errtext *et) {
	out->n = rv_read_u8(r);
	if (out->n > NET_MAX_MEMBERS)
		return rv_fail(et, RV_E_INVALID, "%s: n = %u, at most %d", REPLY, out->n, (int)NET_MAX_MEMBERS);
	for (int i = 0; i < out->n; i++) {
		struct pair_ticket *t = &out->tickets[i];
		t->peer = rv_read_u32(r);
		rv_read_copy(r, t->signature, NET_SIG_BYTES);
		if (t->peer >= NET_MAX_MEMBERS || (i > 0 && t->peer <= out->tickets[i - 1].peer && rv_reader_ok(r)))
			return rv_fail(et, RV_E_INVALID, "%s: tickets[%d].peer = %u: must ascend and stay below %d", REPLY, i,
						   t->peer, (int)NET_MAX_MEMBERS);
	}
	return RV_OK;
}

enum rv_err pair_reply_decode(const void *p, size_t n, struct pair_reply *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct pair_reply){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_PAIR_REPLY, REPLY, &version, et));
	out->term = rv_read_u64(&r);
	out->round = rv_read_u64(&r);
	RV_TRY(read_tickets(&r, out, et));
	return control_read_end(&r, REPLY, et);
}
