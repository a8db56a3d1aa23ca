/* fetcher.c: a window of requests to one donor, answers in order. */
#include "worker/fetcher.h"

#include <stdlib.h>
#include <string.h>

struct fetcher {
	uint64_t run_tag;
	struct fetcher_owner owner;
	bool active;
	uint8_t kind;
	uint64_t round, total_bytes;
	uint32_t donor;
	uint64_t received, requested; /* bytes from the start */
	struct blob *file;
	uint8_t body[FRAME_FETCH_BYTES];
};

enum rv_err fetcher_new(uint64_t run_tag, const struct fetcher_owner *owner, struct fetcher **out,
						struct rv_errtext *et) {
	struct fetcher *f = calloc(1, sizeof *f);
	if (!f)
		return rv_fail(et, RV_E_NOMEM, "no memory for fetching state");
	f->run_tag = run_tag;
	f->owner = *owner;
	*out = f;
	return RV_OK;
}

void fetcher_discard(struct fetcher *f) {
	blob_unref(f->file);
	f->file = NULL;
	f->active = false;
	f->received = f->requested = 0;
}

void fetcher_free(struct fetcher *f) {
	if (!f)
		return;
	fetcher_discard(f);
	free(f);
}

enum rv_err fetcher_start(struct fetcher *f, uint8_t kind, uint64_t round, uint64_t total_bytes, uint32_t donor,
						  struct rv_errtext *et) {
	bool same_file = f->file && f->kind == kind && f->round == round;
	if (!same_file) {
		fetcher_discard(f);
		f->file = blob_new(total_bytes);
		if (!f->file)
			return rv_fail(et, RV_E_NOMEM, "no memory to fetch %llu bytes of state", (unsigned long long)total_bytes);
	}
	bool same_donor = same_file && f->active && f->donor == donor;
	f->active = true;
	f->kind = kind;
	f->round = round;
	f->total_bytes = total_bytes;
	f->donor = donor;
	if (!same_donor)
		f->requested = f->received;
	return RV_OK;
}

void fetcher_cancel(struct fetcher *f) {
	f->active = false;
	f->requested = f->received;
}

static void fail_donor(struct fetcher *f, const char *why) {
	f->active = false;
	f->requested = f->received;
	f->owner.on_failed(f->owner.ctx, f->kind, f->round, why);
}

/* ---- answers --------------------------------------------------------------------------------------------------------
 */

static bool expected_from(const struct fetcher *f, uint32_t member, uint8_t kind, uint64_t round) {
	return f->active && member == f->donor && kind == f->kind && round == f->round && f->requested > f->received;
}

static void complete(struct fetcher *f) {
	struct blob *file = f->file;
	f->file = NULL;
	fetcher_discard(f);
	f->owner.on_file(f->owner.ctx, f->kind, f->round, file);
}

static enum rv_err receive_piece(struct fetcher *f, uint32_t member, const struct frame_header *h, const uint8_t *body,
								 struct rv_errtext *et) {
	struct frame_piece p;
	RV_TRY(frame_piece_decode(h, body, &p, et));
	if (!expected_from(f, member, p.kind, p.round) || p.offset != f->received)
		return RV_OK; /* asked for before the donor changed or the link broke */
	if (p.total_bytes > f->total_bytes) {
		fail_donor(f, "its file is longer than this run's can be");
		return RV_OK;
	}
	f->total_bytes = f->file->bytes = p.total_bytes; /* a log is as short as it could be packed */
	if (p.data_bytes == 0 || p.data_bytes > f->total_bytes - p.offset)
		return rv_fail(et, RV_E_PROTOCOL, "a piece of %u bytes at %llu of a file of %llu", p.data_bytes,
					   (unsigned long long)p.offset, (unsigned long long)f->total_bytes);
	memcpy(f->file->data + p.offset, p.data, p.data_bytes);
	f->received += p.data_bytes;
	f->owner.on_progress(f->owner.ctx);
	if (f->received == f->total_bytes)
		complete(f);
	return RV_OK;
}

enum rv_err fetcher_receive(struct fetcher *f, uint32_t member, const struct frame_header *h, const uint8_t *body,
							struct rv_errtext *et) {
	struct frame_none none;
	if (h->type == FRAME_PIECE)
		return receive_piece(f, member, h, body, et);
	RV_TRY(frame_none_decode(h, body, &none, et));
	if (expected_from(f, member, none.kind, none.round))
		fail_donor(f, "it does not have it");
	return RV_OK;
}

/* ---- requests -------------------------------------------------------------------------------------------------------
 */

bool fetcher_send(struct fetcher *f, uint32_t member, struct peers_message *out) {
	uint64_t window = (uint64_t)FETCHER_WINDOW * NET_MAX_FETCH_BYTES;
	if (!f->active || member != f->donor || f->requested == f->total_bytes || f->requested - f->received >= window)
		return false;
	uint64_t left = f->total_bytes - f->requested;
	struct frame_fetch fetch = {.kind = f->kind,
								.round = f->round,
								.offset = f->requested,
								.length = left < NET_MAX_FETCH_BYTES ? (uint32_t)left : NET_MAX_FETCH_BYTES};
	*out = (struct peers_message){0};
	out->header = frame_fetch_encode(&fetch, f->run_tag, f->body);
	out->part[0] = f->body;
	out->part_bytes[0] = FRAME_FETCH_BYTES;
	f->requested += fetch.length;
	return true;
}

void fetcher_link_down(struct fetcher *f, uint32_t member, bool fatal) {
	if (!f->active || member != f->donor)
		return;
	f->requested = f->received;
	if (fatal)
		fail_donor(f, "the link to it broke");
}

void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total) {
	*done = f->received;
	*total = f->active ? f->total_bytes : 0;
}
