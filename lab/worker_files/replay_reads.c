/* replay_reads.c: see replay_reads.h. */
#include "lab/worker_files/replay_reads.h"

#include <inttypes.h>
#include <stdlib.h>

/* Makes room for `more` elements behind n. */
static enum rv_err grow(void **at, size_t n, size_t more, size_t *cap, size_t bytes, struct rv_errtext *et) {
	if (n + more <= *cap)
		return RV_OK;
	void *grown = realloc(*at, 2 * (n + more) * bytes);
	if (!grown)
		return rv_fail(et, RV_E_NOMEM, "no memory to count what was read");
	*at = grown;
	*cap = 2 * (n + more);
	return RV_OK;
}

/* Forgets what the stream has from `number` on. */
static void cut(struct replay_stream *s, uint64_t number) {
	while (s->n > 0 && s->pieces[s->n - 1].number >= number)
		s->n--;
	if (s->n > 0 && s->pieces[s->n - 1].count > number - s->pieces[s->n - 1].number)
		s->pieces[s->n - 1].count = number - s->pieces[s->n - 1].number;
}

enum rv_err replay_stream_put(struct replay_stream *s, const struct reading *reads, struct rv_errtext *et) {
	void *pieces = s->pieces;
	uint64_t number = reads->first;
	cut(s, number);
	RV_TRY(grow(&pieces, s->n, (size_t)reads->n, &s->cap, sizeof *s->pieces, et));
	s->pieces = pieces;
	for (int i = 0; i < reads->n; i++) {
		s->pieces[s->n++] = (struct replay_piece){number, reads->pieces[i].begin, reads->pieces[i].count};
		number += reads->pieces[i].count;
	}
	return RV_OK;
}

static enum rv_err add_piece(struct replay_reads *r, uint64_t begin, uint64_t count, struct rv_errtext *et) {
	void *pieces = r->pieces;
	RV_TRY(grow(&pieces, r->n, 1, &r->cap, sizeof *r->pieces, et));
	r->pieces = pieces;
	r->pieces[r->n++] = (struct reading_piece){begin, count};
	return RV_OK;
}

enum rv_err replay_reads_add(struct replay_reads *r, const struct replay_stream *s, uint64_t first, uint64_t count,
							 struct rv_errtext *et) {
	const uint64_t end = first + count;
	uint64_t found = 0;
	for (size_t i = s->n; i > 0 && s->pieces[i - 1].number + s->pieces[i - 1].count > first; i--) {
		const struct replay_piece *p = &s->pieces[i - 1];
		const uint64_t from = p->number > first ? p->number : first;
		const uint64_t to = p->number + p->count < end ? p->number + p->count : end;
		if (from >= to)
			continue;
		RV_TRY(add_piece(r, p->begin + (from - p->number), to - from, et));
		found += to - from;
	}
	if (found == count)
		return RV_OK;
	return rv_fail(et, RV_E_PROTOCOL, "%" PRIu64 " sequences of a contribution, and its trace tells of %" PRIu64, count,
				   found);
}

static int by_begin(const void *a, const void *b) {
	const struct reading_piece *x = a, *y = b;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

enum rv_err replay_reads_count(struct replay_reads *r, uint64_t length, struct replay_counted *out,
							   struct rv_errtext *et) {
	uint64_t end = 0;
	*out = (struct replay_counted){0};
	if (r->n > 0)
		qsort(r->pieces, r->n, sizeof *r->pieces, by_begin);
	for (size_t i = 0; i < r->n; i++) {
		const struct reading_piece *p = &r->pieces[i];
		if (p->begin < end)
			return rv_fail(et, RV_E_PROTOCOL,
						   "sequence %" PRIu64 " of pass %" PRIu64 " is in two committed contributions",
						   p->begin % length, p->begin / length);
		end = p->begin + p->count;
		out->until = p->begin == out->until ? end : out->until;
		out->sequences += p->count;
	}
	out->passes = out->until / length;
	return RV_OK;
}

void replay_stream_release(struct replay_stream *s) {
	free(s->pieces);
	*s = (struct replay_stream){.n = 0};
}

void replay_reads_release(struct replay_reads *r) {
	free(r->pieces);
	*r = (struct replay_reads){.n = 0};
}
