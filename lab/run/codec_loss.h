/* codec_loss.h: the loss of a codec on an outer gradient: how far the decoded values are from the
 * encoded ones. */
#ifndef RV_LAB_CODEC_LOSS_H
#define RV_LAB_CODEC_LOSS_H

#include "outer/global.h"

struct codec_loss {
	double error;  /* |decoded - delta| / |delta|; 0: nothing was lost, or delta is 0 */
	double cosine; /* between delta and decoded; 0 if one of them is 0 */
};

/* Measures the loss of a contribution from g's theta and theta_local. With error feedback it
 * includes the residuals of earlier ones, and is larger. RV_E_NOMEM; the faults of the codec's
 * decode. */
enum rv_err codec_loss_measure(const struct global_state *g, const float *theta_local, const uint8_t *encoded,
							   struct codec_loss *out, struct rv_errtext *et);

#endif
