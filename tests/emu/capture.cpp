// capture.cpp: captures of streams and the graphs they become, and what CUDA forbids while a stream
// captures.
#include "tests/emu/host.h"

#include <cstdio>
#include <unistd.h>

// What a capture kept. Shared with its launches that have not run: a graph may be destroyed before.
struct emu_graph {
	std::shared_ptr<const std::vector<emu::work>> nodes;
};

namespace {

using emu::device;
using emu::locked;

bool captures(const emu_stream *s) {
	return s->capture.status != cudaStreamCaptureStatusNone;
}

bool of_this_thread(const emu_stream *s) {
	return captures(s) && s->capture.thread == std::this_thread::get_id();
}

// Whether a capture of `s` forbids this thread what captures do not see.
bool forbids(const emu_stream *s) {
	if (!captures(s) || s->capture.mode == cudaStreamCaptureModeRelaxed)
		return false;
	return s->capture.mode == cudaStreamCaptureModeGlobal || of_this_thread(s);
}

} // namespace

namespace emu {

bool spoils(emu_stream *s) {
	if (!captures(s))
		return false;
	s->capture.status = cudaStreamCaptureStatusInvalidated;
	return true;
}

cudaError_t unsafe_in_capture(const char *call) {
	bool forbidden = false;
	for (auto &s : device.streams) {
		if (!forbids(s.get())) {
			if (!of_this_thread(s.get()))
				continue;
			fprintf(stderr, "emulator: %s while this thread captures a stream: a graph would not repeat it\n", call);
			fflush(nullptr);
			_exit(EMU_FAULT_STATUS);
		}
		forbidden = spoils(s.get());
	}
	return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t forbidden_in_capture() {
	bool forbidden = false;
	for (auto &s : device.streams)
		forbidden = spoils(s.get()) || forbidden;
	return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

} // namespace emu

using namespace emu;

bool emu_thread_captures(void) {
	locked hold(device.lock);
	for (auto &s : device.streams)
		if (of_this_thread(s.get()))
			return true;
	return false;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
	locked hold(device.lock);
	emu_stream *s = stream_of(stream);
	cudaError_t e = refused(EMU_BEGIN_CAPTURE);
	if (e != cudaSuccess)
		return e;
	if (!stream || spoils(s)) // the default stream cannot
		return cudaErrorStreamCaptureUnsupported;
	s->capture.status = cudaStreamCaptureStatusActive;
	s->capture.mode = mode;
	s->capture.thread = std::this_thread::get_id();
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
	locked hold(device.lock);
	emu_stream *s = stream_of(stream);
	*out = nullptr;
	emu::capture ended = std::move(s->capture);
	s->capture = emu::capture();
	cudaError_t e = refused(EMU_END_CAPTURE);
	if (e != cudaSuccess)
		return e;
	if (ended.status != cudaStreamCaptureStatusActive)
		return ended.status == cudaStreamCaptureStatusNone ? cudaErrorInvalidValue : cudaErrorStreamCaptureInvalidated;
	*out = new emu_graph{std::make_shared<const std::vector<work>>(std::move(ended.nodes))};
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
	locked hold(device.lock);
	*out = stream_of(s)->capture.status;
	return broken();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
	locked hold(device.lock);
	cudaError_t e = refused(EMU_INSTANTIATE);
	*out = e == cudaSuccess ? new emu_graph(*graph) : nullptr;
	return e;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
	locked hold(device.lock);
	cudaError_t e = refused(EMU_GRAPH_LAUNCH);
	if (e != cudaSuccess)
		return e;
	if (spoils(stream_of(s)))
		return cudaErrorStreamCaptureUnsupported;
	device.graph_launches++;
	return enqueue(s, [nodes = graph->nodes] {
		for (const work &node : *nodes)
			node();
	});
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
	delete graph;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
	delete graph;
	return cudaSuccess;
}
