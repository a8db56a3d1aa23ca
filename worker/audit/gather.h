/* gather.h: fetches all contributions to one committed round from the members that keep them
 * (worker/audit/kept_contributions.h), chunk by chunk, and checks each against the root that its
 * author has committed to. For `rivulet-worker weigh`.
 *
 *   IDLE -- gather_begin --> FETCHING -- all chunks were taken --> DONE
 *                               +-- a member gives nothing for patience, all together take twice
 *                               |   that and longer than at GATHER_LEAST_BYTES_PER_S, a piece is not what was
 *                               |   committed to, `take` fails --> FAILED, with the reason
 *
 * One chunk is under way at a time, asked of all its contributors at once; a member is asked for
 * nothing while it owes an answer, to this or to the auditor. No I/O, no clock; memory of one chunk
 * of each participant. One thread. */
#ifndef RV_WORKER_AUDIT_GATHER_H
#define RV_WORKER_AUDIT_GATHER_H

#include "worker/audit/auditor.h"

enum { GATHER_LEAST_BYTES_PER_S = 32768 };

enum gather_state { GATHER_IDLE, GATHER_FETCHING, GATHER_DONE, GATHER_FAILED };

struct gather_ops {
	void *ctx;
	/* As in auditor_ops. */
	size_t (*chunk_bytes)(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk);
	bool (*own)(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes);
	bool (*linked)(void *ctx, uint32_t member);
	bool (*is_busy)(void *ctx, uint32_t member); /* it owes an answer to somebody else here */
	/* Takes a chunk with all contributions to it. A fault ends the gathering. */
	enum rv_err (*take)(void *ctx, const struct auditor_case *c, struct rv_errtext *et);
};

struct gather; /* opaque */

/* RV_E_NOMEM. */
enum rv_err gather_new(uint32_t self_member, uint64_t run_tag, int64_t patience_us, const struct gather_ops *ops,
					   struct gather **out, struct rv_errtext *et);
void gather_free(struct gather *g); /* NULL is fine */

/* Returns the most bytes that gather_begin takes for a roster of n. */
size_t gather_bytes(int n);
/* Begins; `roster` is borrowed until it ends. RV_E_NOMEM. */
enum rv_err gather_begin(struct gather *g, int64_t now_us, const struct auditor_roster *roster, struct rv_errtext *et);
/* Becomes IDLE: what is still to come is void. */
void gather_stop(struct gather *g);
/* Returns how it stands. FAILED: *err and `et` say why. */
enum gather_state gather_state(const struct gather *g, enum rv_err *err, struct rv_errtext *et);
/* Returns the member whose contribution did not come, or is not what it has committed to;
 * NET_NO_MEMBER: it has not failed, or by nobody's fault. */
uint32_t gather_blamed(const struct gather *g);
/* Returns how many chunks were taken since it began. */
uint32_t gather_chunks_done(const struct gather *g);

/* As of the auditor. */
bool gather_send(struct gather *g, int64_t now_us, uint32_t member, struct peers_message *out);
/* Returns true if a PIECE or NONE of the member answers what gather asked for. */
bool gather_awaits(const struct gather *g, uint32_t member, const struct frame_header *h, const uint8_t *body);
/* Returns true if the member owes an answer to gather. */
bool gather_owes(const struct gather *g, uint32_t member);
/* Takes it. RV_E_PROTOCOL: a slice that is not the next one. */
enum rv_err gather_receive(struct gather *g, int64_t now_us, uint32_t member, const struct frame_header *h,
						   const uint8_t *body, struct rv_errtext *et);
void gather_link_down(struct gather *g, uint32_t member);
void gather_tick(struct gather *g, int64_t now_us);
int64_t gather_deadline_us(const struct gather *g);

#endif
