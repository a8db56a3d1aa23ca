/* allreduce.h: the all-reduce core (net/reduce/reduce.h) with the memory and the codec it needs.
 *
 * Contributions of other members live in address space that is reserved for a whole vector each but only ever touched
 * at the chunks that we own, so memory use is about 1/N of that; it is given back after each round. One thread.
 */
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

/* RV_E_NOMEM. */
enum rv_err allreduce_new(const struct allreduce_config *cfg, struct allreduce **out, struct rv_errtext *et);
void allreduce_free(struct allreduce *a); /* NULL is fine */

/* `d` is a REDUCE document that names us; `own`, what its round exchanges (global_encode_delta), stays valid and
 * unchanged until stop. RV_E_NOMEM. */
enum rv_err allreduce_start(struct allreduce *a, int64_t now_us, const struct document *d, const uint8_t *own,
							struct rv_errtext *et);
void allreduce_restart(struct allreduce *a, int64_t now_us, const struct document *d);
void allreduce_stop(struct allreduce *a);
bool allreduce_running(const struct allreduce *a);
uint64_t allreduce_round(const struct allreduce *a);
uint32_t allreduce_attempt(const struct allreduce *a);

/* By member number, as net/reduce/reduce.h has them by index, with its faults. Members that are not in the roster: receive
 * ignores, send has nothing. */
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
uint64_t allreduce_silent_members(const struct allreduce *a); /* the same, by member number */
const uint8_t *allreduce_reduced(const struct allreduce *a);  /* all of what the round exchanges, encoded, once done */
struct reduce_info allreduce_info(const struct allreduce *a);
int allreduce_participants(const struct allreduce *a); /* in the attempt at hand */
/* What this worker, as an owner, measured of the contributions in the attempt at hand, by roster place. */
const struct merge_measured *allreduce_measured(const struct allreduce *a);

#endif
