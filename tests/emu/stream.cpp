// stream.cpp: the emulator's device and its streams: what is enqueued, when it runs, and events
// (emu/runtime.h).
#include "tests/emu/block.h"
#include "tests/emu/host.h"
#include "tests/emu/launch.h"

#include <cstddef>
#include <cstring>

// The point of a stream that it was last recorded at, and the clock when the stream came there.
// Shared with the waits for it: an event may be destroyed, or recorded anew, before they run.
struct emu_event {
	emu_stream *stream = nullptr;
	uint64_t at = 0;
	std::shared_ptr<double> reached_ms;
};

namespace emu {

const int emulated_devices = 2; // with one memory and one clock: for programs that divide work between devices
const double launch_ms = 0.001;

device_state device;

emu_stream *stream_of(cudaStream_t s) {
	return s ? s : &device.default_stream;
}

// A stream that waits for itself, through others, would be a loop of waits; CUDA's order of
// enqueueing allows none.
void run_until(emu_stream *s, uint64_t count) {
	while (s->done < count) {
		work next = std::move(s->queue.front());
		s->queue.pop_front();
		s->done++; // before it runs: a wait inside must not find it again
		next();
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

cudaError_t enqueue(cudaStream_t stream, work w) {
	locked hold(device.lock);
	emu_stream *s = stream_of(stream);
	if (broken() != cudaSuccess)
		return broken();
	if (s->capture.status == cudaStreamCaptureStatusInvalidated)
		return cudaErrorStreamCaptureInvalidated;
	if (s->capture.status == cudaStreamCaptureStatusActive) {
		s->capture.nodes.push_back(std::move(w));
		return cudaSuccess;
	}
	s->queue.push_back(std::move(w));
	s->enqueued++;
	if (!device.lazy)
		run_all(s);
	return cudaSuccess;
}

cudaError_t launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, work body) {
	const cudaError_t e = enqueue(stream, [=] {
		device.clock_ms += launch_ms;
		const uint64_t began_ns = watch_now();
		run_kernel(kernel, grid, block, shared_bytes, body);
		watch_kernel(kernel);
		watch_launch(began_ns);
	});
	const cudaError_t before = cudaGetLastError();
	return e != cudaSuccess ? e : before;
}

} // namespace emu

using namespace emu;

void emu_configure(const struct emu_options *options) {
	locked hold(device.lock);
	run_everything();
	device.lazy = options->streams == EMU_LAZY;
	block_configure(*options);
}

struct emu_counters emu_count(void) {
	locked hold(device.lock);
	struct emu_counters c = block_counters();
	c.stream_waits = device.stream_waits;
	c.graph_launches = device.graph_launches;
	c.allocations = device.n_allocations;
	c.device_bytes = device.allocated;
	c.pinned_bytes = device.pinned;
	c.device_peak_bytes = device.peak;
	return c;
}

cudaError_t cudaGetDeviceCount(int *n) {
	*n = emulated_devices;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
	*version = 12000;
	return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) {
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

// Waiting for a stream, or asking how far it is: neither for one that captures, nor while this
// thread captures another.
static cudaError_t may_wait(const char *call, emu_stream *s) {
	if (spoils(s))
		return cudaErrorStreamCaptureUnsupported;
	cudaError_t e = unsafe_in_capture(call);
	return e != cudaSuccess ? e : broken();
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
	locked hold(device.lock);
	cudaError_t e = may_wait("cudaStreamSynchronize", stream_of(s));
	if (e != cudaSuccess)
		return e;
	device.stream_waits++;
	run_all(stream_of(s));
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
	locked hold(device.lock);
	cudaError_t e = may_wait("cudaStreamQuery", stream_of(s));
	if (e != cudaSuccess)
		return e;
	return stream_of(s)->done < stream_of(s)->enqueued ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
	locked hold(device.lock);
	cudaError_t e = forbidden_in_capture();
	if (e == cudaSuccess)
		e = broken();
	if (e == cudaSuccess)
		run_everything();
	return e;
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
	auto reached_ms = std::make_shared<double>(0);
	cudaError_t error = enqueue(s, [=] { *reached_ms = device.clock_ms; });
	if (error != cudaSuccess)
		return error;
	e->stream = stream_of(s);
	e->at = e->stream->enqueued;
	e->reached_ms = reached_ms;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
	locked hold(device.lock);
	cudaError_t error = unsafe_in_capture("cudaEventSynchronize");
	if (error == cudaSuccess)
		error = broken();
	if (error == cudaSuccess && e->stream)
		run_until(e->stream, e->at);
	return error;
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
	locked hold(device.lock);
	cudaError_t error = unsafe_in_capture("cudaEventQuery");
	if (error == cudaSuccess)
		error = broken();
	return error == cudaSuccess && e->stream && e->stream->done < e->at ? cudaErrorNotReady : error;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) {
	locked hold(device.lock);
	if (!begin->stream || !end->stream)
		return cudaErrorInvalidValue;
	if (begin->stream->done < begin->at || end->stream->done < end->at)
		return cudaErrorNotReady;
	*ms = static_cast<float>(*end->reached_ms - *begin->reached_ms);
	return broken();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
	locked hold(device.lock);
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
	emu_stream *of = e->stream;
	uint64_t at = e->at;
	return of ? enqueue(s, [=] { run_until(of, at); }) : broken();
}

cudaError_t emu_enqueue(cudaStream_t s, void (*work)(const void *arg), const void *arg, size_t bytes) {
	auto words = std::make_shared<std::vector<std::max_align_t>>(bytes / sizeof(std::max_align_t) + 1);
	memcpy(words->data(), arg, bytes);
	return enqueue(s, [=] {
		const uint64_t began_ns = watch_now();
		work(words->data());
		watch_launch(began_ns);
	});
}

cudaError_t emu_spend(cudaStream_t s, float ms) {
	return enqueue(s, [=] { device.clock_ms += static_cast<double>(ms); });
}
