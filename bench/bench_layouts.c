/* bench_layouts.c: how long an all-reduce of a large roster of mixed lines takes by its layout, by
 * the linear model: each participant's bytes over its line's rate, in both directions, with the
 * layouts and columns that the coordinator's core makes (coordinator/core/rows.h, deal.h).
 *
 *     bench_layouts [N...]     256, 1024, ... participants; default 64 128 256 512 1024
 *
 * Lines: a third each of 20/5, 100/20 and 500/110 Mbit/s, drawn by lot; or of 50/25, 100/50 and
 * 200/100, where no line is so slow that it alone decides. Homes are in four regions, 15 ms apart
 * inside and 150 ms between. The payload is 124 MB (int8); partial sums are fp32. A chunk waits for
 * no line but by its own bytes; the way of the last one is added: from the row to its owner, to the
 * final owner of the column, and back. One table a mix: seconds of the exchange. */
#include "base/rng.h"
#include "base/rows.h"
#include "coordinator/core/deal.h"
#include "coordinator/core/rows.h"
#include "coordinator/core/set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 1024, REGIONS = 4, DRAWS = 5, MIXES = 2, LINES = 3 };
static const double PAYLOAD = 124e6, SUM = 4, NEAR_S = 0.015, FAR_S = 0.150;

struct line {
	double up, down; /* bytes/s */
};
static const double MBIT = 1e6 / 8;
static const struct line MIX[MIXES][LINES] = {{{5, 20}, {20, 100}, {110, 500}}, {{25, 50}, {50, 100}, {100, 200}}};

struct home {
	struct line line;
	int region;
};

struct world {
	int n, n_rows;
	struct home homes[NET_MAX_ROSTER]; /* by member number */
	uint16_t order[NET_MAX_ROSTER];    /* member at each place */
	struct core_rows rows;
};

static uint64_t rate_of(const struct home *h) {
	return (uint64_t)(h->line.up < h->line.down ? h->line.up : h->line.down);
}

static void draw(struct world *w, int n, int mix, uint64_t seed) {
	struct rv_rng rng = rv_rng_of(seed, (uint64_t)n);
	w->n = n;
	w->n_rows = rows_choose(n, n > NET_MAX_ROW ? NET_MAX_ROW : n / 8);
	for (int i = 0; i < n; i++) {
		const struct line *l = &MIX[mix][rv_rng_below(&rng, LINES)];
		w->homes[i] = (struct home){{l->up * MBIT, l->down * MBIT}, (int)rv_rng_below(&rng, REGIONS)};
	}
}

/* ---- layouts ---- */

typedef void arrange_fn(struct world *w);

static void by_number(struct world *w) {
	for (int i = 0; i < w->n; i++)
		w->order[i] = (uint16_t)i;
}

static void dealt(struct world *w) {
	struct deal_entry entries[NET_MAX_ROSTER];
	uint64_t rates[NET_MAX_ROSTER];
	uint8_t level[NET_MAX_ROSTER];
	for (int i = 0; i < w->n; i++)
		rates[i] = rate_of(&w->homes[i]);
	deal_lines(rates, w->n, level);
	for (int i = 0; i < w->n; i++)
		entries[i] = (struct deal_entry){.level = level[i], .row = -1};
	deal_rows(entries, w->n, w->n_rows, NULL, 0, w->order);
}

static bool is_faster(const struct world *w, int a, int b) {
	return w->homes[a].line.up > w->homes[b].line.up;
}
static bool is_before(const struct world *w, int a, int b) {
	const int x = w->homes[a].region, y = w->homes[b].region;
	return x != y ? x < y : is_faster(w, a, b);
}

/* Sorts places first..last - 1. */
static void sort(struct world *w, int first, int last, bool (*before)(const struct world *w, int a, int b)) {
	for (int i = first + 1; i < last; i++) {
		const uint16_t member = w->order[i];
		int at = i;
		for (; at > first && before(w, member, w->order[at - 1]); at--)
			w->order[at] = w->order[at - 1];
		w->order[at] = member;
	}
}

static void fast_with_fast(struct world *w) {
	by_number(w);
	sort(w, 0, w->n, is_faster);
}

static void sort_in_rows(struct world *w) {
	for (int row = 0; row < w->n_rows; row++)
		sort(w, rows_first(w->n, w->n_rows, row), rows_first(w->n, w->n_rows, row + 1), is_faster);
}

static void near_with_near(struct world *w) {
	by_number(w);
	sort(w, 0, w->n, is_before);
	sort_in_rows(w);
}

/* Deals each region to its own rows: near with near, and fast and slow mixed. */
static void near_and_dealt(struct world *w) {
	static struct world part;
	int next = 0;
	near_with_near(w);
	for (int first = 0, row = 0; row < w->n_rows;) {
		const int rows = (w->n_rows - row + REGIONS - 1) / REGIONS < 1 ? 1 : w->n_rows / REGIONS;
		const int end = row + (rows > 0 ? rows : 1) < w->n_rows ? row + (rows > 0 ? rows : 1) : w->n_rows;
		part.n = rows_first(w->n, w->n_rows, end) - first;
		part.n_rows = end - row;
		for (int i = 0; i < part.n; i++)
			part.homes[i] = w->homes[w->order[first + i]];
		dealt(&part);
		uint16_t members[NET_MAX_ROSTER];
		memcpy(members, w->order + first, (size_t)part.n * sizeof members[0]);
		for (int i = 0; i < part.n; i++)
			w->order[next++] = members[part.order[i]];
		first += part.n;
		row = end;
	}
	sort_in_rows(w);
}

/* ---- the model ---- */

static void lay_out(struct world *w, bool equal) {
	uint64_t all[SET_WORDS(NET_MAX_ROSTER)], rates[NET_MAX_ROSTER];
	static const uint64_t none[SET_WORDS(NET_MAX_ROSTER)];
	set_first(all, w->n, SET_WORDS(NET_MAX_ROSTER));
	for (int place = 0; place < w->n; place++)
		rates[place] = rate_of(&w->homes[w->order[place]]);
	const struct core_lines lines = {all, none, equal ? NULL : rates};
	core_rows_lay_out(&w->rows, w->n, w->n > NET_MAX_ROW ? NET_MAX_ROW : w->n / 8, CHUNKS, &lines, 1);
}

/* Returns the seconds in which the participant's bytes pass its line. */
static double bytes_s(const struct world *w, int place) {
	const struct core_rows *r = &w->rows;
	const double k = (double)core_rows_owned(r, place) / CHUNKS, rows = w->n_rows;
	const double length = core_rows_length(r, core_rows_row_of(r, place));
	const double up = 1 - k + k * (length - 1) + k * (1 - 1 / rows) * (SUM + 1);
	const struct line *l = &w->homes[w->order[place]].line; /* as many bytes come as go */
	return PAYLOAD * up / (l->up < l->down ? l->up : l->down);
}

/* Returns the longest way between two of a set of regions. */
static double way_s(unsigned regions) {
	return (regions & (regions - 1)) != 0 ? FAR_S : NEAR_S;
}

static double last_chunk_s(const struct world *w) {
	double row_s = 0;
	unsigned all = 0;
	for (int row = 0; row < w->n_rows; row++) {
		unsigned in_row = 0;
		for (int place = w->rows.plan.first[row]; place < w->rows.plan.first[row + 1]; place++)
			in_row |= 1u << w->homes[w->order[place]].region;
		row_s = way_s(in_row) > row_s ? way_s(in_row) : row_s;
		all |= in_row;
	}
	return row_s + way_s(all); /* half a round trip there and half back, twice */
}

static double exchange_s(struct world *w, arrange_fn *arrange, bool equal) {
	double longest = 0;
	arrange(w);
	lay_out(w, equal);
	for (int place = 0; place < w->n; place++) {
		const double s = bytes_s(w, place);
		longest = s > longest ? s : longest;
	}
	return longest + last_chunk_s(w);
}

static const struct {
	const char *name;
	arrange_fn *arrange;
	bool equal;
} LAYOUTS[] = {{"by number, equal", by_number, true},
			   {"by number", by_number, false},
			   {"fast with fast", fast_with_fast, false},
			   {"near with near", near_with_near, false},
			   {"near, dealt", near_and_dealt, false},
			   {"dealt, equal", dealt, true},
			   {"dealt", dealt, false}};
enum { N_LAYOUTS = sizeof LAYOUTS / sizeof LAYOUTS[0] };

static void print_row(int n, int mix) {
	static struct world w;
	printf("%6d", n);
	for (int k = 0; k < N_LAYOUTS; k++) {
		double sum = 0;
		for (int seed = 0; seed < DRAWS; seed++) {
			draw(&w, n, mix, (uint64_t)seed);
			sum += exchange_s(&w, LAYOUTS[k].arrange, LAYOUTS[k].equal);
		}
		printf(" %17.1f", sum / DRAWS);
	}
	printf("\n");
}

int main(int argc, char **argv) {
	static char *usual[] = {"64", "128", "256", "512", "1024"};
	char **sizes = argc > 1 ? argv + 1 : usual;
	const int n_sizes = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);
	for (int mix = 0; mix < MIXES; mix++) {
		printf("%6s", "");
		for (int k = 0; k < N_LAYOUTS; k++)
			printf(" %17s", LAYOUTS[k].name);
		printf("\n");
		for (int i = 0; i < n_sizes; i++) {
			const int n = atoi(sizes[i]);
			if (n < 16 || n > NET_MAX_ROSTER) {
				(void)fprintf(stderr, "bench_layouts: %s: 16 to %d participants\n", sizes[i], NET_MAX_ROSTER);
				return 2;
			}
			print_row(n, mix);
		}
	}
	return 0;
}
