/* codec_topk128.c: 128 of 4096 values, two bits each and twelve for the place; see codec_topk.h. */
#include "outer/codec_topk.h"

const struct codec codec_topk128 = RV_TOPK_CODEC("topk128", 9, 128);
