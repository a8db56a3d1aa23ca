/* allreduce.h: the all-reduce of a round (net/reduce/grid.h) with the memory and codec it needs.
 *
 * The contribution of each participant of the row, and of two more, has address space for a whole
 * vector, and so has the partial sum of each row, in fp32. Only the chunks that this worker owns
 * are touched: about one vector of contributions, and in a roster of rows one more of partial sums.
 * The memory is released after each round. One thread. */
#ifndef RV_WORKER_MESH_ALLREDUCE_H
#define RV_WORKER_MESH_ALLREDUCE_H

#include "base/run_silence.h"
#include "net/reduce/grid.h"
#include "outer/mean_residual.h"

struct allreduce_config {
	const struct global_config *global;  /* borrowed: what each round exchanges, and the codec */
	struct mean_residual *mean_residual; /* borrowed: of the means that this worker makes */
	uint32_t self_member;
	struct run_silence silence;
	struct seal_ops seals; /* verify NULL: nothing is checked, and means are not sealed */
};

struct allreduce;

/* Makes an idle all-reduce. RV_E_NOMEM. */
enum rv_err allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et);
void allreduce_free(struct allreduce *a); /* NULL is fine */

/* The inputs of an all-reduce. */
struct allreduce_inputs {
	const uint8_t *own;              /* the encoded contribution (global_encode_delta) */
	const struct rv_hash *own_nodes; /* the tree over its chunks (outer/committer.h); NULL without seals */
	const float *last;               /* global_last_mean() of the state that it was encoded from */
};
/* Starts the all-reduce of `d`, a REDUCE document that names this worker. All that `in` points to
 * must stay valid and unchanged until stop. RV_E_NOMEM. */
enum rv_err allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d,
							const struct allreduce_inputs *in, struct rv_errtext *et);
/* Begins a later attempt of the round. RV_E_NOMEM. */
enum rv_err allreduce_restart(struct allreduce *a, int64_t now_us, const struct document *d, struct rv_errtext *et);
void allreduce_stop(struct allreduce *a);
bool allreduce_running(const struct allreduce *a);
uint64_t allreduce_round(const struct allreduce *a);
uint32_t allreduce_attempt(const struct allreduce *a);

/* The functions of net/reduce/grid.h, with its faults, by member number. For a member that this
 * worker does not deal with, receive ignores the message and send has nothing. */
enum rv_err allreduce_receive(struct allreduce *a, int64_t now_us, uint32_t member, const struct reduce_msg *m,
							  struct rv_errtext *et);
void allreduce_part(struct allreduce *a, int64_t now_us, uint32_t member, bool bulk);
bool allreduce_send(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out);
bool allreduce_is_awaited(struct allreduce *a, uint32_t member);
/* Returns the part that is left, from 0 to 1, of what the member gets from this worker; 1: nothing
 * goes to it. */
double allreduce_part_left(const struct allreduce *a, uint32_t member);
bool allreduce_send_control(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out);
void allreduce_link_up(struct allreduce *a, int64_t now_us, uint32_t member);
void allreduce_link_down(struct allreduce *a, int64_t now_us, uint32_t member, bool fatal);
void allreduce_tick(struct allreduce *a, int64_t now_us);
int64_t allreduce_deadline_us(const struct allreduce *a);

bool allreduce_done(const struct allreduce *a);
struct grid_suspects allreduce_suspects(const struct allreduce *a);
/* Lists the member numbers of the suspects; returns how many. */
int allreduce_silent_members(const struct allreduce *a, uint32_t members[NET_MAX_ROW]);
const uint8_t *allreduce_reduced(const struct allreduce *a); /* the encoded result, once done */
/* Returns what this worker sends of its contribution in the current attempt, in the codec of the
 * document; it runs. Valid until the next start, restart or stop. */
const uint8_t *allreduce_own(const struct allreduce *a, size_t *bytes);
/* Returns its grid; NULL: it does not run. */
const struct grid *allreduce_grid(const struct allreduce *a);
/* Does what grid_show does. */
bool allreduce_show(const struct allreduce *a, struct evidence *out);
struct reduce_info allreduce_info(const struct allreduce *a);
/* As reduce_receipts, of the row. */
int allreduce_receipts(const struct allreduce *a, struct reduce_receipt out[NET_MAX_ROW]);
int allreduce_row_members(const struct allreduce *a); /* participants of the row in the current attempt */
/* Returns what this worker, as an owner, measured of the contributions in the current attempt, by
 * index of the document's `members`. */
const struct merge_measured *allreduce_measured(const struct allreduce *a);
/* Returns the chunk whose mean, made by another one, stands out beside this worker's contribution
 * (outer/stands_out.h); -1: none. It runs, and is done. */
int64_t allreduce_stands_out(const struct allreduce *a);

#endif
