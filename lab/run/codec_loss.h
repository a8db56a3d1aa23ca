/* codec_loss.h: what a codec does to an outer gradient: how far what is decoded lies from what was encoded. */
#ifndef RV_LAB_CODEC_LOSS_H
#define RV_LAB_CODEC_LOSS_H

#include "outer/global.h"

struct codec_loss {
	double error;  /* |decoded - delta| / |delta|; 0: nothing was lost, or delta is 0 */
	double cosine; /* between delta and decoded; 0 where one of them is 0 */
};

/* Of a contribution from g's theta and theta_local; with error feedback it also says what earlier ones have left, and
 * lies farther from delta. RV_E_NOMEM; what the codec's decode refuses. */
enum rv_err codec_loss_measure(const struct global_state *g, const float *theta_local, const uint8_t *encoded,
							   struct codec_loss *out, struct rv_errtext *et);

#endif
