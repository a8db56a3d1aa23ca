/* rows.c: see rows.h. */
#include "base/rows.h"

#include "base/assert.h"

/* Returns the integer nearest to sqrt(n): the least r with (r + 1/2)^2 > n. */
static int nearest_root(int n) {
	int r = 0;
	while ((2 * r + 1) * (2 * r + 1) <= 4 * n)
		r++;
	return r;
}

int rows_choose(int n, int row_size) {
	RV_ASSERT(n >= 1 && n <= ROWS_MAX_ROSTER && row_size >= 2 && row_size <= ROWS_MAX_LENGTH);
	if (n <= row_size)
		return 1;
	const int root = nearest_root(n), least = (n + row_size - 1) / row_size, most = n / ROWS_LEAST_LENGTH;
	const int wanted = root < most ? root : most, rows = wanted > least ? wanted : least;
	return rows < ROWS_MAX ? rows : ROWS_MAX;
}

int rows_first(int n, int n_rows, int row) {
	RV_ASSERT(n_rows >= 1 && n_rows <= ROWS_MAX && n >= n_rows && row >= 0 && row <= n_rows);
	const int longer = n % n_rows;
	return row * (n / n_rows) + (row < longer ? row : longer);
}

int rows_length(int n, int n_rows, int row) {
	return rows_first(n, n_rows, row + 1) - rows_first(n, n_rows, row);
}

int rows_shortest(int row_size) {
	int shortest = ROWS_MAX_LENGTH;
	for (int n = row_size + 1; n <= ROWS_MAX_ROSTER; n++) {
		const int length = n / rows_choose(n, row_size);
		shortest = length < shortest ? length : shortest;
	}
	return shortest;
}
