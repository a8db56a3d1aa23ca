/* dct_tiles.h: a model's parameters as tiles of at most 64 by 64, and the discrete cosine transform
 * of a tile (DeMo, arXiv 2411.19870, section 3).
 *
 * A matrix of rows x cols is cut into tiles of h x w, the largest divisors of rows and cols up to
 * 64; a vector is a matrix of one row. The orthonormal basis of a side s is
 *
 *     B_s[u][j] = c_u cos(pi (2 j + 1) u / (2 s)),   c_0 = sqrt(1 / s), other c_u = sqrt(2 / s)
 *
 * The coefficients of a tile X are C = B_h X B_w^T, and X = B_h^T C B_w. They take the places of
 * the values. */
#ifndef RV_LAB_DCT_TILES_H
#define RV_LAB_DCT_TILES_H

#include "base/err.h"
#include "train/model/model.h"

enum { DCT_SIDE_MAX = 64, DCT_TILE_MAX = DCT_SIDE_MAX * DCT_SIDE_MAX };

struct dct_tile {
	size_t offset, stride; /* place in the flat block: value (i, j) at offset + i * stride + j */
	int h, w;
	bool decay; /* true if its tensor decays */
};

struct dct_tiles {
	struct dct_tile *tiles;
	size_t n;
	float *basis[DCT_SIDE_MAX + 1];      /* (s, s) for each size that occurs */
	float *transposed[DCT_SIDE_MAX + 1]; /* their transposes */
};

/* Lists the tiles of `layout`. RV_E_NOMEM; *t can then be released. */
enum rv_err dct_tiles_init(struct dct_tiles *t, const struct model_layout *layout, struct rv_errtext *et);
void dct_tiles_release(struct dct_tiles *t);

/* Copy a tile out of the flat block to h * w values without gaps, and back. */
void dct_tile_get(const struct dct_tile *tile, const float *block, float *x);
void dct_tile_put(const struct dct_tile *tile, float *block, const float *x);
/* Transform h * w values without gaps, not in place. Always the same bits: sums in order, zeros
 * left out. */
void dct_forward(const struct dct_tiles *t, const struct dct_tile *tile, const float *x, float *coefficients);
void dct_inverse(const struct dct_tiles *t, const struct dct_tile *tile, const float *coefficients, float *x);

#endif
