/* delivery.c: see delivery.h. */
#include "coordinator/service/delivery.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* What the member in a slot was sent last. */
struct sent {
	uint32_t version;      /* 0: nothing */
	uint64_t seq;          /* its number */
	uint64_t compared_seq; /* the latest document says nothing else */
	uint8_t signature[NET_SIG_BYTES];
	struct patch_base base; /* it is the base's last */
};

struct delivery {
	const struct identity *run;
	struct patch_tools tools;
	uint8_t encoded[NET_MAX_DOCUMENT_BYTES];
	uint8_t reply[IDENTITY_SIGNED_MAX_BYTES];
	int slots;
	struct sent sent[]; /* by slot */
};

enum { SEQ_AT = 8 + NET_RUN_ID_BYTES, SEQ_BYTES = 8 };

enum rv_err delivery_new(const struct identity *run, int slots, struct delivery **out, struct rv_errtext *et) {
	struct delivery *d = calloc(1, sizeof *d + (size_t)slots * sizeof d->sent[0]);
	*out = d;
	if (d == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the members' documents");
	d->run = run;
	d->slots = slots;
	return RV_OK;
}

void delivery_free(struct delivery *d) {
	if (d == NULL)
		return;
	for (int i = 0; i < d->slots; i++)
		patch_base_release(&d->sent[i].base);
	patch_tools_release(&d->tools);
	free(d);
}

void delivery_forget(struct delivery *d, uint32_t slot) {
	RV_ASSERT(slot < (uint32_t)d->slots);
	patch_base_release(&d->sent[slot].base);
	d->sent[slot] = (struct sent){0};
}

/* Returns true if the member waits for a document after the one that it was sent last. */
static bool follows(const struct sent *s, const struct document_wish *w) {
	return !w->any && s->version == w->version && w->after == s->seq;
}

bool delivery_needs(const struct delivery *d, uint32_t slot, const struct document_wish *w, uint64_t seq) {
	const struct sent *s = &d->sent[slot];
	if (follows(s, w))
		return s->compared_seq != seq;
	return w->any || seq > w->after;
}

/* Returns true if the encoded document says the same as the last one that was sent. */
static bool says_the_same(const struct sent *s, const uint8_t *encoded, size_t n) {
	const uint8_t *last = s->base.bytes + s->base.before;
	enum { REST_AT = SEQ_AT + SEQ_BYTES };
	return s->base.last == n && memcmp(last, encoded, SEQ_AT) == 0 &&
		   memcmp(last + REST_AT, encoded + REST_AT, n - REST_AT) == 0;
}

static size_t encode(struct delivery *d, const struct document *document, uint32_t version) {
	struct rv_writer w = rv_writer_of(d->encoded, sizeof d->encoded);
	document_encode(document, version, &w);
	RV_ASSERT(!w.failed);
	return rv_writer_len(&w);
}

/* Makes a patch of the base in `reply`, if the member has that base and it pays. */
static bool make_patch(struct delivery *d, const struct sent *s, const struct document_wish *w, size_t n,
					   struct document_reply *out) {
	size_t made = 0;
	if (!w->has_base || s->version != w->version || w->have != s->seq ||
		patch_make(&d->tools, &s->base, d->encoded, n, d->reply + NET_SIG_BYTES, n, &made, NULL) != RV_OK)
		return false;
	*out = (struct document_reply){.bytes = d->reply, .n = NET_SIG_BYTES + made, .is_patch = true};
	return true;
}

/* Answers with the encoded document and its signature, which is in `reply`; keeps both. */
static enum rv_err send(struct delivery *d, struct sent *s, const struct document_wish *w, size_t n,
						struct document_reply *out, struct rv_errtext *et) {
	bool is_patch = make_patch(d, s, w, n, out);
	memcpy(s->signature, d->reply, NET_SIG_BYTES);
	s->version = 0; /* in case of a fault */
	RV_TRY((is_patch ? patch_base_follow : patch_base_begin)(&s->base, d->encoded, n, et));
	s->version = w->version;
	if (is_patch)
		return RV_OK;
	memcpy(d->reply + NET_SIG_BYTES, d->encoded, n);
	*out = (struct document_reply){.bytes = d->reply, .n = NET_SIG_BYTES + n};
	return RV_OK;
}

/* Sends the last one again, whole: another request has taken the reply with it, or never got it. */
static void send_again(struct delivery *d, struct sent *s, struct document_reply *out) {
	size_t n = s->base.last;
	memcpy(d->reply, s->signature, NET_SIG_BYTES);
	memcpy(d->reply + NET_SIG_BYTES, s->base.bytes + s->base.before, n);
	memmove(s->base.bytes, s->base.bytes + s->base.before, n);
	s->base.before = 0;
	*out = (struct document_reply){.bytes = d->reply, .n = NET_SIG_BYTES + n};
}

enum rv_err delivery_make(struct delivery *d, uint32_t slot, const struct document_wish *w,
						  const struct document *document, struct document_reply *out, struct rv_errtext *et) {
	RV_ASSERT(slot < (uint32_t)d->slots && w->version > 0);
	struct sent *s = &d->sent[slot];
	*out = (struct document_reply){0};
	if (s->version == w->version && s->seq == document->seq) {
		send_again(d, s, out);
		return RV_OK;
	}
	size_t n = encode(d, document, w->version);
	bool same = follows(s, w) && says_the_same(s, d->encoded, n);
	s->compared_seq = document->seq;
	if (same)
		return RV_OK;
	RV_TRY(signed_make(d->run, IDENTITY_DOCUMENT_DOMAIN, d->encoded, n, d->reply, et));
	RV_TRY(send(d, s, w, n, out, et));
	s->seq = document->seq;
	return RV_OK;
}
