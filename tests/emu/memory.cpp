// memory.cpp: the emulator's device memory and pinned host memory (emu/runtime.h).
#include "tests/emu/host.h"

#include <cstdlib>
#include <cstring>

using namespace emu;

static const size_t align_bytes = 256;

size_t emu::initial_memory() {
	const char *given = getenv("RIVULET_EMU_MEMORY_BYTES");
	return given ? strtoull(given, nullptr, 10) : EMU_MEMORY_BYTES;
}

static size_t free_memory() {
	return device.allocated < device.memory ? device.memory - device.allocated : 0;
}

void emu_limit_memory(size_t bytes) {
	locked hold(device.lock);
	device.memory = bytes;
	device.peak = device.allocated;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
	locked hold(device.lock);
	cudaError_t e = unsafe_in_capture("cudaMemGetInfo");
	if (e != cudaSuccess)
		return e;
	*available = free_memory();
	*total = device.memory;
	return broken();
}

// To the byte, so that AddressSanitizer sees the first one past the end.
static cudaError_t allocate(const char *call, void **out, size_t bytes, bool pinned) {
	locked hold(device.lock);
	*out = nullptr;
	cudaError_t e = unsafe_in_capture(call);
	if (e == cudaSuccess)
		e = refused(EMU_MALLOC);
	if (e != cudaSuccess)
		return e;
	if ((!pinned && bytes > free_memory()) || posix_memalign(out, align_bytes, bytes ? bytes : 1) != 0)
		return noted(cudaErrorMemoryAllocation);
	memset(*out, 0xff, bytes); // NaN
	device.allocations[*out] = {bytes, pinned};
	device.n_allocations++;
	(pinned ? device.pinned : device.allocated) += bytes;
	device.peak = device.allocated > device.peak ? device.allocated : device.peak;
	watch_memory();
	return cudaSuccess;
}

static cudaError_t release(const char *call, void *p) {
	locked hold(device.lock);
	if (!p)
		return cudaSuccess;
	cudaError_t e = unsafe_in_capture(call);
	if (e != cudaSuccess)
		return e;
	run_everything();
	auto found = device.allocations.find(p);
	if (found == device.allocations.end())
		return cudaErrorInvalidValue;
	(found->second.pinned ? device.pinned : device.allocated) -= found->second.bytes;
	device.allocations.erase(found);
	watch_memory();
	free(p);
	return broken();
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
	return allocate("cudaMalloc", out, bytes, false);
}

cudaError_t cudaFree(void *p) {
	return release("cudaFree", p);
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
	return allocate("cudaMallocHost", out, bytes, true);
}

cudaError_t cudaFreeHost(void *p) {
	return release("cudaFreeHost", p);
}

cudaError_t cudaHostRegister(void *p, size_t, unsigned) {
	locked hold(device.lock);
	cudaError_t e = unsafe_in_capture("cudaHostRegister");
	if (e != cudaSuccess)
		return e;
	return device.registered.insert(p).second ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostUnregister(void *p) {
	locked hold(device.lock);
	cudaError_t e = unsafe_in_capture("cudaHostUnregister");
	if (e != cudaSuccess)
		return e;
	return device.registered.erase(p) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) {
	return enqueue(s, [=] {
		if (bytes)
			memcpy(dst, src, bytes);
		if (kind == cudaMemcpyDeviceToHost)
			watch_read(bytes);
	});
}

cudaError_t cudaMemsetAsync(void *dst, int byte, size_t bytes, cudaStream_t s) {
	return enqueue(s, [=] {
		if (bytes)
			memset(dst, byte, bytes);
	});
}
