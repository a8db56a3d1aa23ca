/* runtime.h: the CUDA runtime API for host code in C: the real one, or the emulator's (kernels/emu/, tests only). */
#ifndef RV_CUDA_RUNTIME_H
#define RV_CUDA_RUNTIME_H

#ifdef RV_CUDA_EMU
#include "kernels/emu/runtime.h"
#else
#include <cuda_runtime_api.h>
#endif

#endif
