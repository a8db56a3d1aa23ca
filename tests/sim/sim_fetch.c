/* sim_fetch.c: a worker that is behind takes bases and log entries from others, piece by piece. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1500 };

void fetch_cancel(struct sim_worker *w) {
	free(w->fetch.data);
	w->fetch = (struct sim_fetch){.kind = ROUND_NONE};
}

void fetch_start(struct sim *s, int host, const struct round_action *a) {
	struct sim_worker *w = &s->workers[host];
	fetch_cancel(w);
	if (a->donor < 0) {
		RV_ASSERT(a->type == ROUND_FETCH_BASE && a->round == 0);
		trainer_install(s, host, NULL);
		round_on_fetched(w->core, s->now_us, a->type, a->round, true);
		return;
	}
	const struct document *d = round_document(w->core);
	w->fetch = (struct sim_fetch){
		.kind = a->type, .round = a->round, .expect = a->expect, .donor = sim_host_of_key(d->members[a->donor].key)};
	sim_say(s, host, "fetches %s %llu from w%d", a->type == ROUND_FETCH_BASE ? "base" : "log",
			(unsigned long long)a->round, w->fetch.donor);
}

static uint8_t wire_kind(const struct sim_fetch *f) {
	return f->kind == ROUND_FETCH_BASE ? FRAME_FETCH_BASE : FRAME_FETCH_LOG;
}

void fetch_pump(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_fetch *f = &w->fetch;
	if (f->kind == ROUND_NONE || f->asked || w->links[f->donor].state != LINK_UP)
		return;
	struct frame_fetch m = {.kind = wire_kind(f), .round = f->round, .offset = f->n, .length = PIECE_BYTES};
	uint8_t body[FRAME_FETCH_BYTES];
	struct frame_header h = frame_fetch_encode(&m, 0, body);
	peers_queue(s, host, f->donor, &h, body, sizeof body, NULL, 0);
	f->asked = true;
}

void fetch_link_lost(struct sim *s, int host, int peer) {
	struct sim_fetch *f = &s->workers[host].fetch;
	if (f->kind != ROUND_NONE && f->donor == peer)
		f->asked = false;
}

/* ---- the donor ---- */

static void serve(struct sim *s, int host, int to, const struct frame_fetch *m) {
	enum file_kind kind = m->kind == FRAME_FETCH_BASE ? FILE_BASE : FILE_LOG;
	const struct sim_file *file = disk_find(&s->workers[host].disk, kind, m->round);
	if (file == NULL || m->offset > file->n) {
		struct frame_none none = {.kind = m->kind, .round = m->round, .offset = m->offset};
		uint8_t body[FRAME_NONE_BYTES];
		struct frame_header h = frame_none_encode(&none, 0, body);
		peers_queue(s, host, to, &h, body, sizeof body, NULL, 0);
		return;
	}
	size_t n = file->n - m->offset < m->length ? file->n - m->offset : m->length;
	struct frame_piece piece = {.kind = m->kind,
								.round = m->round,
								.offset = m->offset,
								.total_bytes = file->n,
								.data = file->data + m->offset,
								.data_bytes = (uint32_t)n};
	uint8_t body[FRAME_PIECE_BYTES];
	struct frame_header h = frame_piece_encode(&piece, 0, body);
	peers_queue(s, host, to, &h, body, sizeof body, piece.data, n);
}

/* ---- the joiner ---- */

static void finish(struct sim *s, int host, bool ok) {
	struct sim_worker *w = &s->workers[host];
	enum round_action_type kind = w->fetch.kind;
	uint64_t round = w->fetch.round;
	sim_say(s, host, ok ? "has fetched it" : "does not get it");
	fetch_cancel(w);
	round_on_fetched(w->core, s->now_us, kind, round, ok);
}

static void base_complete(struct sim *s, int host) {
	struct sim_fetch *f = &s->workers[host].fetch;
	struct rv_hash hash;
	if (!trainer_base_hash(s, f->data, f->n, &hash) || !rv_hash_equal(&hash, &f->expect)) {
		finish(s, host, false);
		return;
	}
	s->stats.fetched_bases++;
	trainer_install(s, host, f->data);
	finish(s, host, true);
}

/* On disk before it is applied: a restart must not replay an own vote that lost. */
static void log_durable(struct sim *s, int host, uint64_t tag, bool ok) {
	(void)tag;
	struct sim_worker *w = &s->workers[host];
	struct sim_fetch *f = &w->fetch;
	uint32_t attempt;
	struct rv_hash digest;
	if (!ok && f->kind == ROUND_FETCH_LOG && w->core != NULL) {
		finish(s, host, false);
		worker_turn(s, host);
		return;
	}
	const struct sim_file *file = disk_find(&w->disk, FILE_LOG, f->round);
	if (f->kind != ROUND_FETCH_LOG || f->total == 0 || f->n < f->total || file == NULL || w->core == NULL)
		return; /* cancelled meanwhile */
	const uint8_t *bytes = trainer_log_bytes(s, file->data, file->n, &attempt, &digest);
	RV_ASSERT(bytes != NULL);
	if (!rv_hash_equal(&digest, &f->expect))
		return;
	w->log = (struct sim_log){.held = true, .round = f->round, .digest = digest, .bytes = w->log.bytes};
	memcpy(w->log.bytes, bytes, s->payload);
	s->stats.fetched_logs++;
	finish(s, host, true);
	worker_turn(s, host);
}

static void log_complete(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_fetch *f = &w->fetch;
	struct sim_log log = {.round = f->round};
	uint32_t attempt;
	const uint8_t *bytes = trainer_log_bytes(s, f->data, f->n, &attempt, &log.digest);
	if (bytes != NULL)
		log.digest = global_digest(&w->global, f->round, bytes);
	if (bytes == NULL || !rv_hash_equal(&log.digest, &f->expect)) {
		finish(s, host, false); /* the donor's own vote of another attempt, perhaps */
		return;
	}
	log.bytes = f->data + (bytes - f->data);
	trainer_write_log(s, host, &log, log_durable);
}

static void on_piece(struct sim *s, int host, const struct frame_piece *m) {
	struct sim_worker *w = &s->workers[host];
	struct sim_fetch *f = &w->fetch;
	if (f->total != 0 && m->total_bytes != f->total) {
		finish(s, host, false); /* the file changed under our hands */
		return;
	}
	if (f->data == NULL)
		f->data = sim_alloc(m->total_bytes);
	f->total = m->total_bytes;
	memcpy(f->data + f->n, m->data, m->data_bytes);
	f->n += m->data_bytes;
	f->asked = false;
	round_on_fetch_progress(w->core, s->now_us);
	if (f->n < f->total)
		return;
	f->asked = true;
	if (f->kind == ROUND_FETCH_BASE)
		base_complete(s, host);
	else
		log_complete(s, host);
}

static bool answers(const struct sim_fetch *f, int from, uint8_t kind, uint64_t round, uint64_t offset) {
	return f->kind != ROUND_NONE && f->donor == from && f->asked && wire_kind(f) == kind && f->round == round &&
		   f->n == offset;
}

void fetch_receive(struct sim *s, int host, int from, const struct frame_header *h, const uint8_t *body) {
	const struct sim_fetch *f = &s->workers[host].fetch;
	struct frame_fetch fetch;
	struct frame_piece piece;
	struct frame_none none;
	struct rv_errtext et = {0};
	enum rv_err e = RV_OK;
	if (h->type == FRAME_FETCH) {
		if ((e = frame_fetch_decode(h, body, &fetch, &et)) == RV_OK)
			serve(s, host, from, &fetch);
	} else if (h->type == FRAME_PIECE) {
		if ((e = frame_piece_decode(h, body, &piece, &et)) == RV_OK &&
			answers(f, from, piece.kind, piece.round, piece.offset))
			on_piece(s, host, &piece);
	} else if ((e = frame_none_decode(h, body, &none, &et)) == RV_OK &&
			   answers(f, from, none.kind, none.round, none.offset)) {
		finish(s, host, false);
	}
	if (e != RV_OK)
		sim_fail(s, "w%d: %s", host, et.text);
}
