/* comm_nccl.c: see comm_nccl.h. */
#include "kernels/cuda/comm_nccl.h"

#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/vendor/vendor.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLL_NS = 20000, JOIN_POLL_NS = 1000000, JOIN_POLLS = 60000 };
/* A configuration of NCCL 2.14. */
enum { CONFIG_VERSION = 21400 };
#define CONFIG_MAGIC 0xcafebeefu

_Static_assert(sizeof(struct comm_group_id) == sizeof(ncclUniqueId), "a group's id is NCCL's");

struct comm_member {
	const struct nccl_api *api;
	struct cuda_backend *cu;
	ncclComm_t comm;
	cudaStream_t stream;
	cudaEvent_t event, marks[COMM_MARKS];
	const atomic_bool *others_failed;
};

static enum rv_err result_of(const struct comm_member *m, ncclResult_t result, const char *what,
							 struct rv_errtext *et) {
	if (result == ncclSuccess)
		return RV_OK;
	return rv_fail(et, RV_E_IO, "NCCL: %s: %s", what, m->api->ncclGetErrorString(result));
}

static void rest(long ns) {
	(void)nanosleep(&(const struct timespec){.tv_nsec = ns}, NULL);
}

/* Returns the outcome of a call that returned `result`, which may be under way still: a failure of
 * its own, or ncclRemoteError if another member failed, or the `polls` are used up. polls 0: as
 * long as nobody fails. */
static ncclResult_t outcome_of(const struct comm_member *m, ncclResult_t result, long ns, int polls) {
	for (int i = 1; result == ncclInProgress; i++) {
		if (atomic_load(m->others_failed) || i == polls)
			return ncclRemoteError;
		rest(ns);
		ncclResult_t state = ncclSuccess;
		result = m->api->ncclCommGetAsyncError(m->comm, &state);
		result = result == ncclSuccess ? state : result;
	}
	return result;
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
							 const atomic_bool *others_failed, struct comm_member **out, struct rv_errtext *et) {
	struct comm_member *m = calloc(1, sizeof *m);
	ncclUniqueId group;
	RV_ASSERT(m); /* some bytes; the others would wait for ever */
	m->api = vendor_nccl(NULL);
	RV_ASSERT(m->api); /* it made the id */
	m->cu = cuda_of(be);
	memcpy(&group, id->bytes, sizeof group);
	ncclConfig_t config = {.size = sizeof config, .magic = CONFIG_MAGIC, .version = CONFIG_VERSION, .blocking = 0};
	m->others_failed = others_failed;
	ncclResult_t result = m->api->ncclCommInitRankConfig(&m->comm, n, group, rank, &config);
	result = outcome_of(m, result, JOIN_POLL_NS, JOIN_POLLS);
	if (result != ncclSuccess) {
		const enum rv_err kind = atomic_load(others_failed) ? RV_E_CLOSED : RV_E_UNSUPPORTED;
		const enum rv_err e =
			rv_fail(et, kind, "NCCL, device %d of %d: %s", rank + 1, n, m->api->ncclGetErrorString(result));
		nccl_abort(m);
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
	const ncclResult_t result = m->api->ncclReduce(x, x, n, ncclFloat32, ncclSum, root, m->comm, m->stream);
	return result_of(m, outcome_of(m, result, POLL_NS, 0), "ncclReduce", et);
}

static enum rv_err nccl_broadcast(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et) {
	begin(m, x, n);
	const ncclResult_t result = m->api->ncclBroadcast(x, x, n, ncclFloat32, root, m->comm, m->stream);
	return result_of(m, outcome_of(m, result, POLL_NS, 0), "ncclBroadcast", et);
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
		rest(POLL_NS);
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
