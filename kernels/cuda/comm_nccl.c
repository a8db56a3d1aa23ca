/* comm_nccl.c: see comm_nccl.h. Declares the few functions of NCCL 2 that it uses, from its public documentation: the
 * library's own header need not be there. */
#include "kernels/cuda/comm_nccl.h"

#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ncclComm *nccl_comm;
enum { NCCL_SUCCESS = 0, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

struct nccl {
	int (*get_unique_id)(struct comm_group_id *id);
	int (*comm_init_rank)(nccl_comm *comm, int n, struct comm_group_id id, int rank);
	int (*comm_destroy)(nccl_comm comm);
	int (*all_reduce)(const void *send, void *receive, size_t n, int type, int op, nccl_comm comm, cudaStream_t s);
	int (*reduce)(const void *send, void *receive, size_t n, int type, int op, int root, nccl_comm comm,
				  cudaStream_t s);
	int (*broadcast)(const void *send, void *receive, size_t n, int type, int root, nccl_comm comm, cudaStream_t s);
	const char *(*error_string)(int result);
};

/* Looked for once. */
static struct {
	pthread_once_t once;
	bool there;
	struct nccl f;
	char why[256];
} nccl = {.once = PTHREAD_ONCE_INIT};

static void find(void) {
	const struct {
		const char *name;
		void **at;
	} symbols[] = {
		{"ncclGetUniqueId", (void **)&nccl.f.get_unique_id},
		{"ncclCommInitRank", (void **)&nccl.f.comm_init_rank},
		{"ncclCommDestroy", (void **)&nccl.f.comm_destroy},
		{"ncclAllReduce", (void **)&nccl.f.all_reduce},
		{"ncclReduce", (void **)&nccl.f.reduce},
		{"ncclBroadcast", (void **)&nccl.f.broadcast},
		{"ncclGetErrorString", (void **)&nccl.f.error_string},
	};
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)snprintf(nccl.why, sizeof nccl.why, "%s", dlerror());
		return;
	}
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
		if (!(*symbols[i].at = dlsym(library, symbols[i].name))) {
			(void)snprintf(nccl.why, sizeof nccl.why, "libnccl.so.2 lacks %s", symbols[i].name);
			return;
		}
	nccl.there = true;
}

struct comm_member {
	struct cuda_backend *cu;
	nccl_comm comm;
	cudaStream_t stream;
	cudaEvent_t event;
};

static void check(int result, const char *what) {
	if (result != NCCL_SUCCESS)
		(void)fprintf(stderr, "nccl: %s: %s\n", what, nccl.f.error_string(result));
	RV_ASSERT(result == NCCL_SUCCESS);
}

static enum rv_err nccl_group_id(struct comm_group_id *out, struct rv_errtext *et) {
	(void)pthread_once(&nccl.once, find);
	if (!nccl.there)
		return rv_fail(et, RV_E_NOTFOUND, "NCCL: %s", nccl.why);
	int result = nccl.f.get_unique_id(out);
	return result == NCCL_SUCCESS ? RV_OK : rv_fail(et, RV_E_UNSUPPORTED, "NCCL: %s", nccl.f.error_string(result));
}

static void nccl_leave(struct comm_member *m) {
	if (!m)
		return;
	cuda_use(m->cu);
	if (m->comm)
		check(nccl.f.comm_destroy(m->comm), "ncclCommDestroy");
	if (m->event)
		cuda_check(cudaEventDestroy(m->event), "cudaEventDestroy");
	if (m->stream)
		cuda_check(cudaStreamDestroy(m->stream), "cudaStreamDestroy");
	free(m);
}

static enum rv_err nccl_join(struct backend *be, const struct comm_group_id *id, int n, int rank,
							 struct comm_member **out, struct rv_errtext *et) {
	struct comm_member *m = calloc(1, sizeof *m);
	RV_ASSERT(m); /* some bytes; the others would wait for ever */
	m->cu = cuda_of(be);
	int result = nccl.f.comm_init_rank(&m->comm, n, *id, rank);
	if (result != NCCL_SUCCESS) {
		m->comm = NULL;
		nccl_leave(m);
		return rv_fail(et, RV_E_UNSUPPORTED, "NCCL, device %d of %d: %s", rank + 1, n, nccl.f.error_string(result));
	}
	cuda_check(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), "cudaStreamCreate");
	cuda_check(cudaEventCreateWithFlags(&m->event, cudaEventDisableTiming), "cudaEventCreate");
	*out = m;
	return RV_OK;
}

/* `later` goes on behind all that `earlier` has been asked for. */
static void order(const struct comm_member *m, cudaStream_t earlier, cudaStream_t later) {
	cuda_check(cudaEventRecord(m->event, earlier), "cudaEventRecord");
	cuda_check(cudaStreamWaitEvent(later, m->event, 0), "cudaStreamWaitEvent");
}

static void begin(struct comm_member *m, float *x, size_t n) {
	cuda_use(m->cu);
	order(m, m->cu->stream, m->stream);
	cuda_weights_changed(m->cu, x, n * sizeof *x);
}

static void nccl_all_reduce(struct comm_member *m, float *x, size_t n) {
	begin(m, x, n);
	check(nccl.f.all_reduce(x, x, n, NCCL_FLOAT32, NCCL_SUM, m->comm, m->stream), "ncclAllReduce");
}

static void nccl_reduce(struct comm_member *m, float *x, size_t n, int root) {
	begin(m, x, n);
	check(nccl.f.reduce(x, x, n, NCCL_FLOAT32, NCCL_SUM, root, m->comm, m->stream), "ncclReduce");
}

static void nccl_broadcast(struct comm_member *m, float *x, size_t n, int root) {
	begin(m, x, n);
	check(nccl.f.broadcast(x, x, n, NCCL_FLOAT32, root, m->comm, m->stream), "ncclBroadcast");
}

static void nccl_wait(struct comm_member *m) {
	cuda_use(m->cu);
	order(m, m->stream, m->cu->stream);
}

const struct comm_ops comm_nccl_ops = {
	.name = "nccl",
	.group_id = nccl_group_id,
	.join = nccl_join,
	.leave = nccl_leave,
	.start_all_reduce = nccl_all_reduce,
	.start_reduce = nccl_reduce,
	.start_broadcast = nccl_broadcast,
	.wait = nccl_wait,
};
