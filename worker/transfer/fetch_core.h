/* fetch_core.h: which piece of the run's state to request from which donor, as a state machine
 * without I/O: no sockets, no clock, no threads, no allocation. The real worker, the simulator and
 * the tests drive the same object.
 *
 * In:  the wanted files (state_id: one, and the one needed next), the allowed donors, slices that
 *      arrive, the time.
 * Out: FETCH frames, pieces that have passed their check, and donors that gave wrong bytes.
 *
 * A file begins with its manifest, the list of its hashes, whole from one donor and checked against
 * the committed hash; then its pieces come from all donors at once. A donor's *window* (how many
 * pieces it may owe) follows its rate: it grows while an answer takes less than half of
 * FETCH_LATENCY_US, and shrinks while it takes longer than all of it. When every missing piece is
 * requested, a donor that would deliver one clearly earlier than those that owe it is asked for it
 * too, so a slow donor does not delay the end. A donor that gives a wrong byte is reported and left
 * out for a while. A donor that is silent, disconnected or lacks the file loses what it owes to the
 * others; a silent one gets one probe, so TCP notices if the other side has gone. A piece that has
 * passed its check is requested again only after fetch_core_lost.
 *
 * A link keeps the order of answers (docs/protocol.md), so anything but the answer to the oldest
 * request is a breach. */
#ifndef RV_WORKER_TRANSFER_FETCH_CORE_H
#define RV_WORKER_TRANSFER_FETCH_CORE_H

#include "net/member_set.h"
#include "net/mesh/frame.h"
#include "worker/state/state_pieces.h"

enum {
	FETCH_FILES = 2,       /* the file that is waited for, and the next */
	FETCH_DONORS_MAX = 16, /* donors asked at the same time; each has room for one piece */
	FETCH_WINDOW_MAX = 32, /* pieces that one donor may owe */
	FETCH_COPIES_MAX = 3,  /* donors asked for the same piece */
	FETCH_LATENCY_US = 1000 * 1000
};

struct fetch_core_config {
	const struct global_config *global; /* borrowed */
	uint32_t self_member;
	int64_t stall_us; /* timeout of a silent donor, which then loses what it owes to others */
	/* Checks the manifest of a snapshot without an expected hash (round 0 of a run that starts from
	 * given weights). RV_E_CORRUPT: these cannot be its hashes. */
	enum rv_err (*check_initial)(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
	void *check_ctx;
	/* Decodes a piece of an encoding other than FRAME_RAW to exactly `out_bytes`; NULL: there are
	 * no such encodings. Any fault but RV_E_NOMEM is the donor's. */
	enum rv_err (*decode)(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et);
	void *decode_ctx;
};

/* Opaque: fetch_core_bytes() of the caller's memory, aligned as malloc does: some MiB (a piece for
 * each donor asked, the manifests), a bound that no peer can change. */
struct fetch_core;
size_t fetch_core_bytes(const struct fetch_core_config *cfg);
struct fetch_core *fetch_core_init(void *memory, const struct fetch_core_config *cfg, int64_t now_us);

/* ---- what is wanted ---- */

/* Sets the wanted files, n <= FETCH_FILES, in the order of need. Known ones keep their pieces; all
 * others are forgotten. slots[i] becomes the slot of ids[i], 0..FETCH_FILES-1, by which events name
 * it. */
void fetch_core_want(struct fetch_core *c, int64_t now_us, const struct state_id *ids, int n, int slots[]);
/* Has only the manifest requested while `on`: the platform looks for pieces that it already has. */
void fetch_core_look(struct fetch_core *c, int slot, bool on);
/* Takes what an earlier process had: the manifest, and one byte per piece, not 0: held (the caller
 * has checked both). May be called at any time. Returns true if nothing is missing. */
bool fetch_core_resume(struct fetch_core *c, int slot, const struct rv_hash *manifest, const uint8_t *held);
/* Requests a held piece again, which the platform could not keep. */
void fetch_core_lost(struct fetch_core *c, int slot, uint32_t index);
bool fetch_core_complete(const struct fetch_core *c, int slot);
void fetch_core_progress(const struct fetch_core *c, int slot, uint64_t *done_bytes, uint64_t *total_bytes);

/* ---- donors, by member number ---- */

/* Sets which members may be asked; the first NET_MAX_ROW of them are. Others get no new
 * requests. */
void fetch_core_allow(struct fetch_core *c, int64_t now_us, const struct member_set *members);
void fetch_core_link_up(struct fetch_core *c, int64_t now_us, uint32_t member);
void fetch_core_link_down(struct fetch_core *c, int64_t now_us, uint32_t member);

/* ---- messages ---- */

enum fetch_event_type {
	FETCH_NOTHING,
	FETCH_MANIFEST, /* the manifest of `slot` has passed its check: fetch_core_manifest() */
	FETCH_PIECE,    /* piece `index` of `slot` has passed its check */
	FETCH_BAD_DONOR /* the member gave bytes other than the committed ones: text */
};
struct fetch_event {
	enum fetch_event_type type;
	int slot;
	/* PIECE. Pointers are valid until the next call. */
	uint32_t index;
	uint8_t encoding;      /* enum frame_encoding, of `stored` */
	const uint8_t *stored; /* the piece as it came */
	uint32_t stored_bytes;
	bool complete; /* no piece of `slot` is missing */
	struct rv_errtext text;
};

/* Writes the next FETCH for this member. Returns false if there is none now. */
bool fetch_core_send(struct fetch_core *c, int64_t now_us, uint32_t member, struct frame_fetch *out);
/* Take an answer. RV_E_PROTOCOL: it is not the one to the oldest request; the caller should drop
 * the link. */
enum rv_err fetch_core_piece(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_piece *p,
							 struct fetch_event *out, struct rv_errtext *et);
enum rv_err fetch_core_none(struct fetch_core *c, int64_t now_us, uint32_t member, const struct frame_fetch *m,
							struct rv_errtext *et);

/* Marks silent donors. Call it at the deadline, then fetch_core_send for every linked member. */
void fetch_core_tick(struct fetch_core *c, int64_t now_us);
int64_t fetch_core_deadline_us(const struct fetch_core *c); /* INT64_MAX: none */

/* Returns the manifest of `slot`, borrowed; NULL: none has passed its check yet. */
const struct rv_hash *fetch_core_manifest(const struct fetch_core *c, int slot);
/* Returns true if at least one donor can be asked, and each of those has answered NONE for
 * `slot`. */
bool fetch_core_nowhere(const struct fetch_core *c, int slot);

#endif
