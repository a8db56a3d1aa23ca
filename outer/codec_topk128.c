/* codec_topk128.c: 128 of 4096 values, two bits each and twelve for the place. The format is in codec_topk.h. */
#include "outer/codec_topk.h"

RV_TOPK_LEVELS_CODEC(topk128, 9, 128)
