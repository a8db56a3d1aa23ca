/* fetch_core.c: the files that are wanted and the donors they come from
 * (worker/transfer/fetch_core.h). */
#include "worker/transfer/fetch_core_state.h"

#include "base/assert.h"

#include <string.h>

enum {
	FIRST_WINDOW = 2,
	BAN_US = 10 * 1000 * 1000, /* after the first offence; doubles with each */
	BAN_DOUBLINGS_MAX = 6,
	ENDGAME_LOOK_US = 200 * 1000
};

static size_t aligned(size_t n) {
	return (n + 63) / 64 * 64;
}

/* ---- sizes ---- */

static size_t max_manifest_bytes(const struct global_config *g) {
	return (size_t)state_max_manifest_hashes(g) * RV_HASH_BYTES;
}

/* Returns the most bytes of a piece, or of a part of a manifest. */
static size_t max_piece_bytes(const struct global_config *g) {
	size_t part = NET_MANIFEST_PART_BYTES, manifest = max_manifest_bytes(g), most = state_max_piece_bytes(g);
	part = manifest < part ? manifest : part;
	most = part > most ? part : most;
	RV_ASSERT(most <= NET_MAX_PIECE_BYTES);
	return aligned(most);
}

size_t fetch_core_bytes(const struct fetch_core_config *cfg) {
	size_t file = aligned(state_max_pieces(cfg->global)) + aligned(max_manifest_bytes(cfg->global));
	return aligned(sizeof(struct fetch_core)) + FETCH_FILES * file +
		   (FETCH_DONORS_MAX + 1) * max_piece_bytes(cfg->global);
}

static uint32_t manifest_bytes(const struct fetch_core *c, enum state_kind kind, uint64_t round) {
	return state_manifest_hashes(c->cfg.global, kind, round) * RV_HASH_BYTES;
}

uint32_t fetch_manifest_parts(const struct fetch_core *c, enum state_kind kind, uint64_t round) {
	return (manifest_bytes(c, kind, round) + NET_MANIFEST_PART_BYTES - 1) / NET_MANIFEST_PART_BYTES;
}

uint32_t fetch_bytes_of(const struct fetch_core *c, const struct frame_fetch *what) {
	enum state_kind kind = (enum state_kind)what->kind;
	size_t bytes;
	if (what->part == FRAME_PART_PIECE) {
		if (what->index >= state_pieces(c->cfg.global, kind, what->round))
			return 0;
		(void)state_piece_at(c->cfg.global, kind, what->round, what->index, &bytes);
		return (uint32_t)bytes;
	}
	if (what->index >= fetch_manifest_parts(c, kind, what->round))
		return 0;
	uint32_t left = manifest_bytes(c, kind, what->round) - what->index * NET_MANIFEST_PART_BYTES;
	return left < NET_MANIFEST_PART_BYTES ? left : NET_MANIFEST_PART_BYTES;
}

uint8_t *fetch_staging(const struct fetch_core *c, int i) {
	return c->staging + (size_t)i * c->piece_bytes;
}

struct fetch_core *fetch_core_init(void *memory, const struct fetch_core_config *cfg, int64_t now_us) {
	_Static_assert((int)FRAME_FETCH_SNAPSHOT == (int)STATE_KIND_SNAPSHOT && (int)FRAME_FETCH_LOG == (int)STATE_KIND_LOG,
				   "same");
	_Static_assert((int)NET_MAX_PIECE_BYTES == (int)STATE_PIECE_MAX_BYTES, "a piece fits its frames");
	RV_ASSERT(cfg->stall_us > 0);
	struct fetch_core *c = memory;
	uint8_t *at = (uint8_t *)memory + aligned(sizeof *c);
	memset(c, 0, sizeof *c);
	c->cfg = *cfg;
	c->now_us = now_us;
	c->piece_bytes = max_piece_bytes(cfg->global);
	for (int i = 0; i < FETCH_FILES; i++) {
		c->files[i].manifest = (struct rv_hash *)(void *)at;
		at += aligned(max_manifest_bytes(cfg->global));
		c->files[i].copies = at;
		at += aligned(state_max_pieces(cfg->global));
	}
	c->staging = at;
	memset(c->staging_of, FETCH_NOBODY, sizeof c->staging_of);
	return c;
}

/* ---- what always holds ---- */

static void check_file(const struct fetch_core *c, const struct fetch_file *f) {
	RV_ASSERT(f->n_held + f->n_free <= f->n_pieces && f->first_free <= f->n_pieces);
	RV_ASSERT(f->bytes_held <= state_payload_bytes(c->cfg.global, f->id.kind, f->id.round));
	RV_ASSERT((f->n_held == f->n_pieces) ==
			  (f->bytes_held == state_payload_bytes(c->cfg.global, f->id.kind, f->id.round)));
	RV_ASSERT(f->has_manifest || f->n_held == 0);
	RV_ASSERT(f->manifest_got <= f->manifest_asked && f->manifest_donor < c->n_donors);
}

static void check_donor(const struct fetch_core *c, const struct fetch_donor *d) {
	RV_ASSERT(d->n >= 0 && d->n <= FETCH_WINDOW_MAX && d->window <= FETCH_WINDOW_MAX);
	RV_ASSERT(d->staging == FETCH_NOBODY || c->staging_of[d->staging] == fetch_index(c, d));
	RV_ASSERT(d->got == 0 || (d->n > 0 && d->got < d->total && d->total <= c->piece_bytes));
	RV_ASSERT(d->linked || d->n == 0);
}

void fetch_core_check_invariants(const struct fetch_core *c) {
	RV_ASSERT(c->n_order >= 0 && c->n_order <= FETCH_FILES);
	for (int i = 0; i < c->n_order; i++)
		RV_ASSERT(c->files[c->order[i]].used && (i == 0 || c->order[i] != c->order[0]));
	for (int i = 0; i < FETCH_FILES; i++)
		if (c->files[i].used)
			check_file(c, &c->files[i]);
	for (int i = 0; i < c->n_donors; i++)
		check_donor(c, &c->donors[i]);
}

/* ---- files ---- */

void fetch_manifest_restart(struct fetch_file *f) {
	f->manifest_donor = FETCH_NOBODY;
	f->manifest_asked = f->manifest_got = 0;
}

static void drop_file(struct fetch_core *c, int slot) {
	for (int i = 0; i < c->n_donors; i++) {
		struct fetch_donor *d = &c->donors[i];
		bool owes = false;
		for (int k = 0; k < d->n; k++) {
			struct fetch_ask *a = fetch_ask_at(d, k);
			a->slot = a->slot == slot ? FETCH_NOBODY : a->slot;
			owes = owes || a->slot >= 0;
		}
		d->forgets = d->n > 0 && !owes;
		d->lacks_until_us[slot] = d->lacks_pause_us[slot] = 0;
	}
	c->files[slot].used = false;
}

static void add_file(struct fetch_core *c, int slot, const struct state_id *id) {
	struct fetch_file *f = &c->files[slot];
	struct fetch_file fresh = {.used = true, .id = *id, .copies = f->copies, .manifest = f->manifest};
	fresh.n_pieces = fresh.n_free = state_pieces(c->cfg.global, id->kind, id->round);
	*f = fresh;
	fetch_manifest_restart(f);
	memset(f->copies, 0, f->n_pieces);
}

static int find_file(const struct fetch_core *c, const struct state_id *id) {
	for (int i = 0; i < FETCH_FILES; i++)
		if (c->files[i].used && state_id_equal(&c->files[i].id, id))
			return i;
	return -1;
}

void fetch_core_want(struct fetch_core *c, int64_t now_us, const struct state_id *ids, int n, int slots[]) {
	RV_ASSERT(n >= 0 && n <= FETCH_FILES);
	fetch_core_check_invariants(c);
	c->now_us = now_us;
	for (int i = 0; i < FETCH_FILES; i++)
		if (c->files[i].used && !state_id_is_in(ids, n, &c->files[i].id))
			drop_file(c, i);
	for (int i = 0; i < n; i++) {
		int slot = find_file(c, &ids[i]);
		for (int k = 0; slot < 0 && k < FETCH_FILES; k++)
			if (!c->files[k].used)
				add_file(c, slot = k, &ids[i]);
		RV_ASSERT(slot >= 0);
		c->order[i] = slots[i] = slot;
	}
	c->n_order = n;
}

static size_t piece_bytes(const struct fetch_core *c, const struct fetch_file *f, uint32_t index) {
	size_t bytes;
	(void)state_piece_at(c->cfg.global, f->id.kind, f->id.round, index, &bytes);
	return bytes;
}

void fetch_hold(struct fetch_core *c, struct fetch_file *f, uint32_t index) {
	RV_ASSERT(f->copies[index] != FETCH_HELD && f->n_held < f->n_pieces);
	f->n_free -= f->copies[index] == 0; /* its donor was given up */
	f->copies[index] = FETCH_HELD;
	f->n_held++;
	f->bytes_held += piece_bytes(c, f, index);
}

void fetch_core_look(struct fetch_core *c, int slot, bool on) {
	RV_ASSERT(c->files[slot].used);
	c->files[slot].looked_for = on;
}

bool fetch_core_resume(struct fetch_core *c, int slot, const struct rv_hash *manifest, const uint8_t *held) {
	struct fetch_file *f = &c->files[slot];
	RV_ASSERT(f->used);
	if (!f->has_manifest)
		memcpy(f->manifest, manifest, manifest_bytes(c, f->id.kind, f->id.round));
	f->has_manifest = true;
	f->manifest_donor = FETCH_NOBODY;
	for (uint32_t i = 0; i < f->n_pieces; i++)
		if (held[i] && f->copies[i] != FETCH_HELD)
			fetch_hold(c, f, i);
	return f->n_held == f->n_pieces;
}

void fetch_core_lost(struct fetch_core *c, int slot, uint32_t index) {
	struct fetch_file *f = &c->files[slot];
	RV_ASSERT(f->used && index < f->n_pieces && f->copies[index] == FETCH_HELD);
	f->copies[index] = 0;
	f->n_held--;
	f->bytes_held -= piece_bytes(c, f, index);
	f->n_free++;
	if (index < f->first_free)
		f->first_free = index;
	for (int i = 0; i < c->n_donors; i++) /* late copies of it no longer count */
		for (int k = 0; k < c->donors[i].n; k++) {
			struct fetch_ask *a = fetch_ask_at(&c->donors[i], k);
			if (a->slot == slot && a->what.part == FRAME_PART_PIECE && a->what.index == index)
				a->counted = false;
		}
}

bool fetch_core_complete(const struct fetch_core *c, int slot) {
	return c->files[slot].used && c->files[slot].n_held == c->files[slot].n_pieces;
}

void fetch_core_progress(const struct fetch_core *c, int slot, uint64_t *done_bytes, uint64_t *total_bytes) {
	const struct fetch_file *f = &c->files[slot];
	*done_bytes = f->used ? f->bytes_held : 0;
	*total_bytes = f->used ? state_payload_bytes(c->cfg.global, f->id.kind, f->id.round) : 0;
}

const struct rv_hash *fetch_core_manifest(const struct fetch_core *c, int slot) {
	return c->files[slot].used && c->files[slot].has_manifest ? c->files[slot].manifest : NULL;
}

/* ---- donors ---- */

struct fetch_donor *fetch_find(struct fetch_core *c, uint32_t member) {
	for (int i = 0; i < c->n_donors; i++)
		if (c->donors[i].member == member)
			return &c->donors[i];
	return NULL;
}

int fetch_index(const struct fetch_core *c, const struct fetch_donor *d) {
	return (int)(d - c->donors);
}

void fetch_release(struct fetch_core *c, const struct fetch_donor *d, struct fetch_ask *a) {
	if (!a->counted || a->slot < 0) {
		a->counted = false;
		return;
	}
	a->counted = false;
	struct fetch_file *f = &c->files[a->slot];
	if (a->what.part == FRAME_PART_MANIFEST) {
		if (!f->has_manifest && f->manifest_donor == fetch_index(c, d))
			fetch_manifest_restart(f);
		return;
	}
	uint8_t *copies = &f->copies[a->what.index];
	if (*copies == FETCH_HELD)
		return;
	RV_ASSERT(*copies > 0);
	if (--*copies > 0)
		return;
	f->n_free++;
	if (a->what.index < f->first_free)
		f->first_free = a->what.index;
}

static void release_all(struct fetch_core *c, struct fetch_donor *d) {
	for (int k = 0; k < d->n; k++)
		fetch_release(c, d, fetch_ask_at(d, k));
}

static void leave_staging(struct fetch_core *c, struct fetch_donor *d) {
	if (d->staging >= 0)
		c->staging_of[d->staging] = FETCH_NOBODY;
	d->staging = FETCH_NOBODY;
}

void fetch_pop(struct fetch_core *c, struct fetch_donor *d) {
	fetch_release(c, d, fetch_ask_at(d, 0));
	if (fetch_ask_at(d, 0)->what.index == UINT32_MAX)
		d->probing = false;
	d->first = (d->first + 1) % FETCH_WINDOW_MAX;
	d->n--;
	d->forgets = d->forgets && d->n > 0;
	d->got = 0;
	d->head_us = c->now_us;
	if (d->n == 0)
		leave_staging(c, d);
}

/* Its answers that are still on the way are discarded. */
void fetch_ban(struct fetch_core *c, struct fetch_donor *d) {
	int doublings = d->offences < BAN_DOUBLINGS_MAX ? d->offences : BAN_DOUBLINGS_MAX;
	d->offences++;
	d->banned_until_us = c->now_us + ((int64_t)BAN_US << doublings);
	release_all(c, d);
	for (int k = 0; k < d->n; k++)
		fetch_ask_at(d, k)->slot = FETCH_NOBODY;
	d->forgets = d->n > 1; /* the one at hand is answered */
}

static void end_link(struct fetch_core *c, struct fetch_donor *d) {
	release_all(c, d);
	leave_staging(c, d);
	d->n = d->first = 0;
	d->got = 0;
	d->linked = d->silent = d->probing = d->forgets = false;
}

/* Returns the place for another donor: one that owes nothing, may not be asked and is not to be
 * remembered for what it did; NULL: there is none. */
static struct fetch_donor *free_place(struct fetch_core *c) {
	if (c->n_donors < FETCH_TABLE)
		return &c->donors[c->n_donors++];
	for (int i = 0; i < c->n_donors; i++) {
		const struct fetch_donor *d = &c->donors[i];
		if (!d->allowed && d->n == 0 && d->banned_until_us <= c->now_us)
			return &c->donors[i];
	}
	return NULL;
}

static void add_donor(struct fetch_core *c, uint32_t member) {
	struct fetch_donor *d = free_place(c);
	if (d == NULL)
		return;
	for (int i = 0; i < FETCH_FILES; i++)
		if (c->files[i].manifest_donor == fetch_index(c, d)) /* of the one that was here before */
			fetch_manifest_restart(&c->files[i]);
	*d = (struct fetch_donor){.member = member,
							  .linked = member_set_has(&c->links, member),
							  .allowed = true,
							  .staging = FETCH_NOBODY,
							  .window = FIRST_WINDOW,
							  .heard_us = c->now_us};
}

void fetch_core_allow(struct fetch_core *c, int64_t now_us, const struct member_set *members) {
	c->now_us = now_us;
	for (int i = 0; i < c->n_donors; i++)
		c->donors[i].allowed = member_set_has(members, c->donors[i].member);
	for (int i = 0; i < members->n; i++)
		if (members->members[i] != c->cfg.self_member && fetch_find(c, members->members[i]) == NULL)
			add_donor(c, members->members[i]);
}

void fetch_core_link_up(struct fetch_core *c, int64_t now_us, uint32_t member) {
	fetch_core_check_invariants(c);
	struct fetch_donor *d = fetch_find(c, member);
	(void)member_set_add(&c->links, member);
	c->now_us = now_us;
	if (d == NULL)
		return;
	if (d->linked)
		end_link(c, d);
	d->linked = true;
	d->window = FIRST_WINDOW;
	d->heard_us = now_us;
	memset(d->lacks_until_us, 0, sizeof d->lacks_until_us);
	memset(d->lacks_pause_us, 0, sizeof d->lacks_pause_us);
}

void fetch_core_link_down(struct fetch_core *c, int64_t now_us, uint32_t member) {
	fetch_core_check_invariants(c);
	struct fetch_donor *d = fetch_find(c, member);
	member_set_remove(&c->links, member);
	c->now_us = now_us;
	if (d != NULL)
		end_link(c, d);
}

/* ---- time ---- */

static int64_t silent_at_us(const struct fetch_core *c, const struct fetch_donor *d) {
	int64_t since = d->heard_us > d->head_us ? d->heard_us : d->head_us;
	return since + c->cfg.stall_us;
}

void fetch_core_tick(struct fetch_core *c, int64_t now_us) {
	c->now_us = now_us;
	for (int i = 0; i < c->n_donors; i++) {
		struct fetch_donor *d = &c->donors[i];
		if (d->n == 0 || d->silent || now_us < silent_at_us(c, d))
			continue;
		d->silent = true;
		release_all(c, d);
	}
}

static void sooner(int64_t *deadline, int64_t at_us) {
	if (at_us < *deadline)
		*deadline = at_us;
}

static void donor_deadline(const struct fetch_core *c, const struct fetch_donor *d, int64_t *deadline) {
	if (!d->linked || !d->allowed)
		return;
	if (d->n > 0 && !d->silent)
		sooner(deadline, silent_at_us(c, d));
	if (d->banned_until_us > c->now_us)
		sooner(deadline, d->banned_until_us);
	for (int i = 0; i < c->n_order; i++)
		if (d->lacks_until_us[c->order[i]] > c->now_us && !fetch_core_complete(c, c->order[i]))
			sooner(deadline, d->lacks_until_us[c->order[i]]);
}

int64_t fetch_core_deadline_us(const struct fetch_core *c) {
	int64_t deadline = INT64_MAX;
	bool missing = false, endgame = false;
	for (int i = 0; i < c->n_order; i++) {
		const struct fetch_file *f = &c->files[c->order[i]];
		missing = missing || f->n_held < f->n_pieces;
		endgame = endgame || (f->has_manifest && f->n_free == 0 && f->n_held < f->n_pieces);
		if (!f->has_manifest && f->manifest_donor >= 0 && f->manifest_until_us > c->now_us)
			sooner(&deadline, f->manifest_until_us);
	}
	for (int i = 0; i < c->n_donors && missing; i++)
		donor_deadline(c, &c->donors[i], &deadline);
	if (endgame)
		sooner(&deadline, c->now_us + ENDGAME_LOOK_US);
	return deadline;
}

bool fetch_core_nowhere(const struct fetch_core *c, int slot) {
	bool any = false;
	for (int i = 0; i < c->n_donors; i++) {
		const struct fetch_donor *d = &c->donors[i];
		if (!d->linked || !d->allowed || d->banned_until_us > c->now_us)
			continue;
		if (d->lacks_until_us[slot] <= c->now_us)
			return false;
		any = true;
	}
	return any;
}
