/* text_shelf.c: see text_shelf.h. */
#include "worker/text/text_shelf.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void text_shelf_init(struct text_shelf *s, uint64_t quota_bytes, void (*evict)(void *ctx, uint64_t shard), void *ctx) {
	*s = (struct text_shelf){.quota_bytes = quota_bytes, .clock = 1, .evict = evict, .ctx = ctx};
}

void text_shelf_release(struct text_shelf *s) {
	free(s->entries);
	s->entries = NULL;
	s->n = s->cap = 0;
}

static void check_invariants(const struct text_shelf *s) {
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		RV_ASSERT(i == 0 || s->entries[i - 1].shard < s->entries[i].shard);
		RV_ASSERT(s->entries[i].need <= s->clock);
		bytes += s->entries[i].bytes;
	}
	RV_ASSERT(bytes == s->used_bytes && s->n <= s->cap);
}

/* ---- the table ---- */

/* Returns the place of a shard, or where it would stand. */
static size_t place_of(const struct text_shelf *s, uint64_t shard) {
	size_t low = 0, high = s->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (s->entries[middle].shard < shard)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct text_shelf_entry *find(const struct text_shelf *s, uint64_t shard) {
	const size_t at = place_of(s, shard);
	return at < s->n && s->entries[at].shard == shard ? &s->entries[at] : NULL;
}

bool text_shelf_has(const struct text_shelf *s, uint64_t shard) {
	return find(s, shard) != NULL;
}

static bool grow(struct text_shelf *s) {
	const size_t cap = s->cap ? 2 * s->cap : FIRST_ROOM;
	struct text_shelf_entry *entries = realloc(s->entries, cap * sizeof *entries);
	if (!entries)
		return false;
	s->entries = entries;
	s->cap = cap;
	return true;
}

static bool insert(struct text_shelf *s, uint64_t shard, uint64_t bytes, uint64_t need) {
	if (s->n == s->cap && !grow(s))
		return false;
	const size_t at = place_of(s, shard);
	memmove(&s->entries[at + 1], &s->entries[at], (s->n - at) * sizeof *s->entries);
	s->entries[at] = (struct text_shelf_entry){.shard = shard, .bytes = bytes, .need = need};
	s->n++;
	s->used_bytes += bytes;
	return true;
}

static void forget(struct text_shelf *s, struct text_shelf_entry *e) {
	s->used_bytes -= e->bytes;
	s->n--;
	memmove(e, e + 1, (size_t)(&s->entries[s->n] - e) * sizeof *e);
}

static void evict(struct text_shelf *s, struct text_shelf_entry *e) {
	s->evict(s->ctx, e->shard);
	forget(s, e);
}

void text_shelf_drop(struct text_shelf *s, uint64_t shard) {
	struct text_shelf_entry *e = find(s, shard);
	if (e)
		evict(s, e);
	check_invariants(s);
}

/* ---- need and room ---- */

bool text_shelf_found(struct text_shelf *s, uint64_t shard, uint64_t bytes, uint64_t need) {
	struct text_shelf_entry *e = find(s, shard);
	if (need >= s->clock)
		s->clock = need + 1;
	if (!e)
		return insert(s, shard, bytes, need);
	e->bytes += bytes;
	s->used_bytes += bytes;
	return true;
}

void text_shelf_prefer(struct text_shelf *s, const uint64_t *shards, int n) {
	RV_ASSERT(n >= 0 && n <= TEXT_SHELF_WANTED);
	s->clock += (uint64_t)n;
	s->n_wanted = n;
	for (int i = 0; i < n; i++) {
		struct text_shelf_entry *e = find(s, shards[i]);
		s->wanted[i] = shards[i];
		if (e)
			e->need = s->clock - (uint64_t)i;
	}
	check_invariants(s);
}

/* Returns the need of a shard that comes now. */
static uint64_t need_of(const struct text_shelf *s, uint64_t shard) {
	for (int i = 0; i < s->n_wanted; i++)
		if (s->wanted[i] == shard)
			return s->clock - (uint64_t)i;
	return 0;
}

static struct text_shelf_entry *least_needed(const struct text_shelf *s) {
	struct text_shelf_entry *least = NULL;
	for (size_t i = 0; i < s->n; i++)
		if (!least || s->entries[i].need < least->need)
			least = &s->entries[i];
	return least;
}

/* Makes room in place of what is needed less than `need`. Returns false if nothing more is. */
static bool make_room(struct text_shelf *s, uint64_t bytes, uint64_t need) {
	while (s->used_bytes + bytes > s->quota_bytes && !RV_BUG("beyond-the-quota")) {
		struct text_shelf_entry *least = least_needed(s);
		if (!least || least->need >= need)
			return false;
		evict(s, least);
	}
	return true;
}

void text_shelf_fit(struct text_shelf *s) {
	(void)make_room(s, 0, UINT64_MAX);
	check_invariants(s);
}

enum text_shelf_answer text_shelf_take(struct text_shelf *s, uint64_t shard, uint64_t bytes) {
	struct text_shelf_entry *e = find(s, shard), before = {0};
	const uint64_t need = need_of(s, shard);
	if (e) {
		before = *e;
		forget(s, e); /* its bytes count anew */
	}
	const bool fits = make_room(s, bytes, need);
	const bool is_in = fits && insert(s, shard, bytes, need);
	if (!is_in && e) /* its files are still here */
		(void)insert(s, shard, before.bytes, before.need);
	check_invariants(s);
	return is_in ? TEXT_SHELF_TAKEN : fits ? TEXT_SHELF_NO_MEMORY : TEXT_SHELF_FULL;
}
