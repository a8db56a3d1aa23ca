/* codec_topk64.c: 64 of 4096 values, one bit each and Rice codes for their places; see
 * codec_topk.h. */
#include "outer/codec_topk.h"

const struct codec codec_topk64 = RV_TOPK_CODEC("topk64", 8, 64, 5);
