/* nccl_stand_in.c: see nccl_stand_in.h. */
#include "tests/train/nccl_stand_in.h"

#include "kernels/cuda/vendor/vendor.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 8 };
enum kind { REDUCE, BROADCAST };

struct ncclComm {
	int rank;
	int calls;
};

struct nccl_stand_in nccl_stand_in;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int n, arrived;
	long round; /* calls that the group carried out or gave up */
	float *x[RANKS_MAX];
	bool broken; /* a rank's call failed, or the group was aborted */
	bool late;   /* the asynchronous error is there */
} group = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void nccl_stand_in_reset(void) {
	nccl_stand_in = (struct nccl_stand_in){.fails = NCCL_WORKS};
	group.n = group.arrived = 0;
	group.round = 0;
	group.broken = group.late = false;
}

static void carry_out(enum kind kind, size_t n, int root) {
	for (size_t i = 0; i < n; i++) {
		float value = group.x[kind == BROADCAST ? root : 0][i];
		for (int r = 1; r < group.n && kind != BROADCAST; r++)
			value += group.x[r][i];
		for (int r = 0; r < group.n; r++)
			if (kind != REDUCE || r == root)
				group.x[r][i] = group.late && !(kind == BROADCAST && r == root) ? NAN : value;
	}
}

/* Whether this exchange is the one that fails. */
static bool due(void) {
	return nccl_stand_in.exchanges == nccl_stand_in.fails_after;
}

static ncclResult_t meet(enum kind kind, float *x, size_t n, int root, struct ncclComm *comm) {
	pthread_mutex_lock(&group.lock);
	long round = group.round;
	if (nccl_stand_in.fails == NCCL_CALL && due() && comm->rank == nccl_stand_in.failing_rank) {
		group.broken = true;
		pthread_cond_broadcast(&group.changed);
		pthread_mutex_unlock(&group.lock);
		return ncclSystemError;
	}
	group.x[comm->rank] = x;
	if (!group.broken && ++group.arrived == group.n) {
		group.late = group.late || (nccl_stand_in.fails == NCCL_LATER && due());
		carry_out(kind, n, root);
		nccl_stand_in.exchanges++;
		group.arrived = 0;
		group.round++;
		pthread_cond_broadcast(&group.changed);
	}
	while (group.round == round && !group.broken)
		pthread_cond_wait(&group.changed, &group.lock);
	ncclResult_t result = group.round == round ? ncclRemoteError : ncclSuccess;
	pthread_mutex_unlock(&group.lock);
	return result;
}

/* The first exchange of a member is under way when its call returns. */
static ncclResult_t first_is_under_way(ncclComm_t comm, ncclResult_t result) {
	return result == ncclSuccess && comm->calls++ == 0 ? ncclInProgress : result;
}

static ncclResult_t reduce(const void *send, void *receive, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
						   ncclComm_t comm, cudaStream_t stream) {
	(void)send, (void)type, (void)op, (void)stream;
	return first_is_under_way(comm, meet(REDUCE, receive, n, root, comm));
}

static ncclResult_t broadcast(const void *send, void *receive, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
							  cudaStream_t stream) {
	(void)send, (void)type, (void)stream;
	return first_is_under_way(comm, meet(BROADCAST, receive, n, root, comm));
}

static ncclResult_t init_rank(ncclComm_t *out, int n, ncclUniqueId id, int rank, ncclConfig_t *config) {
	(void)id;
	if (config->size != sizeof *config || config->magic != 0xcafebeefu || config->blocking != 0)
		abort();
	if (nccl_stand_in.fails == NCCL_JOIN && rank == nccl_stand_in.failing_rank)
		return ncclSystemError;
	struct ncclComm *comm = malloc(sizeof *comm);
	if (!comm)
		abort();
	*comm = (struct ncclComm){.rank = rank};
	*out = comm;
	pthread_mutex_lock(&group.lock);
	group.n = n;
	nccl_stand_in.joined++;
	pthread_mutex_unlock(&group.lock);
	return ncclInProgress;
}

static ncclResult_t release(ncclComm_t comm, int *count) {
	pthread_mutex_lock(&group.lock);
	++*count;
	pthread_mutex_unlock(&group.lock);
	free(comm);
	return ncclSuccess;
}

static ncclResult_t destroy(ncclComm_t comm) {
	return release(comm, &nccl_stand_in.destroyed);
}

static ncclResult_t abort_comm(ncclComm_t comm) {
	return release(comm, &nccl_stand_in.aborted);
}

/* Who learns of a failure leaves the group, so the others' calls fail. */
static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error) {
	pthread_mutex_lock(&group.lock);
	const bool failed = group.late && comm->rank == nccl_stand_in.failing_rank;
	*error = failed ? ncclRemoteError : nccl_stand_in.joined < group.n ? ncclInProgress : ncclSuccess;
	group.broken = group.broken || failed;
	pthread_cond_broadcast(&group.changed);
	pthread_mutex_unlock(&group.lock);
	return ncclSuccess;
}

static ncclResult_t version(int *out) {
	*out = 22803;
	return ncclSuccess;
}

static ncclResult_t unique_id(ncclUniqueId *id) {
	memset(id, 7, sizeof *id);
	return ncclSuccess;
}

static const char *error_string(ncclResult_t result) {
	return result == ncclSystemError ? "the stand-in's system error" : "the stand-in's remote error";
}

static const struct nccl_api api = {
	.ncclGetVersion = version,
	.ncclGetErrorString = error_string,
	.ncclGetUniqueId = unique_id,
	.ncclCommInitRankConfig = init_rank,
	.ncclCommDestroy = destroy,
	.ncclCommAbort = abort_comm,
	.ncclCommGetAsyncError = async_error,
	.ncclReduce = reduce,
	.ncclBroadcast = broadcast,
};

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	(void)et;
	return &api;
}

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "there is only a stand-in for NCCL");
	return NULL;
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "there is only a stand-in for NCCL");
	return NULL;
}
