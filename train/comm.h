/* comm.h: what the devices of one replica exchange: sums and copies of vectors in their own memories.
 *
 * A group has one member per device. Each member is driven by a thread of its own; all make the same calls in the same
 * order with the same n and root (asserted). start_* returns at once: the operation is carried out behind everything
 * that the member's backend has been asked for, while the member goes on computing; comm_wait waits for all that was
 * started. Between the two the vector belongs to the group.
 *
 * Two ways, the caller does not see which: the plugin's library (NCCL), or host threads: one thread of the group adds
 * x of member 0, 1, 2, ... in this order, so the sum has the same bits on every run. Where memory is not the host's,
 * it goes through host memory then.
 *
 * Where the library fails - when it starts, at a call, or later - the group goes on through host threads for good, and
 * the member that met the failure says so on stderr, in the library's words: all devices are kept, exchanges are slower.
 *
 * Blocking: join, wait, barrier, sum. No other faults: running out of memory for an exchange through the host, which is
 * as large as what is exchanged, is asserted (RV_ASSERT). */
#ifndef RV_TRAIN_COMM_H
#define RV_TRAIN_COMM_H

#include "base/err.h"
#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMM_MAX_MEMBERS = 16, COMM_MAX_VALUES = 8 };

struct comm_group;
struct comm; /* a member */

/* n in [1, COMM_MAX_MEMBERS]. be[i] is the backend of member i, borrowed. RV_E_NOMEM, RV_E_BUSY (no thread). */
enum rv_err comm_group_new(struct backend *const *be, int n, struct comm_group **out, struct rv_errtext *et);
void comm_group_free(struct comm_group *g); /* after all have left; NULL is fine */
/* "nccl", "host threads" */
const char *comm_group_name(const struct comm_group *g);

/* By the member's thread; blocks until all have joined. */
void comm_join(struct comm_group *g, int rank, struct comm **out);
void comm_leave(struct comm *c); /* NULL is fine */
int comm_rank(const struct comm *c);
int comm_size(const struct comm *c);

/* Which part of n elements member `rank` owns: [begin, end), at multiples of 64 elements, ascending, all of [0, n). */
struct comm_slice {
	size_t begin, end;
};
struct comm_slice comm_slice_of(size_t n, int size, int rank);

/* x (n) becomes the sum of all members' x. */
void comm_start_all_reduce(struct comm *c, float *x, size_t n);
/* Of x (n) only member root's becomes the sum; that of others is unspecified. */
void comm_start_reduce(struct comm *c, float *x, size_t n, int root);
/* x (n) becomes member root's. */
void comm_start_broadcast(struct comm *c, float *x, size_t n, int root);
/* Elements [begin, end) of a vector of n become their owners' sums: a reduction per owner. x is the whole vector. */
void comm_start_reduce_scatter(struct comm *c, float *x, size_t n, size_t begin, size_t end);
/* x (n), of which each member has its own slice, becomes whole. */
void comm_start_all_gather(struct comm *c, float *x, size_t n);
/* Waits for all that was started. Returns false if the library failed while it summed: vectors that were to be summed are
 * unspecified then, for every member; start again with their terms. Broadcasts are done in any case. */
bool comm_wait(struct comm *c);

void comm_barrier(struct comm *c);
/* values (n <= COMM_MAX_VALUES) become their sums over members 0, 1, ... in this order: the same bits everywhere. Host
 * values; a barrier too. */
void comm_sum(struct comm *c, double *values, int n);

#endif
