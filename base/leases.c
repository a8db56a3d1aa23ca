/* leases.c: see leases.h. What a holder has is found by its index, so a round costs O(pieces) for
 * each member; the free ranges are one ascending array, with few in it unless members die. */
#include "base/leases.h"

#include "base/assert.h"

#include <string.h>

enum { FREE_PIECES = LEASE_PIECES / 2 };

void leases_init(struct leases *l, struct lease_holder *holders, uint32_t n_holders, struct lease_range *free,
				 uint32_t free_cap) {
	RV_ASSERT(n_holders > 0 && free_cap > 0);
	memset(holders, 0, n_holders * sizeof holders[0]);
	*l = (struct leases){.holders = holders, .n_holders = n_holders, .free = free, .free_cap = free_cap};
}

static struct lease_holder *holder_of(const struct leases *l, uint32_t holder) {
	RV_ASSERT(holder < l->n_holders);
	return &l->holders[holder];
}

/* ---- the free ranges ---- */

/* Returns the index of the first free range that ends at or behind `position`. */
static uint32_t find_free(const struct leases *l, uint64_t position) {
	uint32_t low = 0, high = l->n_free;
	while (low < high) {
		const uint32_t middle = (low + high) / 2;
		if (l->free[middle].end < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_free(struct leases *l, uint32_t i) {
	memmove(&l->free[i], &l->free[i + 1], (l->n_free - i - 1) * sizeof l->free[0]);
	l->n_free--;
}

/* Makes room for a range of `length` positions by leaving out the smallest free range. Returns
 * false if it is itself the smallest. */
static bool make_room(struct leases *l, uint64_t length) {
	uint32_t smallest = 0;
	for (uint32_t i = 1; i < l->n_free; i++)
		if (l->free[i].end - l->free[i].begin < l->free[smallest].end - l->free[smallest].begin)
			smallest = i;
	const uint64_t least = l->free[smallest].end - l->free[smallest].begin;
	l->left_out += least < length ? least : length;
	if (least < length)
		remove_free(l, smallest);
	return least < length;
}

static void put_free(struct leases *l, struct lease_range r) {
	uint32_t i = find_free(l, r.begin);
	RV_ASSERT(r.begin < r.end && r.end <= l->next);
	const bool joins = i < l->n_free && l->free[i].begin <= r.end;
	if (!joins && l->n_free == l->free_cap) {
		if (!make_room(l, r.end - r.begin))
			return;
		i = find_free(l, r.begin);
	}
	if (!joins) {
		memmove(&l->free[i + 1], &l->free[i], (l->n_free - i) * sizeof l->free[0]);
		l->free[i] = r;
		l->n_free++;
		return;
	}
	struct lease_range *f = &l->free[i];
	RV_ASSERT(f->begin >= r.end || f->end == r.begin); /* a position is free once */
	f->begin = r.begin < f->begin ? r.begin : f->begin;
	f->end = r.end > f->end ? r.end : f->end;
	if (i + 1 < l->n_free && l->free[i + 1].begin <= f->end) {
		RV_ASSERT(l->free[i + 1].begin == f->end);
		f->end = l->free[i + 1].end;
		remove_free(l, i + 1);
	}
}

uint64_t leases_free(const struct leases *l) {
	uint64_t n = 0;
	for (uint32_t i = 0; i < l->n_free; i++)
		n += l->free[i].end - l->free[i].begin;
	return n;
}

/* ---- what a holder has ---- */

/* Appends up to `count` positions from `begin` on. Returns how many: 0 if there is no piece for
 * them. */
static uint64_t append(struct leases *l, struct lease_holder *h, uint64_t begin, uint64_t count) {
	struct lease_piece *last = h->n > 0 ? &h->pieces[h->n - 1] : NULL;
	const bool goes_on = last != NULL && last->begin + last->count == begin && last->count < UINT32_MAX;
	if (!goes_on && h->n == LEASE_PIECES)
		return 0;
	if (h->n == 0)
		h->first = l->granted;
	if (!goes_on) {
		last = &h->pieces[h->n++];
		*last = (struct lease_piece){.begin = begin};
	}
	const uint64_t room = UINT32_MAX - last->count, n = count < room ? count : room;
	last->count += (uint32_t)n;
	h->held += n;
	l->granted += n;
	return n;
}

/* Grants from the lowest free range. */
static uint64_t grant_free(struct leases *l, struct lease_holder *h, uint64_t count) {
	struct lease_range *f = &l->free[0];
	const uint64_t length = f->end - f->begin, n = append(l, h, f->begin, count < length ? count : length);
	f->begin += n;
	if (f->begin == f->end)
		remove_free(l, 0);
	return n;
}

static uint64_t grant_ahead(struct leases *l, struct lease_holder *h, uint64_t count) {
	RV_ASSERT(count <= LEASE_MAX_POSITION - l->next);
	const uint64_t n = append(l, h, l->next, count);
	l->next += n;
	return n;
}

uint64_t leases_grant(struct leases *l, uint32_t holder, uint64_t count) {
	struct lease_holder *h = holder_of(l, holder);
	uint64_t done = 0, n = 1;
	while (done < count && n > 0) {
		const uint64_t lacks = count - done;
		n = l->n_free > 0 && h->n < FREE_PIECES ? grant_free(l, h, lacks) : grant_ahead(l, h, lacks);
		done += n;
	}
	return done;
}

uint64_t leases_lacks(const struct leases *l, uint32_t holder, uint64_t round) {
	const uint64_t held = holder_of(l, holder)->held;
	RV_ASSERT(round <= LEASE_MAX_POSITION / LEASE_ROUNDS);
	const uint64_t lacks = held < LEASE_ROUNDS * round ? LEASE_ROUNDS * round - held : 0;
	return lacks >= (round + 3) / 4 ? lacks : 0;
}

bool leases_has(const struct leases *l, uint32_t holder, uint64_t first, uint64_t count) {
	const struct lease_holder *h = holder_of(l, holder);
	return h->n > 0 && first >= h->first && first - h->first <= h->held && count <= h->held - (first - h->first);
}

/* Takes up to `count` positions of the first piece. */
static struct lease_piece take(struct lease_holder *h, uint64_t count) {
	struct lease_piece *p = &h->pieces[0], taken = *p;
	RV_ASSERT(h->n > 0 && count > 0);
	taken.count = count < p->count ? (uint32_t)count : p->count;
	p->begin += taken.count;
	p->count -= taken.count;
	h->first += taken.count;
	h->held -= taken.count;
	if (p->count == 0) {
		h->n--;
		memmove(&h->pieces[0], &h->pieces[1], h->n * sizeof h->pieces[0]);
	}
	return taken;
}

/* Makes free the next `count` positions of a holder. */
static void pass_over(struct leases *l, struct lease_holder *h, uint64_t count) {
	while (count > 0) {
		const struct lease_piece p = take(h, count);
		put_free(l, (struct lease_range){.begin = p.begin, .end = p.begin + p.count});
		count -= p.count;
	}
}

int leases_consume(struct leases *l, uint32_t holder, uint64_t first, uint64_t count,
				   struct lease_piece consumed[LEASE_PIECES]) {
	struct lease_holder *h = holder_of(l, holder);
	int n = 0;
	RV_ASSERT(leases_has(l, holder, first, count));
	pass_over(l, h, first - h->first);
	l->consumed += count;
	while (count > 0) {
		consumed[n] = take(h, count);
		count -= consumed[n++].count;
	}
	return n;
}

void leases_give_back(struct leases *l, uint32_t holder) {
	struct lease_holder *h = holder_of(l, holder);
	pass_over(l, h, h->held);
	RV_ASSERT(h->n == 0 && h->held == 0);
}

void leases_restore(struct leases *l, struct lease_range consumed) {
	RV_ASSERT(consumed.begin < consumed.end && consumed.end - consumed.begin <= l->consumed);
	l->consumed -= consumed.end - consumed.begin;
	put_free(l, consumed);
}

uint64_t leases_position(const struct leases *l, uint32_t holder, uint64_t number) {
	const struct lease_holder *h = holder_of(l, holder);
	RV_ASSERT(leases_has(l, holder, number, 1));
	uint64_t i = number - h->first;
	uint32_t at = 0;
	while (i >= h->pieces[at].count)
		i -= h->pieces[at++].count;
	return h->pieces[at].begin + i;
}

/* ---- states from a file ---- */

static bool overlap(uint64_t begin, uint64_t end, uint64_t begin2, uint64_t end2) {
	return begin < end2 && begin2 < end;
}

static bool is_valid_range(const struct leases *l, uint64_t begin, uint64_t end) {
	return begin < end && end <= l->next;
}

/* Returns true if the piece is in no free range, and in no other piece of a holder up to its
 * own. */
static bool is_alone(const struct leases *l, uint32_t holder, uint32_t piece) {
	const struct lease_piece *p = &l->holders[holder].pieces[piece];
	const uint64_t end = p->begin + p->count;
	for (uint32_t i = 0; i < l->n_free; i++)
		if (overlap(p->begin, end, l->free[i].begin, l->free[i].end))
			return false;
	for (uint32_t k = 0; k <= holder; k++)
		for (uint32_t i = 0; i < (k < holder ? l->holders[k].n : piece); i++) {
			const struct lease_piece *other = &l->holders[k].pieces[i];
			if (overlap(p->begin, end, other->begin, other->begin + other->count))
				return false;
		}
	return true;
}

static bool is_valid_holder(const struct leases *l, uint32_t holder) {
	const struct lease_holder *h = &l->holders[holder];
	uint64_t held = 0;
	if (h->n > LEASE_PIECES)
		return false;
	for (uint32_t i = 0; i < h->n; i++) {
		const struct lease_piece *p = &h->pieces[i];
		if (p->begin > l->next || !is_valid_range(l, p->begin, p->begin + p->count) || !is_alone(l, holder, i))
			return false;
		held += p->count;
	}
	return held == h->held && (held == 0 || (h->first <= l->granted && held <= l->granted - h->first));
}

bool leases_are_valid(const struct leases *l) {
	uint64_t held = 0;
	if (l->n_free > l->free_cap || l->next > LEASE_MAX_POSITION || l->consumed > l->next || l->left_out > l->next)
		return false;
	for (uint32_t i = 0; i < l->n_free; i++)
		if (!is_valid_range(l, l->free[i].begin, l->free[i].end) || (i > 0 && l->free[i].begin <= l->free[i - 1].end))
			return false;
	for (uint32_t i = 0; i < l->n_holders; i++) {
		if (!is_valid_holder(l, i))
			return false;
		held += l->holders[i].held;
	}
	return held + leases_free(l) + l->consumed + l->left_out == l->next;
}
