/* rda.h: radial-directional averaging (Douillard et al., Decoupled DiLoCo, arXiv 2604.21428): the merged outer gradient
 * has the mean length and the mean direction of the contributions, where their plain mean is the shorter the more of
 * them there are, being nearly orthogonal. With weights w_i and phi(v) = v / |v|, phi(0) = 0:
 *     RDA(v_1 .. v_k) = (sum w_i |v_i| / sum w_i)  phi(sum w_i phi(v_i) / sum w_i)
 * Lengths are those of all that a round exchanges of the layers. What is no layer (embeddings, classifier, last norm)
 * is averaged plainly, as in the paper: its outer gradients are not orthogonal. Where all directions cancel, so is the
 * rest. The limit on contributions (outer/merge.h) holds for what is no layer; of layers only directions are averaged.
 *
 * Of equal contributions it is that contribution, and of one its own. */
#ifndef RV_LAB_RDA_H
#define RV_LAB_RDA_H

#include "lab/lab_run.h"

/* In place of averaging_reduce_vectors: r->reduced from these n encoded vectors. RV_E_NOMEM, RV_E_RANGE,
 * RV_E_CORRUPT. */
enum rv_err rda_reduce(struct lab_run *r, const uint8_t *const *vectors, const uint32_t *weights, int n,
					   struct rv_errtext *et);

#endif
