// stdarg.h: for NVRTC, which knows without it what device code uses of it.
#pragma once
