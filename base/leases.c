/* leases.c: see leases.h. One array of ranges in order of positions, gone through from its start:
 * with a thousand members it has a few thousand. */
#include "base/leases.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

void leases_init(struct leases *l, struct lease *memory, uint32_t cap, uint64_t next) {
	RV_ASSERT(cap > 0 && next <= LEASE_MAX_POSITION);
	*l = (struct leases){.at = memory, .cap = cap, .next = next};
}

static uint64_t length(const struct lease *r) {
	return r->end - r->begin;
}

static void remove_at(struct leases *l, uint32_t i) {
	memmove(l->at + i, l->at + i + 1, (l->n - i - 1) * sizeof *l->at);
	l->n--;
}

static void insert_at(struct leases *l, uint32_t i, struct lease r) {
	RV_ASSERT(l->n < l->cap && i <= l->n);
	memmove(l->at + i + 1, l->at + i, (l->n - i) * sizeof *l->at);
	l->at[i] = r;
	l->n++;
}

/* Reports whether `b` goes on where `a` ends, for the same holder and in its order of reading. */
static bool goes_on(const struct leases *l, const struct lease *a, const struct lease *b) {
	if (a->end != b->begin || a->holder != b->holder)
		return false;
	if (a->holder == LEASE_FREE)
		return true;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].holder == a->holder && l->at[i].turn > a->turn && l->at[i].turn < b->turn)
			return false;
	return b->turn > a->turn;
}

/* Joins range i with its neighbours where they are one. */
static void join(struct leases *l, uint32_t i) {
	if (i + 1 < l->n && goes_on(l, &l->at[i], &l->at[i + 1])) {
		l->at[i].end = l->at[i + 1].end;
		remove_at(l, i + 1);
	}
	if (i > 0 && goes_on(l, &l->at[i - 1], &l->at[i])) {
		l->at[i - 1].end = l->at[i].end;
		remove_at(l, i);
	}
}

/* Grants the free range i, or its first `count` positions. Returns how many. */
static uint64_t grant_free(struct leases *l, uint32_t i, uint32_t holder, uint64_t count) {
	struct lease *r = &l->at[i];
	if (length(r) > count && l->n < l->cap) {
		const struct lease rest = {.begin = r->begin + count, .end = r->end, .holder = LEASE_FREE};
		r->end = rest.begin;
		insert_at(l, i + 1, rest);
	}
	l->at[i].holder = holder;
	l->at[i].turn = l->turns++;
	const uint64_t n = length(&l->at[i]);
	join(l, i);
	return n;
}

static uint64_t grant_ahead(struct leases *l, uint32_t holder, uint64_t count) {
	const struct lease r = {.begin = l->next, .end = l->next + count, .turn = l->turns, .holder = holder};
	RV_ASSERT(count <= LEASE_MAX_POSITION - l->next);
	if (l->n > 0 && goes_on(l, &l->at[l->n - 1], &r))
		l->at[l->n - 1].end = r.end; /* takes no room */
	else if (l->n < l->cap)
		insert_at(l, l->n, r);
	else
		return 0;
	l->turns++;
	l->next = r.end;
	return count;
}

uint64_t leases_grant(struct leases *l, uint32_t holder, uint64_t count) {
	RV_ASSERT(holder != LEASE_FREE);
	uint64_t done = 0;
	uint32_t i = 0;
	while (done < count) {
		while (i < l->n && l->at[i].holder != LEASE_FREE)
			i++;
		if (i == l->n)
			break;
		done += grant_free(l, i, holder, count - done);
		i = 0; /* ranges were joined */
	}
	return done < count ? done + grant_ahead(l, holder, count - done) : done;
}

/* Returns the range that its holder reads first; l->n: it has none. */
static uint32_t first_of(const struct leases *l, uint32_t holder) {
	uint32_t first = l->n;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->at[i].holder == holder && (first == l->n || l->at[i].turn < l->at[first].turn))
			first = i;
	return first;
}

uint64_t leases_held(const struct leases *l, uint32_t holder) {
	uint64_t n = 0;
	for (uint32_t i = 0; i < l->n; i++)
		n += l->at[i].holder == holder ? length(&l->at[i]) : 0;
	return n;
}

enum rv_err leases_consume(struct leases *l, uint32_t holder, uint64_t count, struct rv_errtext *et) {
	const uint64_t held = leases_held(l, holder);
	RV_ASSERT(holder != LEASE_FREE);
	if (count > held)
		return rv_fail(et, RV_E_RANGE,
					   "member %u says that it read %" PRIu64 " sequences, but %" PRIu64 " are leased to it", holder,
					   count, held);
	while (count > 0) {
		const uint32_t i = first_of(l, holder);
		const uint64_t n = count < length(&l->at[i]) ? count : length(&l->at[i]);
		l->at[i].begin += n;
		count -= n;
		if (length(&l->at[i]) == 0)
			remove_at(l, i);
	}
	return RV_OK;
}

void leases_give_back(struct leases *l, uint32_t holder) {
	RV_ASSERT(holder != LEASE_FREE);
	for (uint32_t i = first_of(l, holder); i < l->n; i = first_of(l, holder)) {
		l->at[i].holder = LEASE_FREE;
		l->at[i].turn = 0;
		join(l, i);
	}
}

/* Returns the range of a holder with the lowest turn above `turn`, or (is_first) the lowest. */
static const struct lease *after(const struct leases *l, uint32_t holder, bool is_first, uint64_t turn) {
	const struct lease *found = NULL;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lease *r = &l->at[i];
		if (r->holder == holder && (is_first || r->turn > turn) && (!found || r->turn < found->turn))
			found = r;
	}
	return found;
}

uint64_t leases_position(const struct leases *l, uint32_t holder, uint64_t i) {
	const struct lease *r = after(l, holder, true, 0);
	while (r && i >= length(r)) {
		i -= length(r);
		r = after(l, holder, false, r->turn);
	}
	RV_ASSERT(r != NULL);
	return r->begin + i;
}

bool leases_are_valid(const struct leases *l) {
	uint64_t at = 0;
	if (l->n > l->cap || l->next > LEASE_MAX_POSITION)
		return false;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lease *r = &l->at[i];
		if (r->begin < at || r->end <= r->begin || r->end > l->next)
			return false;
		if (r->holder != LEASE_FREE && r->turn >= l->turns)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (r->holder != LEASE_FREE && l->at[k].holder != LEASE_FREE && l->at[k].turn == r->turn)
				return false;
		at = r->end;
	}
	return true;
}
