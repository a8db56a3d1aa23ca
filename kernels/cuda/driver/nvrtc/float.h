// float.h: for NVRTC: see stdint.h.
#pragma once
#define FLT_MAX     3.402823466e+38f
#define FLT_MIN     1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
