// stream.cpp: the host's side of the emulator (emu/runtime.h): memory, streams, events.
#include "kernels/emu/block.h"
#include "kernels/emu/launch.h"
#include "kernels/emu/runtime.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

using emu_nodes = std::vector<std::function<void()>>;

struct emu_stream {
	std::deque<std::function<void()>> queue;
	uint64_t enqueued = 0, done = 0;
	cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	emu_nodes captured;
};

// What a capture kept. Shared with its launches that have not run: a graph may be destroyed before.
struct emu_graph {
	std::shared_ptr<const emu_nodes> nodes;
};

// The point of a stream that it was last recorded at. Shared with the waits for it: an event may be destroyed, or
// recorded anew, before they run.
struct emu_event {
	emu_stream *stream = nullptr;
	uint64_t at = 0;
};

namespace {

const int emulated_devices = 2; // with one memory and one clock: for programs that divide work between devices
const size_t align_bytes = 256;

size_t initial_memory() {
	const char *said = getenv("RIVULET_EMU_MEMORY_BYTES");
	return said ? strtoull(said, nullptr, 10) : EMU_MEMORY_BYTES;
}

struct allocation {
	size_t bytes;
	bool pinned;
};

struct {
	std::recursive_mutex lock;
	emu_stream default_stream;
	std::vector<std::unique_ptr<emu_stream>> streams;
	std::map<void *, allocation> allocations;
	size_t memory = initial_memory(), allocated = 0, pinned = 0, peak = 0;
	uint64_t n_allocations = 0;
	std::set<void *> registered;
	bool lazy = false;
	uint64_t stream_waits = 0, graph_launches = 0;
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
	if (s->capture != cudaStreamCaptureStatusNone) {
		s->captured.push_back(std::move(work));
		return;
	}
	s->queue.push_back(std::move(work));
	s->enqueued++;
	if (!device.lazy)
		run_all(s);
}

// What a stream cannot do while it captures.
bool spoils(emu_stream *s) {
	if (s->capture == cudaStreamCaptureStatusNone)
		return false;
	s->capture = cudaStreamCaptureStatusInvalidated;
	return true;
}

size_t free_memory() {
	return device.allocated < device.memory ? device.memory - device.allocated : 0;
}

// To the byte, so that AddressSanitizer sees the first one past the end.
cudaError_t allocate(void **out, size_t bytes, bool pinned) {
	*out = nullptr;
	if ((!pinned && bytes > free_memory()) || posix_memalign(out, align_bytes, bytes ? bytes : 1) != 0)
		return cudaErrorMemoryAllocation;
	memset(*out, 0xff, bytes); // NaN
	device.allocations[*out] = {bytes, pinned};
	device.n_allocations++;
	(pinned ? device.pinned : device.allocated) += bytes;
	device.peak = device.allocated > device.peak ? device.allocated : device.peak;
	return cudaSuccess;
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
	struct emu_counters c = emu::block_counters();
	c.stream_waits = device.stream_waits;
	c.graph_launches = device.graph_launches;
	c.allocations = device.n_allocations;
	c.device_bytes = device.allocated;
	c.pinned_bytes = device.pinned;
	c.device_peak_bytes = device.peak;
	return c;
}

void emu_limit_memory(size_t bytes) {
	locked hold(device.lock);
	device.memory = bytes;
	device.peak = device.allocated;
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
	out->totalGlobalMem = device.memory;
	out->multiProcessorCount = 1;
	out->major = 8;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
	locked hold(device.lock);
	*available = free_memory();
	*total = device.memory;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
	locked hold(device.lock);
	return allocate(out, bytes, false);
}

cudaError_t cudaFree(void *p) {
	locked hold(device.lock);
	run_everything();
	auto found = device.allocations.find(p);
	if (!p)
		return cudaSuccess;
	if (found == device.allocations.end())
		return cudaErrorInvalidValue;
	(found->second.pinned ? device.pinned : device.allocated) -= found->second.bytes;
	device.allocations.erase(found);
	free(p);
	return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
	locked hold(device.lock);
	return allocate(out, bytes, true);
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
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
	device.stream_waits++;
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
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
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
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
	emu_stream *of = e->stream;
	uint64_t at = e->at;
	if (of)
		enqueue(s, [=] { run_until(of, at); });
	return cudaSuccess;
}

void emu_enqueue(cudaStream_t s, void (*work)(const void *arg), const void *arg, size_t bytes) {
	locked hold(device.lock);
	auto words = std::make_shared<std::vector<std::max_align_t>>(bytes / sizeof(std::max_align_t) + 1);
	memcpy(words->data(), arg, bytes);
	enqueue(s, [=] { work(words->data()); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
	locked hold(device.lock);
	emu_stream *s = stream_of(stream);
	if (!stream || spoils(s)) // the default stream cannot
		return cudaErrorStreamCaptureUnsupported;
	s->capture = cudaStreamCaptureStatusActive;
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
	locked hold(device.lock);
	emu_stream *s = stream_of(stream);
	*out = nullptr;
	bool whole = s->capture == cudaStreamCaptureStatusActive;
	emu_nodes nodes = std::move(s->captured);
	s->captured.clear();
	s->capture = cudaStreamCaptureStatusNone;
	if (!whole)
		return cudaErrorStreamCaptureInvalidated;
	*out = new emu_graph{std::make_shared<const emu_nodes>(std::move(nodes))};
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
	locked hold(device.lock);
	*out = stream_of(s)->capture;
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
	*out = new emu_graph(*graph);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
	locked hold(device.lock);
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
	device.graph_launches++;
	enqueue(s, [nodes = graph->nodes] {
		for (const std::function<void()> &node : *nodes)
			node();
	});
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
	delete graph;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
	delete graph;
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e) {
	return e == cudaSuccess                         ? "no error"
		   : e == cudaErrorMemoryAllocation         ? "out of memory"
		   : e >= cudaErrorStreamCaptureUnsupported ? "not while a stream captures"
													: "invalid value";
}
