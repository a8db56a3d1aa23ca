// stddef.h: for NVRTC, which knows without it what device code uses of it.
#pragma once
#define offsetof(type, field) __builtin_offsetof(type, field)
