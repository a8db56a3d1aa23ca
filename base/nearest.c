/* nearest.c: "did you mean": the nearest of some names by edit distance (Wagner and Fischer 1974,
 * with adjacent transpositions as one edit). */
#include "base/options.h"

#include <string.h>

enum { WORD_MAX = 63, DISTANCE_MAX = 3 };

static int min3(int a, int b, int c) {
	int m = a < b ? a : b;
	return m < c ? m : c;
}

/* Returns the distance of two words of at most WORD_MAX characters, with three rows of the
 * table. */
static int edit_distance(const char *a, size_t na, const char *b, size_t nb) {
	int rows[3][WORD_MAX + 1];
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int *row = rows[i % 3];
		const int *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
		row[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
			if (swapped && above2[j - 2] + 1 < row[j])
				row[j] = above2[j - 2] + 1;
		}
	}
	return rows[na % 3][nb];
}

const char *rv_nearest_name(const char *word, const char *const *names, int n) {
	size_t len = strlen(word);
	const char *best = NULL;
	int best_distance = DISTANCE_MAX + 1;
	if (len > WORD_MAX)
		return NULL;
	for (int i = 0; i < n; i++) {
		size_t name_len = strlen(names[i]);
		if (name_len > WORD_MAX)
			continue;
		int d = edit_distance(word, len, names[i], name_len);
		if (d < best_distance && (size_t)d * 2 < len) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}

bool rv_name_is_one_of(const char *name, const char *const *names) {
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}
