/* pair.c: the encoding of a request for pair tickets, and of its reply. */
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

static const char REQUEST[] = "request for pair tickets", REPLY[] = "pair tickets";

static const struct layout number[] = {{.kind = LAYOUT_PLAIN, .bytes = sizeof(uint32_t)}, LAYOUT_LAST};

static const struct layout request[] = {
	LAYOUT_COUNTED(struct pair_request, peers, n, number),
	LAYOUT_LAST,
};

void pair_request_encode(const struct pair_request *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_PAIR_REQUEST, version);
	layout_write(request, m, w);
}

enum rv_err pair_request_decode(const void *p, size_t n, struct pair_request *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	*out = (struct pair_request){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_PAIR_REQUEST, REQUEST, &out->version, et));
	RV_TRY(layout_read(request, &r, out, REQUEST, et));
	RV_TRY(control_read_end(&r, REQUEST, et));
	for (int i = 0; i < out->n; i++)
		RV_TRY(control_check_next(i > 0 ? &out->peers[i - 1] : NULL, out->peers[i], REQUEST, "peers", et));
	return RV_OK;
}

static const struct layout ticket[] = {
	LAYOUT_FIELD(PLAIN, struct pair_ticket, peer),
	LAYOUT_FIELD(PLAIN, struct pair_ticket, signature),
	LAYOUT_LAST,
};

static const struct layout reply[] = {
	LAYOUT_FIELD(PLAIN, struct pair_reply, term),
	LAYOUT_FIELD(PLAIN, struct pair_reply, round),
	LAYOUT_COUNTED(struct pair_reply, tickets, n, ticket),
	LAYOUT_LAST,
};

void pair_reply_encode(const struct pair_reply *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_PAIR_REPLY, version);
	layout_write(reply, m, w);
}

enum rv_err pair_reply_decode(const void *p, size_t n, struct pair_reply *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct pair_reply){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_PAIR_REPLY, REPLY, &version, et));
	RV_TRY(layout_read(reply, &r, out, REPLY, et));
	RV_TRY(control_read_end(&r, REPLY, et));
	for (int i = 0; i < out->n; i++)
		RV_TRY(
			control_check_next(i > 0 ? &out->tickets[i - 1].peer : NULL, out->tickets[i].peer, REPLY, "tickets", et));
	return RV_OK;
}
