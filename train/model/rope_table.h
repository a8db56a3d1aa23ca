/* rope_table.h: cosines and sines of the rotary embedding (arXiv 2104.09864), with Hugging Face's
 * ways to stretch it.
 *
 * Pair i of a head's channels turns at position p by p * f_i radians, f_i = theta^(-2i / head_dim),
 * and
 *   linear: f_i / factor (arXiv 2306.15595);
 *   llama3: of wave length w = 2 pi / f_i: f_i / factor if w > original / low_freq, f_i if
 *           w < original / high_freq, and in between (1 - s) f_i / factor + s f_i with
 *           s = (original / w - low_freq) / (high_freq - low_freq). */
#ifndef RV_TRAIN_MODEL_ROPE_TABLE_H
#define RV_TRAIN_MODEL_ROPE_TABLE_H

#include "train/model/model.h"

/* Returns f_i of pair i, stretched. */
double rope_table_frequency(const struct model_rope *r, int head_dim, int pair);
/* Writes out (head_dim / 2, 2): cos and sin of each pair at `position`, computed in double.
 * head_dim is even. */
void rope_table_row(const struct model_rope *r, int head_dim, int position, float *out);

#endif
