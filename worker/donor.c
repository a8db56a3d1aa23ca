/* donor.c: a small queue per peer, one open file, one buffer. */
#include "worker/donor.h"

#include "base/assert.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct waiting {
	struct frame_fetch at[DONOR_MAX_WAITING];
	int first, n;
};

struct donor {
	const struct statestore *store;
	uint64_t run_tag;
	struct waiting waiting[NET_MAX_MEMBERS];
	/* The file read last; -1: none. */
	int fd;
	uint8_t kind;
	uint64_t round, total_bytes;
	uint64_t served_bytes;
	uint8_t body[FRAME_PIECE_BYTES];
	uint8_t data[NET_MAX_FETCH_BYTES];
};

enum rv_err donor_new(const struct statestore *store, uint64_t run_tag, struct donor **out, struct rv_errtext *et) {
	struct donor *d = calloc(1, sizeof *d);
	if (!d)
		return rv_fail(et, RV_E_NOMEM, "no memory for serving state to peers");
	d->store = store;
	d->run_tag = run_tag;
	d->fd = -1;
	*out = d;
	return RV_OK;
}

static void close_file(struct donor *d) {
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

void donor_free(struct donor *d) {
	if (!d)
		return;
	close_file(d);
	free(d);
}

enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et) {
	struct frame_fetch f;
	RV_ASSERT(member < NET_MAX_MEMBERS);
	RV_TRY(frame_fetch_decode(h, body, &f, et));
	struct waiting *w = &d->waiting[member];
	if (w->n == DONOR_MAX_WAITING)
		return rv_fail(et, RV_E_PROTOCOL, "more than %d FETCHes before the first was answered", DONOR_MAX_WAITING);
	w->at[(w->first + w->n++) % DONOR_MAX_WAITING] = f;
	return RV_OK;
}

void donor_link_down(struct donor *d, uint32_t member) {
	d->waiting[member] = (struct waiting){0};
}

/* ---- answers --------------------------------------------------------------------------------------------------------
 */

static bool open_file(struct donor *d, const struct frame_fetch *f) {
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	/* A transfer begins with the file as it is now: a later attempt may have replaced it. */
	if (d->fd >= 0 && d->kind == f->kind && d->round == f->round && f->offset != 0)
		return true;
	close_file(d);
	if (f->kind == FRAME_FETCH_INFO)
		return false;
	statestore_path(d->store, f->kind == FRAME_FETCH_BASE ? STATE_FILE_BASE : STATE_FILE_LOG, f->round, path);
	d->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (d->fd < 0)
		return false;
	if (fstat(d->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close_file(d);
		return false;
	}
	d->kind = f->kind;
	d->round = f->round;
	d->total_bytes = (uint64_t)st.st_size;
	return true;
}

/* Reads what was asked for; false when the file cannot give it. */
static bool read_piece(struct donor *d, const struct frame_fetch *f, uint32_t *n) {
	if (!open_file(d, f) || f->offset > d->total_bytes)
		return false;
	uint64_t left = d->total_bytes - f->offset;
	*n = f->length < left ? f->length : (uint32_t)left;
	for (uint32_t done = 0; done < *n;) {
		ssize_t got = pread(d->fd, d->data + done, *n - done, (off_t)(f->offset + done));
		if (got <= 0)
			return false;
		done += (uint32_t)got;
	}
	return true;
}

static void answer_piece(struct donor *d, const struct frame_fetch *f, uint32_t n, struct peers_message *out) {
	struct frame_piece piece = {.kind = f->kind,
								.round = f->round,
								.offset = f->offset,
								.total_bytes = d->total_bytes,
								.data = d->data,
								.data_bytes = n};
	out->header = frame_piece_encode(&piece, d->run_tag, d->body);
	out->part[0] = d->body;
	out->part_bytes[0] = FRAME_PIECE_BYTES;
	out->part[1] = d->data;
	out->part_bytes[1] = n;
}

static void answer_none(struct donor *d, const struct frame_fetch *f, struct peers_message *out) {
	struct frame_none none = {.kind = f->kind, .round = f->round, .offset = f->offset};
	out->header = frame_none_encode(&none, d->run_tag, d->body);
	out->part[0] = d->body;
	out->part_bytes[0] = FRAME_NONE_BYTES;
}

bool donor_send(struct donor *d, uint32_t member, struct peers_message *out) {
	struct waiting *w = &d->waiting[member];
	uint32_t n = 0;
	if (w->n == 0)
		return false;
	struct frame_fetch f = w->at[w->first];
	w->first = (w->first + 1) % DONOR_MAX_WAITING;
	w->n--;
	*out = (struct peers_message){0};
	if (read_piece(d, &f, &n)) {
		answer_piece(d, &f, n, out);
	} else {
		close_file(d);
		answer_none(d, &f, out);
	}
	d->served_bytes += FRAME_HEADER_BYTES + out->part_bytes[0] + out->part_bytes[1];
	return true;
}

uint64_t donor_bytes(const struct donor *d) {
	return d->served_bytes;
}

bool donor_busy(const struct donor *d) {
	for (int m = 0; m < NET_MAX_MEMBERS; m++)
		if (d->waiting[m].n > 0)
			return true;
	return false;
}
