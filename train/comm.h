/* comm.h: exchanges between the devices of one replica: sums and copies of vectors in their own
 * memories.
 *
 * A group has one member per device, each driven by a thread of its own; all make the same calls in
 * the same order with the same n and root (asserted). start_* returns at once: the operation runs
 * behind everything that the member's backend was asked for, while the member goes on computing;
 * comm_wait waits for all started ones. In between the vector belongs to the group.
 *
 * A mark notes what was started so far: comm_order makes the backend's next operations wait for
 * that alone, so that exchanges go on behind a computation. On a device the host does not wait; if
 * the library fails, what was computed behind an order is unusable, as comm_wait says.
 *
 * The plugin's library (NCCL) carries exchanges out, or host threads: one thread of the group adds
 * the x of members 0, 1, 2, ... in this order, so that sums have the same bits on every run, copied
 * through host memory if need be: in pieces, of which a member has COMM_STAGED at a time; a start
 * then waits for the oldest.
 *
 * If the library fails - at its start, at a call, or later - the group uses host threads from then
 * on, and the member that met the failure logs it on stderr in the library's words: all devices
 * stay, exchanges are slower.
 *
 * Join, wait, barrier and sum block. There are no other faults: memory for an exchange through the
 * host (comm_staged_bytes, in the memory plan) is asserted (RV_ASSERT). */
#ifndef RV_TRAIN_COMM_H
#define RV_TRAIN_COMM_H

#include "base/err.h"
#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMM_MAX_MEMBERS = 16, COMM_MAX_VALUES = 8 };
enum { COMM_STAGED = 8, COMM_STAGED_FLOATS = 1 << 19 };

/* Returns the most bytes that `devices` with memory of their own take of the host's for exchanges
 * through it. */
static inline size_t comm_staged_bytes(int devices) {
	return devices > 1 ? (size_t)devices * COMM_STAGED * COMM_STAGED_FLOATS * sizeof(float) : 0;
}

struct comm_group;
struct comm; /* a member */

/* Makes a group of n members in [1, COMM_MAX_MEMBERS]; be[i] is member i's backend, borrowed.
 * Returns RV_E_NOMEM or RV_E_BUSY (no thread). */
enum rv_err comm_group_new(struct backend *const *be, int n, struct comm_group **out, struct rv_errtext *et);
void comm_group_free(struct comm_group *g); /* after all members have left; NULL is fine */

/* Joins, on the member's thread; blocks until all have joined. */
void comm_join(struct comm_group *g, int rank, struct comm **out);
void comm_leave(struct comm *c); /* NULL is fine */

/* The part of n elements that member `rank` owns: [begin, end), at multiples of MOMENTS_BLOCK,
 * ascending, all of [0, n). */
struct comm_slice {
	size_t begin, end;
};
struct comm_slice comm_slice_of(size_t n, int size, int rank);

/* Starts a sum of all members' x (n) for member root alone; that of the others becomes
 * unspecified. */
void comm_start_reduce(struct comm *c, float *x, size_t n, int root);
/* Starts a copy: x (n) becomes member root's. */
void comm_start_broadcast(struct comm *c, float *x, size_t n, int root);
/* Starts a reduction per owner: elements [begin, end) of x (n) become their owners' sums. */
void comm_start_reduce_scatter(struct comm *c, float *x, size_t n, size_t begin, size_t end);
/* Starts a gathering of x (n), of which each member has its own slice. */
void comm_start_all_gather(struct comm *c, float *x, size_t n);
/* Waits for all that was started. Returns false if the library failed in a sum, or behind an order:
 * all members' summed vectors, and what was computed behind the order, are then unspecified; start
 * again from their terms. Broadcasts that nobody ordered are done in any case. */
bool comm_wait(struct comm *c);

struct comm_mark {
	uint64_t started, posted; /* exchanges of the member so far, and those of them through the host */
	unsigned slot;
};
/* Notes what this member has started. The last COMM_MARKS marks are exact; an older one stands for
 * later exchanges too. */
struct comm_mark comm_mark(struct comm *c);
/* Makes the backend's next operations see what was started before the mark. With exchanges through
 * the host it waits for them. From the first order until comm_wait the host may wait for nothing
 * else that the device does. */
void comm_order(struct comm *c, struct comm_mark mark);

void comm_barrier(struct comm *c);
/* Replaces values (n <= COMM_MAX_VALUES, host) by their sums over members 0, 1, ... in this order,
 * with the same bits everywhere. A barrier too. */
void comm_sum(struct comm *c, double *values, int n);

#endif
