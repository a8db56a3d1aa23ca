/* codec_topk32.c: 32 of 4096 values, one bit each and Rice codes for their places; see
 * codec_topk.h. */
#include "outer/codec_topk.h"

const struct codec codec_topk32 = RV_TOPK_CODEC("topk32", 7, 32, 6);
