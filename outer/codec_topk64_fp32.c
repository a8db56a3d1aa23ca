/* codec_topk64_fp32.c: 64 of 4096 values as they are: what sparsity alone costs. The format is in codec_topk.h. */
#include "outer/codec_topk.h"

RV_TOPK_CODEC(topk64_fp32, 10, 64, TOPK_FP32, NULL)
