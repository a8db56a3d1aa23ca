/* comm_ops.h: for plugins: how the devices of one process exchange vectors that lie in their own memory.
 *
 * The group's member `rank` is driven by one thread, all members make the same calls in the same order, and calls are
 * enqueued behind what its backend's stream has computed so far. Sums are the library's: the same on every rank, in an
 * order that it chooses. The host's way to do the same is worker/train/comm.h, which uses this where it is there. */
#ifndef RV_KERNELS_COMM_OPS_H
#define RV_KERNELS_COMM_OPS_H

#include "kernels/backend.h"

struct comm_group_id {
	char bytes[128];
};

struct comm_member; /* the plugin's own */

struct comm_ops {
	const char *name; /* "nccl" */
	/* RV_E_NOTFOUND: the library is not there; the text says which. On any thread, before the others. */
	enum rv_err (*group_id)(struct comm_group_id *out, struct rv_errtext *et);
	/* By every member's own thread, at the same time: returns when all n have called. */
	enum rv_err (*join)(struct backend *be, const struct comm_group_id *id, int n, int rank, struct comm_member **out,
						struct rv_errtext *et);
	void (*leave)(struct comm_member *m); /* NULL is fine */
	/* x (n) of every member becomes the sum over members. On a stream of its own, behind the backend's work so far. */
	void (*start_all_reduce)(struct comm_member *m, float *x, size_t n);
	/* x (n) of member `root` becomes the sum; that of others is unspecified. */
	void (*start_reduce)(struct comm_member *m, float *x, size_t n, int root);
	void (*start_broadcast)(struct comm_member *m, float *x, size_t n, int root);
	/* The backend's stream goes on behind everything started. */
	void (*wait)(struct comm_member *m);
};

#endif
