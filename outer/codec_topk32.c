/* codec_topk32.c: 32 of 4096 values, two bits each and twelve for the place; see codec_topk.h. */
#include "outer/codec_topk.h"

const struct codec codec_topk32 = RV_TOPK_CODEC("topk32", 7, 32);
