/* comm_internal.h: shared by comm.c (members, slices, sums) and comm_host.c (host threads). */
#ifndef RV_TRAIN_COMM_INTERNAL_H
#define RV_TRAIN_COMM_INTERNAL_H

#include "kernels/comm_ops.h"
#include "train/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum comm_kind { COMM_REDUCE, COMM_BROADCAST };

/* One exchange. */
struct comm_op {
	enum comm_kind kind;
	float *x; /* a member's vector, backend memory */
	size_t n;
	int root;
};

/* The exchange by host threads. */
struct comm_host;
enum rv_err comm_host_new(int n, struct comm_host **out, struct rv_errtext *et);
void comm_host_free(struct comm_host *h);
/* Posts member `rank`'s part of the next operation, host memory. Waits while too many run. */
void comm_host_post(struct comm_host *h, int rank, const struct comm_op *op);
/* Returns how many operations this member has posted. */
uint64_t comm_host_posted(struct comm_host *h, int rank);
/* Waits until that many operations are done. */
void comm_host_wait(struct comm_host *h, uint64_t posted);

struct comm_group {
	int n;
	struct backend *be[COMM_MAX_MEMBERS];
	const struct comm_ops *device; /* NULL: host threads */
	struct comm_group_id id;
	atomic_bool device_failed; /* for some member: the others must not wait for it */
	struct comm_host *host;    /* host threads, also after a library failed */
	pthread_barrier_t barrier;
	double values[COMM_MAX_MEMBERS][COMM_MAX_VALUES];
};

#endif
