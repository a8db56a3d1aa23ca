// refusals.cpp: calls of the runtime that fail because a test says so (emu_refuse), and devices
// that break (emu_break).
#include "tests/emu/host.h"

namespace {

struct refusal {
	cudaError_t error = cudaSuccess;
	int times = 0;
};

refusal refusals[EMU_CALLS];
cudaError_t sticky = cudaSuccess;
thread_local cudaError_t last = cudaSuccess;

} // namespace

namespace emu {

cudaError_t broken() {
	return sticky;
}

cudaError_t refused(emu_call call) {
	if (sticky != cudaSuccess)
		return sticky;
	if (refusals[call].times == 0)
		return cudaSuccess;
	refusals[call].times--;
	if (refusals[call].error == cudaErrorIllegalAddress)
		sticky = cudaErrorIllegalAddress;
	return noted(refusals[call].error);
}

cudaError_t noted(cudaError_t e) {
	if (e != cudaSuccess && e != cudaErrorNotReady)
		last = e;
	return e;
}

} // namespace emu

void emu_refuse(enum emu_call call, cudaError_t error, int times) {
	emu::locked hold(emu::device.lock);
	refusals[call].error = error;
	refusals[call].times = times;
}

void emu_break(cudaError_t error) {
	emu::locked hold(emu::device.lock);
	sticky = error;
}

cudaError_t cudaGetLastError(void) {
	const cudaError_t e = cudaPeekAtLastError();
	last = cudaSuccess;
	return e;
}

cudaError_t cudaPeekAtLastError(void) {
	emu::locked hold(emu::device.lock);
	return sticky != cudaSuccess ? sticky : last;
}

const char *cudaGetErrorName(cudaError_t e) {
	switch (e) {
	case cudaSuccess:
		return "cudaSuccess";
	case cudaErrorInvalidValue:
		return "cudaErrorInvalidValue";
	case cudaErrorMemoryAllocation:
		return "cudaErrorMemoryAllocation";
	case cudaErrorNotReady:
		return "cudaErrorNotReady";
	case cudaErrorIllegalAddress:
		return "cudaErrorIllegalAddress";
	case cudaErrorNotSupported:
		return "cudaErrorNotSupported";
	case cudaErrorStreamCaptureUnsupported:
		return "cudaErrorStreamCaptureUnsupported";
	case cudaErrorStreamCaptureInvalidated:
		return "cudaErrorStreamCaptureInvalidated";
	case cudaErrorStreamCaptureImplicit:
		return "cudaErrorStreamCaptureImplicit";
	case cudaErrorCapturedEvent:
		return "cudaErrorCapturedEvent";
	}
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e) {
	switch (e) {
	case cudaSuccess:
		return "no error";
	case cudaErrorMemoryAllocation:
		return "out of memory";
	case cudaErrorIllegalAddress:
		return "an illegal memory access was encountered";
	case cudaErrorNotSupported:
		return "operation not supported";
	case cudaErrorStreamCaptureUnsupported:
		return "operation not permitted when stream is capturing";
	case cudaErrorStreamCaptureInvalidated:
		return "operation failed due to a previous error during capture";
	default:
		return e >= cudaErrorStreamCaptureUnsupported ? "not while a stream captures" : "invalid value";
	}
}
