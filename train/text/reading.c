/* reading.c: see reading.h. */
#include "train/text/reading.h"

#include "base/assert.h"

bool reading_add(struct reading *r, uint64_t begin, uint64_t count) {
	struct reading_piece *last = r->n > 0 ? &r->pieces[r->n - 1] : NULL;
	if (last && last->begin + last->count == begin) {
		last->count += count;
		return true;
	}
	if (r->n == READING_MAX_PIECES)
		return false;
	r->pieces[r->n++] = (struct reading_piece){begin, count};
	return true;
}

uint64_t reading_end(const struct reading *r) {
	uint64_t end = r->first;
	for (int i = 0; i < r->n; i++)
		end += r->pieces[i].count;
	return end;
}

bool reading_has(const struct reading *r, uint64_t number, uint64_t count) {
	const uint64_t end = reading_end(r);
	return number >= r->first && number <= end && count <= end - number;
}

uint64_t reading_position(const struct reading *r, uint64_t number) {
	RV_ASSERT(reading_has(r, number, 1));
	uint64_t i = number - r->first;
	const struct reading_piece *p = r->pieces;
	for (; i >= p->count; p++)
		i -= p->count;
	return p->begin + i;
}

struct reading reading_part(const struct reading *r, uint64_t number, uint64_t count) {
	struct reading part = {.first = number};
	RV_ASSERT(reading_has(r, number, count));
	uint64_t at = r->first;
	for (int i = 0; i < r->n; i++) {
		const struct reading_piece *p = &r->pieces[i];
		const uint64_t from = number > at ? number : at,
					   end = number + count < at + p->count ? number + count : at + p->count;
		if (from < end)
			(void)reading_add(&part, p->begin + (from - at), end - from);
		at += p->count;
	}
	return part;
}
