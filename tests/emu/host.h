// host.h: what the files of the emulator's host side share: the device's memory, its streams, and
// what captures forbid.
#ifndef RV_TESTS_EMU_HOST_H
#define RV_TESTS_EMU_HOST_H

#include "tests/emu/runtime.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace emu {

using work = std::function<void()>;

struct capture {
	cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
	std::thread::id thread; // which began it
	std::vector<work> nodes;
};

} // namespace emu

struct emu_stream {
	std::deque<emu::work> queue;
	uint64_t enqueued = 0, done = 0;
	emu::capture capture;
};

namespace emu {

struct allocation {
	size_t bytes;
	bool pinned;
};

size_t initial_memory();

struct device_state {
	std::recursive_mutex lock;
	emu_stream default_stream;
	std::vector<std::unique_ptr<emu_stream>> streams;
	std::map<void *, allocation> allocations;
	size_t memory = initial_memory(), allocated = 0, pinned = 0, peak = 0;
	uint64_t n_allocations = 0;
	std::set<void *> registered;
	bool lazy = false;
	uint64_t stream_waits = 0, graph_launches = 0;
	double clock_ms = 0; // advances by launches and by emu_spend
};

extern device_state device;
using locked = std::lock_guard<std::recursive_mutex>;

emu_stream *stream_of(cudaStream_t s);
void run_until(emu_stream *s, uint64_t count);
void run_all(emu_stream *s);
void run_everything();
// Runs `w` in the order of the stream, or keeps it where the stream captures. Returns what CUDA
// would.
cudaError_t enqueue(cudaStream_t stream, work w);

// capture.cpp
// Spoils the stream's capture if it has one. Returns whether it had.
bool spoils(emu_stream *s);
// What calls that no capture sees do to captures, as CUDA documents for
// cudaThreadExchangeStreamCaptureMode: an error, and captures that are spoilt, or success. A
// relaxed capture of this thread permits them; none of ours has a reason to, so they end the
// process. `call` names it.
cudaError_t unsafe_in_capture(const char *call);
// Synchronizing or querying something that a stream's capture is a part of.
cudaError_t forbidden_in_capture();

// refusals.cpp The error that `call` returns instead of doing anything: of a broken device, or one
// that a test asked for.
cudaError_t refused(emu_call call);
// Notes an error as this thread's last one, which the next launch reports unless it is asked for
// before, and returns it.
cudaError_t noted(cudaError_t e);
// The error of every call on a device that is broken.
cudaError_t broken();

// watch.cpp: what another process is shown. watch_kernel: a kernel ended; watch_launch: a kernel,
// or a library's, ended that began at watch_now(); watch_read: bytes came from the device to the
// host; watch_memory: `device` has another number of bytes.
uint64_t watch_now();
void watch_kernel(const char *kernel);
void watch_read(size_t bytes);
void watch_launch(uint64_t began_ns);
void watch_memory();

} // namespace emu

#endif
