// math.h: for NVRTC, which knows the functions without it.
#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN      __int_as_float(0x7fffffff)
