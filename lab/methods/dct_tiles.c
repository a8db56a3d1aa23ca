/* dct_tiles.c: see dct_tiles.h. */
#include "lab/methods/dct_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int side_of(int n) {
	int side = n < DCT_SIDE_MAX ? n : DCT_SIDE_MAX;
	while (n % side != 0)
		side--;
	return side;
}

/* Sets the matrix shape of a tensor. A vector is one row: as one column it would give tiles one
 * value wide, and strides of one. */
static void shape_of(const struct model_tensor *tensor, int *rows, int *cols) {
	*rows = tensor->cols == 1 ? 1 : tensor->rows;
	*cols = tensor->cols == 1 ? tensor->rows : tensor->cols;
}

static enum rv_err make_basis(struct dct_tiles *t, int side, struct rv_errtext *et) {
	const size_t s = (size_t)side;
	if (t->basis[s])
		return RV_OK;
	t->basis[s] = malloc(s * s * sizeof(float));
	t->transposed[s] = malloc(s * s * sizeof(float));
	if (!t->basis[s] || !t->transposed[s])
		return rv_fail(et, RV_E_NOMEM, "no memory for a cosine basis of %d", side);
	for (size_t u = 0; u < s; u++)
		for (size_t j = 0; j < s; j++) {
			const double angle = 3.14159265358979323846 * (2 * (double)j + 1) * (double)u / (2 * (double)s);
			t->basis[s][u * s + j] = (float)(sqrt((u == 0 ? 1 : 2) / (double)s) * cos(angle));
			t->transposed[s][j * s + u] = t->basis[s][u * s + j];
		}
	return RV_OK;
}

/* Adds the tiles of a tensor; only counts while there is no table. */
static void add_tiles(struct dct_tiles *t, const struct model_tensor *tensor) {
	int rows, cols;
	shape_of(tensor, &rows, &cols);
	const int h = side_of(rows), w = side_of(cols);
	for (int i = 0; i < rows; i += h)
		for (int j = 0; j < cols; j += w) {
			const size_t offset = tensor->offset + (size_t)i * (size_t)cols + (size_t)j;
			if (t->tiles)
				t->tiles[t->n] = (struct dct_tile){offset, (size_t)cols, h, w, tensor->decay};
			t->n++;
		}
}

enum rv_err dct_tiles_init(struct dct_tiles *t, const struct model_layout *layout, struct rv_errtext *et) {
	*t = (struct dct_tiles){.n = 0};
	for (int i = 0; i < layout->n_tensors; i++) {
		int rows, cols;
		shape_of(&layout->tensors[i], &rows, &cols);
		RV_TRY(make_basis(t, side_of(rows), et));
		RV_TRY(make_basis(t, side_of(cols), et));
		add_tiles(t, &layout->tensors[i]);
	}
	t->tiles = calloc(t->n, sizeof *t->tiles);
	if (!t->tiles)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu tiles", t->n);
	t->n = 0;
	for (int i = 0; i < layout->n_tensors; i++)
		add_tiles(t, &layout->tensors[i]);
	return RV_OK;
}

void dct_tiles_release(struct dct_tiles *t) {
	free(t->tiles);
	for (int s = 0; s <= DCT_SIDE_MAX; s++) {
		free(t->basis[s]);
		free(t->transposed[s]);
	}
	*t = (struct dct_tiles){.n = 0};
}

void dct_tile_get(const struct dct_tile *tile, const float *block, float *x) {
	for (size_t i = 0; i < (size_t)tile->h; i++)
		memcpy(x + i * (size_t)tile->w, block + tile->offset + i * tile->stride, (size_t)tile->w * sizeof *x);
}

void dct_tile_put(const struct dct_tile *tile, float *block, const float *x) {
	for (size_t i = 0; i < (size_t)tile->h; i++)
		memcpy(block + tile->offset + i * tile->stride, x + i * (size_t)tile->w, (size_t)tile->w * sizeof *x);
}

/* Computes out (m, n) = a (m, k) b (k, n). */
static void product(const float *a, const float *b, float *out, size_t m, size_t k, size_t n) {
	memset(out, 0, m * n * sizeof *out);
	for (size_t i = 0; i < m; i++)
		for (size_t l = 0; l < k; l++) {
			const float factor = a[i * k + l];
			if (factor == 0)
				continue;
			for (size_t j = 0; j < n; j++)
				out[i * n + j] += factor * b[l * n + j];
		}
}

void dct_forward(const struct dct_tiles *t, const struct dct_tile *tile, const float *x, float *coefficients) {
	const size_t h = (size_t)tile->h, w = (size_t)tile->w;
	float half[DCT_TILE_MAX];
	product(x, t->transposed[w], half, h, w, w);
	product(t->basis[h], half, coefficients, h, h, w);
}

void dct_inverse(const struct dct_tiles *t, const struct dct_tile *tile, const float *coefficients, float *x) {
	const size_t h = (size_t)tile->h, w = (size_t)tile->w;
	float half[DCT_TILE_MAX];
	product(coefficients, t->basis[w], half, h, w, w); /* few of them are not zero */
	product(t->transposed[h], half, x, h, h, w);
}
