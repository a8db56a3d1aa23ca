// stdint.h: for NVRTC, which has no C library's headers: what device code uses of them, on a
// 64-bit host.
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
#define UINT32_C(x) x##u
#define UINT64_C(x) x##ul
