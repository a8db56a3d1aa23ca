/* allreduce.h: the all-reduce core (net/reduce/reduce.h) with the memory and the codec it needs.
 *
 * Each other member's contribution has address space for a whole vector, of which only the chunks
 * that this worker owns are touched, so memory use is about 1/N of that; it is released after each
 * round. One thread. */
#ifndef RV_WORKER_MESH_ALLREDUCE_H
#define RV_WORKER_MESH_ALLREDUCE_H

#include "base/run_silence.h"
#include "net/reduce/reduce.h"
#include "outer/global.h"

struct allreduce_config {
	const struct global_config *global; /* borrowed: what each round exchanges, and the codec */
	uint32_t self_member;
	struct run_silence silence;
};

struct allreduce;

/* Makes an idle all-reduce. RV_E_NOMEM. */
enum rv_err allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et);
void allreduce_free(struct allreduce *a); /* NULL is fine */

/* Starts the all-reduce of `d`, a REDUCE document that names this worker. `own`, the encoded
 * contribution (global_encode_delta), must stay valid and unchanged until stop. RV_E_NOMEM. */
enum rv_err allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d, const uint8_t *own,
							struct rv_errtext *et);
void allreduce_restart(struct allreduce *a, int64_t now_us, const struct document *d);
void allreduce_stop(struct allreduce *a);
bool allreduce_running(const struct allreduce *a);
uint64_t allreduce_round(const struct allreduce *a);
uint32_t allreduce_attempt(const struct allreduce *a);

/* The functions of net/reduce/reduce.h, with its faults, by member number instead of roster index.
 * For a member that is not in the roster, receive ignores the message and send has nothing. */
enum rv_err allreduce_receive(struct allreduce *a, int64_t now_us, uint32_t member, const struct reduce_msg *m,
							  struct rv_errtext *et);
void allreduce_part(struct allreduce *a, int64_t now_us, uint32_t member, bool bulk);
bool allreduce_send(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out);
bool allreduce_send_control(struct allreduce *a, int64_t now_us, uint32_t member, struct reduce_msg *out);
void allreduce_link_up(struct allreduce *a, int64_t now_us, uint32_t member);
void allreduce_link_down(struct allreduce *a, int64_t now_us, uint32_t member, bool fatal);
void allreduce_tick(struct allreduce *a, int64_t now_us);
int64_t allreduce_deadline_us(const struct allreduce *a);

bool allreduce_done(const struct allreduce *a);
uint64_t allreduce_suspects(const struct allreduce *a);       /* set of roster indices */
uint64_t allreduce_silent_members(const struct allreduce *a); /* set of member numbers */
const uint8_t *allreduce_reduced(const struct allreduce *a);  /* the encoded result, once done */
struct reduce_info allreduce_info(const struct allreduce *a);
int allreduce_participants(const struct allreduce *a); /* in the current attempt */
/* Returns what this worker, as an owner, measured of the contributions in the current attempt, by
 * roster index. */
const struct merge_measured *allreduce_measured(const struct allreduce *a);

#endif
