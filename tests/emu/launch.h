// launch.h: how kernels get into a stream.
#ifndef RV_TESTS_EMU_LAUNCH_H
#define RV_TESTS_EMU_LAUNCH_H

#include "tests/emu/block.h"

#include <functional>

namespace emu {

// `body` is what one thread of the grid runs. Returns what cudaGetLastError would behind the
// launch.
cudaError_t launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
				   std::function<void()> body);

} // namespace emu

#endif
