/* comm_ops.h: for plugins: how the devices of one process exchange vectors in their own memory.
 *
 * The group's member `rank` is driven by one thread, all members make the same calls in the same
 * order, and calls are enqueued behind what its backend's stream has computed so far. Sums are the
 * library's: the same on every rank, in an order that it chooses. The host's implementation is
 * train/comm.h, which uses this where it is available. */
#ifndef RV_KERNELS_COMM_OPS_H
#define RV_KERNELS_COMM_OPS_H

#include "kernels/backend.h"

#include <stdatomic.h>

struct comm_group_id {
	char bytes[128];
};

enum { COMM_MARKS = 16 };

struct comm_member; /* private to the plugin */

struct comm_ops {
	const char *name; /* "nccl" */
	/* Makes the id of a new group. RV_E_NOTFOUND: the library is missing; the text names it. On any
	 * thread, before the others. */
	enum rv_err (*group_id)(struct comm_group_id *out, struct rv_errtext *et);
	/* Joins the group: called by every member's own thread, at the same time; returns when all n
	 * have called. RV_E_UNSUPPORTED: the library's failure, or a minute has passed; RV_E_CLOSED:
	 * *others_failed became true, which lasts as long as the member. */
	enum rv_err (*join)(struct backend *be, const struct comm_group_id *id, int n, int rank,
						const atomic_bool *others_failed, struct comm_member **out, struct rv_errtext *et);
	/* Waits for the started exchanges, unless `abort` was called, and frees `m`. NULL is fine. */
	void (*leave)(struct comm_member *m);
	/* Starts to replace x (n) of member `root` by the sum over members, on a stream of its own,
	 * behind the backend's work so far; that of others is unspecified. This and the next one:
	 * RV_E_IO with the library's message; then only mark, order, wait and abort may follow. */
	enum rv_err (*start_reduce)(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et);
	/* Starts to replace x (n) of the others by that of member `root`, which is only read. */
	enum rv_err (*start_broadcast)(struct comm_member *m, float *x, size_t n, int root, struct rv_errtext *et);
	/* Notes, in one of COMM_MARKS slots, all exchanges started so far. */
	void (*mark)(struct comm_member *m, unsigned slot);
	/* Makes the backend's next operations wait, on the device, for those that the slot noted last:
	 * the host does not wait, and whether they succeed is known only after `wait`. Until then the
	 * host must wait for nothing that the device does: an exchange whose partner failed ends with
	 * abort alone. */
	void (*order)(struct comm_member *m, unsigned slot);
	/* Returns when all started exchanges are done; the backend's next operations see their results.
	 * RV_E_IO: the library reports a failure, also one that came later; RV_E_CLOSED: *others_failed
	 * became true, and the exchanges may never finish. Then only abort may follow. */
	enum rv_err (*wait)(struct comm_member *m, const atomic_bool *others_failed, struct rv_errtext *et);
	/* Ends the started exchanges, done or not: vectors that exchanges write are unspecified, those
	 * that broadcasts read are unchanged. Called by every member's own thread; only leave may
	 * follow. */
	void (*abort)(struct comm_member *m);
};

#endif
