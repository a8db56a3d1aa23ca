/* comm_ops.h: for plugins: how the devices of one process exchange vectors that lie in their own memory.
 *
 * The group's member `rank` is driven by one thread, all members make the same calls in the same order, and calls are
 * enqueued behind what its backend's stream has computed so far. Sums are the library's: the same on every rank, in an
 * order that it chooses. The host's way to do the same is train/comm.h, which uses this where it is there. */
#ifndef RV_KERNELS_COMM_OPS_H
#define RV_KERNELS_COMM_OPS_H

#include "kernels/backend.h"

#include <stdatomic.h>

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
	/* Waits for what was started, unless `abort` was called. NULL is fine. */
	void (*leave)(struct comm_member *m);
	/* x (n) of every member becomes the sum over members. On a stream of its own, behind the backend's work so far.
	 * This and the next two: RV_E_IO with the library's words; then only wait and abort may follow. */
	enum rv_err (*start_all_reduce)(struct comm_member *m, float *x, size_t n, struct rv_errtext *et);
	/* x (n) of member `root` becomes the sum; that of others is unspecified. */
	enum rv_err (*start_reduce)(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et);
	/* x (n) of the others becomes that of member `root`, which is only read. */
	enum rv_err (*start_broadcast)(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et);
	/* Returns when everything started is done; what the backend is asked for next sees it. RV_E_IO: the library
	 * reports a failure, also one that came later; RV_E_CLOSED: *others_failed became true, and what was started may
	 * never be done. Then only abort may follow. */
	enum rv_err (*wait)(struct comm_member *m, const atomic_bool *others_failed, struct rv_errtext *et);
	/* Ends what was started, done or not: vectors that exchanges write are unspecified, those that broadcasts read are
	 * as they were. By every member's own thread; only leave may follow. */
	void (*abort)(struct comm_member *m);
};

#endif
