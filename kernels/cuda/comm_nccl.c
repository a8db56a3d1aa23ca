/* comm_nccl.c: see comm_nccl.h. */
#include "kernels/cuda/comm_nccl.h"

#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/vendor/vendor.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLL_NS = 20000 };

_Static_assert(sizeof(struct comm_group_id) == sizeof(ncclUniqueId), "a group's id is NCCL's");

struct comm_member {
	const struct nccl_api *api;
	struct cuda_backend *cu;
	ncclComm_t comm;
	cudaStream_t stream;
	cudaEvent_t event, marks[COMM_MARKS];
};

static enum rv_err result_of(const struct comm_member *m, ncclResult_t result, const char *what,
							 struct rv_errtext *et) {
	if (result == ncclSuccess)
		return RV_OK;
	return rv_fail(et, RV_E_IO, "NCCL: %s: %s", what, m->api->ncclGetErrorString(result));
}

static enum rv_err nccl_group_id(struct comm_group_id *out, struct rv_errtext *et) {
	const struct nccl_api *api = vendor_nccl(et);
	ncclUniqueId id;
	if (!api)
		return RV_E_NOTFOUND;
	ncclResult_t result = api->ncclGetUniqueId(&id);
	if (result != ncclSuccess)
		return rv_fail(et, RV_E_UNSUPPORTED, "NCCL: %s", api->ncclGetErrorString(result));
	memcpy(out->bytes, &id, sizeof id);
	return RV_OK;
}

static void nccl_abort(struct comm_member *m) {
	cuda_use(m->cu);
	if (m->comm)
		(void)m->api->ncclCommAbort(m->comm);
	m->comm = NULL;
}

static void nccl_leave(struct comm_member *m) {
	if (!m)
		return;
	cuda_use(m->cu);
	if (m->stream)
		cuda_check(cudaStreamSynchronize(m->stream), "cudaStreamSynchronize"); /* NCCL may not be destroyed before */
	if (m->comm)
		(void)m->api->ncclCommDestroy(m->comm); /* nothing depends on it now */
	if (m->event)
		cuda_check(cudaEventDestroy(m->event), "cudaEventDestroy");
	for (int i = 0; i < COMM_MARKS && m->marks[i]; i++)
		cuda_check(cudaEventDestroy(m->marks[i]), "cudaEventDestroy");
	if (m->stream)
		cuda_check(cudaStreamDestroy(m->stream), "cudaStreamDestroy");
	free(m);
}

static enum rv_err nccl_join(struct backend *be, const struct comm_group_id *id, int n, int rank,
							 struct comm_member **out, struct rv_errtext *et) {
	struct comm_member *m = calloc(1, sizeof *m);
	ncclUniqueId group;
	RV_ASSERT(m); /* some bytes; the others would wait for ever */
	m->api = vendor_nccl(NULL);
	RV_ASSERT(m->api); /* it made the id */
	m->cu = cuda_of(be);
	memcpy(&group, id->bytes, sizeof group);
	ncclResult_t result = m->api->ncclCommInitRank(&m->comm, n, group, rank);
	if (result != ncclSuccess) {
		m->comm = NULL;
		enum rv_err e =
			rv_fail(et, RV_E_UNSUPPORTED, "NCCL, device %d of %d: %s", rank + 1, n, m->api->ncclGetErrorString(result));
		nccl_leave(m);
		return e;
	}
	cuda_check(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), "cudaStreamCreate");
	cuda_check(cudaEventCreateWithFlags(&m->event, cudaEventDisableTiming), "cudaEventCreate");
	for (int i = 0; i < COMM_MARKS; i++)
		cuda_check(cudaEventCreateWithFlags(&m->marks[i], cudaEventDisableTiming), "cudaEventCreate");
	*out = m;
	return RV_OK;
}

/* Makes `later` wait for all work enqueued on `earlier`. */
static void order(const struct comm_member *m, cudaStream_t earlier, cudaStream_t later) {
	cuda_check(cudaEventRecord(m->event, earlier), "cudaEventRecord");
	cuda_check(cudaStreamWaitEvent(later, m->event, 0), "cudaStreamWaitEvent");
}

static void begin(struct comm_member *m, float *x, size_t n) {
	cuda_use(m->cu);
	order(m, m->cu->stream, m->stream);
	cuda_weights_changed(m->cu, x, n * sizeof *x);
}

static enum rv_err nccl_reduce(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et) {
	begin(m, x, n);
	return result_of(m, m->api->ncclReduce(x, x, n, ncclFloat32, ncclSum, root, m->comm, m->stream), "ncclReduce", et);
}

static enum rv_err nccl_broadcast(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et) {
	begin(m, x, n);
	return result_of(m, m->api->ncclBroadcast(x, x, n, ncclFloat32, root, m->comm, m->stream), "ncclBroadcast", et);
}

static void nccl_mark(struct comm_member *m, unsigned slot) {
	cuda_use(m->cu);
	cuda_check(cudaEventRecord(m->marks[slot], m->stream), "cudaEventRecord");
}

static void nccl_order(struct comm_member *m, unsigned slot) {
	cuda_use(m->cu);
	cuda_check(cudaStreamWaitEvent(m->cu->stream, m->marks[slot], 0), "cudaStreamWaitEvent");
}

/* Returns a failure that NCCL found after a call returned: a lost peer, for one. */
static enum rv_err async_error(const struct comm_member *m, struct rv_errtext *et) {
	ncclResult_t later = ncclSuccess;
	RV_TRY(result_of(m, m->api->ncclCommGetAsyncError(m->comm, &later), "ncclCommGetAsyncError", et));
	return later == ncclInProgress ? RV_OK : result_of(m, later, "an exchange", et);
}

static enum rv_err nccl_wait(struct comm_member *m, const atomic_bool *others_failed, struct rv_errtext *et) {
	const struct timespec pause = {.tv_nsec = POLL_NS};
	cuda_use(m->cu);
	for (;;) {
		RV_TRY(async_error(m, et));
		if (atomic_load(others_failed))
			return rv_fail(et, RV_E_CLOSED, "NCCL: another device's exchange failed");
		cudaError_t e = cudaStreamQuery(m->stream);
		if (e == cudaSuccess)
			break;
		if (e != cudaErrorNotReady)
			return rv_fail(et, RV_E_IO, "NCCL: an exchange: %s", cudaGetErrorString(e));
		(void)nanosleep(&pause, NULL);
	}
	order(m, m->stream, m->cu->stream);
	return RV_OK;
}

const struct comm_ops comm_nccl_ops = {
	.name = "nccl",
	.group_id = nccl_group_id,
	.join = nccl_join,
	.leave = nccl_leave,
	.start_reduce = nccl_reduce,
	.start_broadcast = nccl_broadcast,
	.mark = nccl_mark,
	.order = nccl_order,
	.wait = nccl_wait,
	.abort = nccl_abort,
};
