/* sim_fetch.c: the platform around worker/fetch_core: a worker that is behind takes snapshots and log entries from others,
 * piece by piece. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 1500, STALL_US = 2 * SIM_S };

/* ---- the core ---- */

static void drop(struct sim_fetch *f) {
	free(f->payload);
	f->payload = NULL;
	f->complete = f->wanted = f->opening = false;
}

void fetch_end(struct sim_worker *w) {
	drop(&w->fetch);
	free(w->fetch.core);
	w->fetch.core = NULL;
}

static uint32_t member_of(const struct sim *s, int host) {
	return s->oracle.member_of[host];
}

static void tell_core(struct sim *s, int host, int peer) {
	struct sim_worker *w = &s->workers[host];
	uint32_t member = member_of(s, peer);
	if (w->fetch.core == NULL || member >= NET_MAX_MEMBERS)
		return;
	if (w->links[peer].up)
		fetch_core_link_up(w->fetch.core, s->now_us, member);
	else
		fetch_core_link_down(w->fetch.core, s->now_us, member);
}

static void open_core(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct fetch_core_config cfg = {.global = &s->global_config, .self_member = w->member, .stall_us = STALL_US};
	if (w->fetch.core != NULL)
		return;
	w->fetch.core = fetch_core_init(sim_alloc(fetch_core_bytes(&cfg)), &cfg, s->now_us);
	for (int peer = 0; peer < s->opt.n_workers; peer++)
		tell_core(s, host, peer);
}

void fetch_link_changed(struct sim *s, int host, int peer) {
	struct sim_link *l = &s->workers[host].links[peer];
	l->n_asked = l->forgotten = 0; /* what the peer had asked for on the former one */
	s->workers[host].askers &= ~(UINT64_C(1) << peer);
	l->sent = 0;
	tell_core(s, host, peer);
}

/* ---- what is wanted ---- */

static const struct sim_file *own_file(const struct sim_worker *w) {
	const struct state_id *id = &w->fetch.id;
	const struct sim_file *snapshot = disk_find(&w->disk, FILE_SNAPSHOT, id->round);
	if (id->kind == STATE_KIND_LOG)
		return disk_find(&w->disk, FILE_LOG, id->round);
	return snapshot != NULL ? snapshot : disk_find(&w->disk, FILE_PART, id->round);
}

/* The core has what it waited for: nothing is wanted any more. */
static void hand_over(struct sim *s, int host, const uint8_t *payload, const char *warning) {
	struct sim_worker *w = &s->workers[host];
	const struct state_id id = w->fetch.id;
	uint8_t *snapshot = NULL;
	struct blob *log = NULL;
	size_t n;
	if (id.kind == STATE_KIND_SNAPSHOT) {
		snapshot = files_snapshot_of(s, &id, payload, &n);
	} else {
		log = blob_new(sim_payload(s, id.round));
		RV_ASSERT(log != NULL);
		memcpy(log->data, payload, log->bytes);
	}
	fetch_want(s, host, NULL);
	session_core_on_fetched(w->session, s->now_us, &id, snapshot, log, warning);
	blob_unref(log);
}

/* As the real fetcher does: what the document names is right wherever it is found. */
bool fetch_take_own(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct global_config *g = &s->global_config;
	const struct state_id *id = &w->fetch.id;
	const struct sim_file *file = own_file(w);
	if (file == NULL)
		return false;
	const uint8_t *payload = file->data + file->n - state_payload_bytes(g, id->kind, id->round);
	struct rv_hash *manifest = sim_alloc(state_manifest_hashes(g, id->kind, id->round) * sizeof *manifest);
	state_manifest_of(g, id->kind, id->round, payload, manifest);
	bool named = state_manifest_check(g, id, manifest, NULL) == RV_OK;
	free(manifest);
	if (!named)
		return false;
	s->stats.own_files++;
	sim_say(s, host, "has %s %llu itself", id->kind == STATE_KIND_SNAPSHOT ? "snapshot" : "log",
			(unsigned long long)id->round);
	hand_over(s, host, payload, "");
	return true;
}

void fetch_ask(struct sim *s, int host) {
	struct sim_fetch *f = &s->workers[host].fetch;
	if (f->opening)
		fetch_core_look(f->core, f->slot, false);
	f->opening = false;
}

void fetch_want(struct sim *s, int host, const struct state_id *id) {
	struct sim_worker *w = &s->workers[host];
	struct sim_fetch *f = &w->fetch;
	int slot;
	drop(f);
	f->number++;
	if (f->core != NULL)
		fetch_core_want(f->core, s->now_us, NULL, 0, &slot); /* the same one again may have been of no use */
	if (id == NULL)
		return;
	open_core(s, host);
	f->wanted = true;
	f->id = *id;
	f->payload = sim_alloc(state_payload_bytes(&s->global_config, id->kind, id->round));
	fetch_core_want(f->core, s->now_us, id, 1, &f->slot);
	f->opening = id->kind == STATE_KIND_SNAPSHOT;
	fetch_core_look(f->core, f->slot, f->opening);
	store_open_fetch(s, host);
}

bool fetch_nowhere(const struct sim *s, const struct sim_worker *w) {
	const struct sim_fetch *f = &w->fetch;
	(void)s;
	return f->wanted && !fetch_core_complete(f->core, f->slot) && fetch_core_nowhere(f->core, f->slot);
}

void fetch_pump(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct document *d = round_document(w->core);
	uint64_t donors = 0;
	if (w->fetch.core == NULL || d == NULL)
		return;
	for (int i = 0; i < d->n_members; i++)
		donors |= UINT64_C(1) << d->members[i].member;
	fetch_core_allow(w->fetch.core, s->now_us, donors);
	fetch_core_tick(w->fetch.core, s->now_us);
	for (int peer = 0; peer < s->opt.n_workers; peer++) {
		struct frame_fetch m;
		while (peer != host && w->links[peer].up && member_of(s, peer) < NET_MAX_MEMBERS &&
			   peers_has_room(s, host, peer) && fetch_core_send(w->fetch.core, s->now_us, member_of(s, peer), &m)) {
			uint8_t body[FRAME_FETCH_BYTES];
			struct frame_header h = frame_fetch_encode(&m, 0, body);
			peers_queue(s, host, peer, &h, body, sizeof body, NULL, 0);
		}
	}
}

int64_t fetch_deadline_us(const struct sim_worker *w) {
	return w->fetch.core != NULL ? fetch_core_deadline_us(w->fetch.core) : INT64_MAX;
}

/* ---- the donor ---- */

/* All of what was asked for, in memory of its own; NULL: it does not have it. */
static uint8_t *asked_bytes(struct sim *s, int host, const struct frame_fetch *m, uint32_t *n) {
	const struct global_config *g = &s->global_config;
	enum state_kind kind = (enum state_kind)m->kind;
	const struct sim_file *file =
		disk_find(&s->workers[host].disk, kind == STATE_KIND_SNAPSHOT ? FILE_SNAPSHOT : FILE_LOG, m->round);
	size_t bytes = 0, at = 0;
	if (file == NULL || (m->part == FRAME_PART_PIECE ? m->index >= state_pieces(g, kind, m->round) : m->index != 0))
		return NULL;
	const uint8_t *payload = file->data + file->n - state_payload_bytes(g, kind, m->round);
	if (m->part == FRAME_PART_PIECE)
		at = state_piece_at(g, kind, m->round, m->index, &bytes);
	else
		bytes = state_manifest_hashes(g, kind, m->round) * RV_HASH_BYTES;
	uint8_t *out = sim_alloc(bytes);
	if (m->part == FRAME_PART_PIECE)
		memcpy(out, payload + at, bytes);
	else
		state_manifest_of(g, kind, m->round, payload, (struct rv_hash *)(void *)out);
	*n = (uint32_t)bytes;
	if (host == s->liar && m->part == FRAME_PART_PIECE && sim_chance(s, host, LUCK_WORK, 0.3)) {
		out[bytes / 2] ^= 1;
		s->stats.faults[FAULT_LIAR]++;
	}
	return out;
}

static void serve_slice(struct sim *s, int host, int to) {
	struct sim_link *l = &s->workers[host].links[to];
	struct frame_piece p = {.of = l->asked[0], .offset = l->sent};
	uint8_t body[FRAME_PIECE_BYTES];
	uint8_t *bytes = asked_bytes(s, host, &p.of, &p.total);
	struct frame_header h;
	bool done = true;
	if (bytes == NULL || l->sent >= p.total || l->forgotten > 0) {
		h = frame_none_encode(&p.of, 0, body);
		peers_queue(s, host, to, &h, body, FRAME_NONE_BYTES, NULL, 0);
	} else {
		s->workers[host].given_bytes += FRAME_HEADER_BYTES;
		p.data = bytes + l->sent;
		p.data_bytes = p.total - l->sent < SLICE_BYTES ? p.total - l->sent : SLICE_BYTES;
		h = frame_piece_encode(&p, 0, body);
		peers_queue(s, host, to, &h, body, sizeof body, p.data, p.data_bytes);
		l->sent += p.data_bytes;
		done = l->sent == p.total;
	}
	free(bytes);
	if (!done)
		return;
	l->sent = 0;
	l->forgotten -= l->forgotten > 0;
	memmove(l->asked, l->asked + 1, (size_t)--l->n_asked * sizeof l->asked[0]);
}

void fetch_serve(struct sim *s, int host, int to) {
	struct sim_link *l = &s->workers[host].links[to];
	while (l->n_asked > 0 && l->up && peers_has_room(s, host, to))
		serve_slice(s, host, to);
}

/* ---- the joiner ---- */

void fetch_deliver(struct sim *s, int host, bool ok) {
	struct sim_worker *w = &s->workers[host];
	const struct sim_fetch *f = &w->fetch;
	uint8_t *payload = w->fetch.payload;
	bool snapshot = f->id.kind == STATE_KIND_SNAPSHOT;
	s->stats.fetched_snapshots += snapshot;
	s->stats.fetched_logs += !snapshot;
	s->stats.older_snapshots += snapshot && f->id.round < round_document(w->core)->snapshot_round;
	sim_say(s, host, ok ? "has fetched it" : "has fetched it, in memory");
	w->fetch.payload = NULL;
	hand_over(s, host, payload, ok ? "" : "the disk refuses");
	free(payload);
}

static void on_piece(struct sim *s, int host, const struct fetch_event *e) {
	struct sim_fetch *f = &s->workers[host].fetch;
	size_t n;
	size_t at = state_piece_at(&s->global_config, f->id.kind, f->id.round, e->index, &n);
	memcpy(f->payload + at, e->data, n);
	if (e->complete && !f->complete)
		store_finish_fetch(s, host);
	f->complete |= e->complete;
}

static void on_fetch(struct sim *s, int host, int from, const struct frame_fetch *m) {
	struct sim_link *l = &s->workers[host].links[from];
	if (m->part == FRAME_PART_FORGET) {
		l->forgotten = l->n_asked;
		return;
	}
	if (l->n_asked == FETCH_WINDOW_MAX) {
		sim_fail(s, "w%d: w%d asks for more than it may", host, from);
		return;
	}
	s->workers[host].askers |= UINT64_C(1) << from;
	l->asked[l->n_asked++] = *m;
	fetch_serve(s, host, from);
}

void fetch_receive(struct sim *s, int host, int from, const struct frame_header *h, const uint8_t *body) {
	struct sim_worker *w = &s->workers[host];
	uint32_t member = member_of(s, from);
	struct frame_fetch fetch;
	struct frame_piece piece;
	struct fetch_event event = {.type = FETCH_NOTHING};
	struct rv_errtext et = {0};
	enum rv_err e = RV_OK;
	if (h->type == FRAME_FETCH) {
		if ((e = frame_fetch_decode(h, body, &fetch, &et)) == RV_OK)
			on_fetch(s, host, from, &fetch);
	} else if (w->fetch.core == NULL) {
		e = rv_fail(&et, RV_E_PROTOCOL, "nothing was asked for");
	} else if (h->type == FRAME_PIECE) {
		if ((e = frame_piece_decode(h, body, &piece, &et)) == RV_OK)
			e = fetch_core_piece(w->fetch.core, s->now_us, member, &piece, &event, &et);
	} else if ((e = frame_none_decode(h, body, &fetch, &et)) == RV_OK) {
		e = fetch_core_none(w->fetch.core, s->now_us, member, &fetch, &event, &et);
	}
	if (e != RV_OK)
		sim_fail(s, "w%d: %s", host, et.text);
	else if (event.type == FETCH_PIECE && w->fetch.wanted)
		on_piece(s, host, &event);
}
