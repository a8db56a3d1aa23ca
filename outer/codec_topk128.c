/* codec_topk128.c: 128 of 4096 values, one bit each and Rice codes for their places; see
 * codec_topk.h. */
#include "outer/codec_topk.h"

const struct codec codec_topk128 = RV_TOPK_CODEC("topk128", 9, 128, 4);
