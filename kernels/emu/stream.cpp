// stream.cpp: the host's side of the emulator (emu/runtime.h): memory, streams, events.
#include "kernels/emu/block.h"
#include "kernels/emu/launch.h"
#include "kernels/emu/runtime.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

struct emu_stream {
	std::deque<std::function<void()>> queue;
	uint64_t enqueued = 0, done = 0;
};

// The point of a stream that it was last recorded at. Shared with the waits for it: an event may be destroyed, or
// recorded anew, before they run.
struct emu_event {
	emu_stream *stream = nullptr;
	uint64_t at = 0;
};

namespace {

const int emulated_devices = 2; // with one memory and one clock: for programs that divide work between devices
const size_t memory_bytes = size_t(4) << 30, align_bytes = 256;

struct {
	std::recursive_mutex lock;
	emu_stream default_stream;
	std::vector<std::unique_ptr<emu_stream>> streams;
	std::map<void *, size_t> allocations;
	size_t allocated = 0;
	std::set<void *> registered;
	bool lazy = false;
} device;

using locked = std::lock_guard<std::recursive_mutex>;

emu_stream *stream_of(cudaStream_t s) {
	return s ? s : &device.default_stream;
}

// A stream that waits for itself, through others, would be a loop of waits; CUDA's order of enqueueing allows none.
void run_until(emu_stream *s, uint64_t count) {
	while (s->done < count) {
		std::function<void()> work = std::move(s->queue.front());
		s->queue.pop_front();
		s->done++; // before it runs: a wait inside must not find it again
		work();
	}
}

void run_all(emu_stream *s) {
	run_until(s, s->enqueued);
}

void run_everything() {
	run_all(&device.default_stream);
	for (auto &s : device.streams)
		run_all(s.get());
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
	emu_stream *s = stream_of(stream);
	s->queue.push_back(std::move(work));
	s->enqueued++;
	if (!device.lazy)
		run_all(s);
}

} // namespace

namespace emu {

void launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
			std::function<void()> body) {
	locked hold(device.lock);
	enqueue(stream, [=] { run_kernel(kernel, grid, block, shared_bytes, body); });
}

} // namespace emu

void emu_configure(const struct emu_options *options) {
	locked hold(device.lock);
	run_everything();
	device.lazy = options->streams == EMU_LAZY;
	emu::block_configure(*options);
}

struct emu_counters emu_count(void) {
	locked hold(device.lock);
	return emu::block_counters();
}

cudaError_t cudaGetDeviceCount(int *n) {
	*n = emulated_devices;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int number) {
	return number >= 0 && number < emulated_devices ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int number) {
	if (number < 0 || number >= emulated_devices)
		return cudaErrorInvalidValue;
	memset(out, 0, sizeof *out);
	strcpy(out->name, "emulator");
	out->totalGlobalMem = memory_bytes;
	out->multiProcessorCount = 1;
	out->major = 8;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
	locked hold(device.lock);
	*available = memory_bytes - device.allocated;
	*total = memory_bytes;
	return cudaSuccess;
}

// To the byte, so that AddressSanitizer sees the first one past the end.
cudaError_t cudaMalloc(void **out, size_t bytes) {
	locked hold(device.lock);
	*out = nullptr;
	if (bytes > memory_bytes - device.allocated || posix_memalign(out, align_bytes, bytes ? bytes : 1) != 0)
		return cudaErrorMemoryAllocation;
	memset(*out, 0xff, bytes); // NaN
	device.allocations[*out] = bytes;
	device.allocated += bytes;
	return cudaSuccess;
}

cudaError_t cudaFree(void *p) {
	locked hold(device.lock);
	run_everything();
	auto found = device.allocations.find(p);
	if (!p)
		return cudaSuccess;
	if (found == device.allocations.end())
		return cudaErrorInvalidValue;
	device.allocated -= found->second;
	device.allocations.erase(found);
	free(p);
	return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
	return cudaMalloc(out, bytes);
}

cudaError_t cudaFreeHost(void *p) {
	return cudaFree(p);
}

cudaError_t cudaHostRegister(void *p, size_t, unsigned) {
	locked hold(device.lock);
	return device.registered.insert(p).second ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostUnregister(void *p) {
	locked hold(device.lock);
	return device.registered.erase(p) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind, cudaStream_t s) {
	locked hold(device.lock);
	enqueue(s, [=] {
		if (bytes)
			memcpy(dst, src, bytes);
	});
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *dst, int byte, size_t bytes, cudaStream_t s) {
	locked hold(device.lock);
	enqueue(s, [=] {
		if (bytes)
			memset(dst, byte, bytes);
	});
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
	locked hold(device.lock);
	device.streams.push_back(std::make_unique<emu_stream>());
	*out = device.streams.back().get();
	return cudaSuccess;
}

// The stream itself stays: an event may still name it.
cudaError_t cudaStreamDestroy(cudaStream_t s) {
	return cudaStreamSynchronize(s);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
	locked hold(device.lock);
	run_all(stream_of(s));
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
	locked hold(device.lock);
	run_everything();
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
	*out = new emu_event;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
	delete e;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
	locked hold(device.lock);
	e->stream = stream_of(s);
	e->at = e->stream->enqueued;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
	locked hold(device.lock);
	if (e->stream)
		run_until(e->stream, e->at);
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
	locked hold(device.lock);
	emu_stream *of = e->stream;
	uint64_t at = e->at;
	if (of)
		enqueue(s, [=] { run_until(of, at); });
	return cudaSuccess;
}

void emu_enqueue(cudaStream_t s, void (*work)(void *arg), void *arg) {
	locked hold(device.lock);
	enqueue(s, [=] { work(arg); });
}

cudaError_t cudaGetLastError(void) {
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e) {
	return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : "invalid value";
}
