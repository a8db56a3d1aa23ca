/* fetch_core.h: which piece of the run's state to ask of whom, as a state machine without I/O: no sockets, no clock, no
 * threads, no allocation. The real worker, the simulator and the tests drive the same object.
 *
 * In:  what is wanted (state_id: one file, and the one needed next), who may be asked, slices that arrive, the time.
 * Out: FETCH frames, pieces that have passed their check, and donors that gave something else.
 *
 * A file begins with its manifest, the list of its hashes, whole from one donor and checked against the committed hash;
 * then its pieces come from all donors at once. A donor's *window* (how many pieces it may owe) follows its rate: it
 * grows while an answer takes less than half of FETCH_LATENCY_US, and shrinks while it takes longer than all of it.
 * When every missing piece is asked for, donors that would deliver one clearly earlier than those who owe it are asked
 * for it too, so a slow one does not hold up the end. A donor that gives a wrong byte is named and left alone for a
 * while; one that is silent, gone or lacks the file loses what it owes to the others (a silent one is asked something
 * now and then: so TCP finds out when the other side has gone). What has passed its check is never asked for
 * again.
 *
 * A link keeps the order of answers (docs/protocol.md), so anything but the answer to the oldest request is a breach.
 */
#ifndef RV_WORKER_TRANSFER_FETCH_CORE_H
#define RV_WORKER_TRANSFER_FETCH_CORE_H

#include "net/mesh/frame.h"
#include "worker/state/state_pieces.h"

enum {
	FETCH_FILES = 2,       /* the one that is waited for, and the next */
	FETCH_DONORS_MAX = 16, /* asked at the same time; each has room for one piece */
	FETCH_WINDOW_MAX = 32, /* pieces that one donor may owe */
	FETCH_COPIES_MAX = 3,  /* donors asked for the same piece */
	FETCH_LATENCY_US = 1000 * 1000
};

struct fetch_core_config {
	const struct global_config *global; /* borrowed */
	uint32_t self_member;
	int64_t stall_us; /* a donor that owes something and sends nothing for so long loses it to others */
	/* Instead of state_manifest_check; NULL: that one. */
	enum rv_err (*check_manifest)(void *ctx, const struct state_id *id, const struct rv_hash *manifest,
								  struct rv_errtext *et);
	/* A piece of an encoding other than FRAME_RAW, to exactly `out_bytes`; NULL: there are none. Unless
	 * it returns RV_E_NOMEM a piece that cannot be decoded is its donor's fault. */
	enum rv_err (*decode)(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et);
	void *ctx;
};

/* Opaque: fetch_core_bytes() of the caller's memory, aligned as malloc does: some MiB (a piece for each donor asked,
 * the manifests), whatever peers do. */
struct fetch_core;
size_t fetch_core_bytes(const struct fetch_core_config *cfg);
struct fetch_core *fetch_core_init(void *memory, const struct fetch_core_config *cfg, int64_t now_us);

/* ---- what is wanted ---- */

/* n <= FETCH_FILES files in the order of need. Those that are known keep what they have; all others are forgotten.
 * slots[i] is the slot of ids[i], 0..FETCH_FILES-1, what events speak of. */
void fetch_core_want(struct fetch_core *c, int64_t now_us, const struct state_id *ids, int n, int slots[]);
/* The platform is looking for what it has of this file already (on: until it is called again): only the manifest is
 * asked for. */
void fetch_core_look(struct fetch_core *c, int slot, bool on);
/* What a former process had: the manifest, and one byte per piece, not 0: held (both checked by the caller). At any
 * time. True: nothing is missing. */
bool fetch_core_resume(struct fetch_core *c, int slot, const struct rv_hash *manifest, const uint8_t *held);
/* A piece that the platform could not keep: it is asked for again. */
void fetch_core_lost(struct fetch_core *c, int slot, uint32_t index);
bool fetch_core_complete(const struct fetch_core *c, int slot);
void fetch_core_progress(const struct fetch_core *c, int slot, uint64_t *done_bytes, uint64_t *total_bytes);

/* ---- donors, by member number ---- */

/* A set: whose answers are worth asking for. Others are asked for nothing more. */
void fetch_core_allow(struct fetch_core *c, int64_t now_us, uint64_t members);
void fetch_core_link_up(struct fetch_core *c, int64_t now_us, uint32_t member);
void fetch_core_link_down(struct fetch_core *c, int64_t now_us, uint32_t member);

/* ---- messages ---- */

enum fetch_event_type {
	FETCH_NOTHING,
	FETCH_MANIFEST,  /* of `slot`: fetch_core_manifest() */
	FETCH_PIECE,     /* piece `index` of `slot` has passed its check */
	FETCH_BAD_DONOR, /* it gave something else than what was committed: text */
	FETCH_LACKING    /* it does not have `slot`, or not now */
};
struct fetch_event {
	enum fetch_event_type type;
	int slot;
	/* PIECE. Pointers hold until the next call. */
	uint32_t index;
	const uint8_t *data; /* the piece itself: state_piece_at() bytes */
	uint8_t encoding;    /* as it came: enum frame_encoding */
	const uint8_t *stored;
	uint32_t stored_bytes;
	bool complete; /* it was the last one missing */
	struct rv_errtext text;
};

/* The next FETCH for this member, or false. */
bool fetch_core_send(struct fetch_core *c, int64_t now_us, uint32_t member, struct frame_fetch *out);
/* RV_E_PROTOCOL: not the answer to its oldest request: the link should be dropped. */
enum rv_err fetch_core_piece(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_piece *p,
							 struct fetch_event *out, struct rv_errtext *et);
enum rv_err fetch_core_none(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_fetch *m,
							struct fetch_event *out, struct rv_errtext *et);

/* Notices who is silent. Call at the deadline, then fetch_core_send for every linked member. */
void fetch_core_tick(struct fetch_core *c, int64_t now_us);
int64_t fetch_core_deadline_us(const struct fetch_core *c); /* INT64_MAX: none */

/* Of a slot whose manifest has passed its check; NULL: not yet. */
const struct rv_hash *fetch_core_manifest(const struct fetch_core *c, int slot);
/* Every donor that can be asked has said that it does not have it, and there is one. */
bool fetch_core_nowhere(const struct fetch_core *c, int slot);
/* Who is being waited for: a set of members that owe something. */
uint64_t fetch_core_owing(const struct fetch_core *c);

#endif
