/* fetch_core_ask.c: chooses a donor's next request (worker/transfer/fetch_core.h). */
#include "worker/transfer/fetch_core_state.h"

#include "base/assert.h"

enum {
	MANIFEST_US = 3 * 1000 * 1000, /* for a whole manifest, before another donor may take over; doubles with each */
	MANIFEST_DOUBLINGS_MAX = 6,
	GUESS_US = 1000 * 1000,     /* time for a piece, before the first one */
	MARGIN_US = 100 * 1000,     /* a second donor must be earlier by this */
	LONGEST_US = 1000 * 1000000 /* limit of an estimate */
};

static bool may_be_asked(const struct fetch_core *c, const struct fetch_donor *d) {
	return d->linked && d->allowed && d->n - d->probing < d->window && c->now_us >= d->banned_until_us;
}

/* Asks a silent donor for a piece that none has: if it lost the connection, only sending shows
 * that. */
static bool probe(struct fetch_donor *d, struct frame_fetch *out) {
	if (d->probing || d->n == 0 || d->n == FETCH_WINDOW_MAX)
		return false;
	struct fetch_ask a = *fetch_ask_at(d, 0);
	a.what.part = FRAME_PART_PIECE;
	a.what.index = UINT32_MAX;
	a.slot = FETCH_NOBODY;
	a.counted = false;
	*fetch_ask_at(d, d->n++) = a;
	d->probing = true;
	*out = a.what;
	return true;
}

static bool ask_to_forget(struct fetch_donor *d, struct frame_fetch *out) {
	if (!d->forgets || d->n == 0)
		return false;
	*out = fetch_ask_at(d, 0)->what;
	out->part = FRAME_PART_FORGET;
	out->index = 0;
	d->forgets = false;
	return true;
}

static bool take_staging(struct fetch_core *c, struct fetch_donor *d) {
	for (int i = 0; i < FETCH_DONORS_MAX && d->staging < 0; i++) {
		if (c->staging_of[i] != FETCH_NOBODY)
			continue;
		c->staging_of[i] = (int8_t)fetch_index(c, d);
		d->staging = i;
	}
	return d->staging >= 0;
}

static bool ask(struct fetch_core *c, struct fetch_donor *d, int slot, enum frame_fetch_part part, uint32_t index,
				struct frame_fetch *out) {
	const struct state_id *id = &c->files[slot].id;
	if (d->n == 0)
		d->head_us = c->now_us;
	*out = (struct frame_fetch){.kind = (uint8_t)id->kind, .part = (uint8_t)part, .round = id->round, .index = index};
	*fetch_ask_at(d, d->n) = (struct fetch_ask){.what = *out, .slot = slot, .counted = true, .asked_us = c->now_us};
	d->n++;
	return true;
}

/* ---- the manifest ---- */

/* Gives up on the manifest's donor: its requests stand, their answers are discarded. */
static void forsake(struct fetch_core *c, int slot) {
	struct fetch_donor *d = &c->donors[c->files[slot].manifest_donor];
	for (int k = 0; k < d->n; k++) {
		struct fetch_ask *a = fetch_ask_at(d, k);
		if (a->slot == slot && a->what.part == FRAME_PART_MANIFEST)
			a->slot = FETCH_NOBODY;
	}
	fetch_manifest_restart(&c->files[slot]);
}

static bool ask_manifest(struct fetch_core *c, struct fetch_donor *d, int slot, struct frame_fetch *out) {
	struct fetch_file *f = &c->files[slot];
	int self = fetch_index(c, d);
	if (f->manifest_donor >= 0 && f->manifest_donor != self && c->now_us >= f->manifest_until_us)
		forsake(c, slot);
	if (f->manifest_donor < 0) {
		int doublings = f->manifest_tries < MANIFEST_DOUBLINGS_MAX ? f->manifest_tries : MANIFEST_DOUBLINGS_MAX;
		f->manifest_donor = self;
		f->manifest_until_us = c->now_us + ((int64_t)MANIFEST_US << doublings);
		f->manifest_tries++;
	}
	if (f->manifest_donor != self || f->manifest_asked == fetch_manifest_parts(c, f->id.kind, f->id.round))
		return false;
	return ask(c, d, slot, FRAME_PART_MANIFEST, f->manifest_asked++, out);
}

/* ---- pieces ---- */

static bool ask_free(struct fetch_core *c, struct fetch_donor *d, int slot, struct frame_fetch *out) {
	struct fetch_file *f = &c->files[slot];
	if (f->n_free == 0)
		return false;
	while (f->copies[f->first_free] != 0)
		f->first_free++;
	RV_ASSERT(f->first_free < f->n_pieces);
	f->copies[f->first_free] = 1;
	f->n_free--;
	return ask(c, d, slot, FRAME_PART_PIECE, f->first_free++, out);
}

static int64_t at_most(int64_t us, int64_t most_us) {
	return us < most_us ? us : most_us;
}

static int64_t piece_us(const struct fetch_donor *d) {
	return d->piece_us > 0 ? d->piece_us : GUESS_US;
}

/* Returns the time until the answer to ask k of this donor is complete, at its rate so far. */
static int64_t estimate_us(const struct fetch_core *c, const struct fetch_donor *d, int k) {
	int64_t usual = piece_us(d), waited = at_most(c->now_us - d->head_us, LONGEST_US), left;
	if (d->got > 0)
		left = waited * (d->total - d->got) / d->got;
	else
		left = waited < usual ? usual - waited : waited;
	return at_most(left + k * usual, LONGEST_US);
}

static bool owes(struct fetch_donor *d, int slot, uint32_t index) {
	for (int k = 0; k < d->n; k++) {
		const struct fetch_ask *a = fetch_ask_at(d, k);
		if (a->slot == slot && a->what.part == FRAME_PART_PIECE && a->what.index == index)
			return true;
	}
	return false;
}

/* Returns the time until donors deliver the latest piece of `slot`, *index; -1: there is none. */
static int64_t latest_of(struct fetch_core *c, struct fetch_donor *self, int slot, uint32_t *index) {
	const struct fetch_file *f = &c->files[slot];
	int64_t latest = -1;
	for (int i = 0; i < c->n_donors; i++) {
		struct fetch_donor *d = &c->donors[i];
		for (int k = 0; d != self && k < d->n; k++) {
			const struct fetch_ask *a = fetch_ask_at(d, k);
			if (a->slot != slot || !a->counted || a->what.part != FRAME_PART_PIECE)
				continue;
			int64_t us = estimate_us(c, d, k);
			uint8_t copies = f->copies[a->what.index];
			if (us <= latest || copies >= FETCH_COPIES_MAX || owes(self, slot, a->what.index))
				continue;
			latest = us;
			*index = a->what.index;
		}
	}
	return latest;
}

/* Asks for a piece that others will deliver late, once all missing ones are requested. */
static bool ask_again(struct fetch_core *c, struct fetch_donor *d, int slot, struct frame_fetch *out) {
	uint32_t index = 0;
	int64_t theirs = latest_of(c, d, slot, &index);
	int64_t ours = (d->n > 0 ? estimate_us(c, d, d->n - 1) : 0) + piece_us(d);
	if (theirs < 0 || ours + ours / 4 + MARGIN_US >= theirs)
		return false;
	c->files[slot].copies[index]++;
	return ask(c, d, slot, FRAME_PART_PIECE, index, out);
}

static bool ask_of_file(struct fetch_core *c, struct fetch_donor *d, int slot, struct frame_fetch *out) {
	const struct fetch_file *f = &c->files[slot];
	if (f->n_held == f->n_pieces || c->now_us < d->lacks_until_us[slot])
		return false;
	if (!f->has_manifest)
		return ask_manifest(c, d, slot, out);
	if (f->looked_for)
		return false;
	return ask_free(c, d, slot, out) || ask_again(c, d, slot, out);
}

bool fetch_core_send(struct fetch_core *c, int64_t now_us, uint32_t member, struct frame_fetch *out) {
	fetch_core_check_invariants(c);
	struct fetch_donor *d = fetch_find(c, member);
	c->now_us = now_us;
	if (d == NULL)
		return false;
	if (ask_to_forget(d, out))
		return true;
	if (c->n_order == 0)
		return false;
	if (d->silent)
		return probe(d, out);
	if (!may_be_asked(c, d) || !take_staging(c, d))
		return false;
	for (int i = 0; i < c->n_order; i++)
		if (ask_of_file(c, d, c->order[i], out))
			return true;
	if (d->n == 0) {
		c->staging_of[d->staging] = FETCH_NOBODY;
		d->staging = FETCH_NOBODY;
	}
	return false;
}
