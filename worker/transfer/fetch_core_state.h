/* fetch_core_state.h: the state behind fetch_core.h, shared by fetch_core.c (files and donors), fetch_core_ask.c (what
 * to ask) and fetch_core_answer.c (what arrives). Nobody else includes it. */
#ifndef RV_WORKER_TRANSFER_FETCH_CORE_STATE_H
#define RV_WORKER_TRANSFER_FETCH_CORE_STATE_H

#include "worker/transfer/fetch_core.h"

enum { FETCH_NOBODY = -1, FETCH_HELD = 0xff };

/* A request that a donor has not answered yet. */
struct fetch_ask {
	struct frame_fetch what;
	int slot;     /* -1: of a file that is not wanted any more; the answer is thrown away */
	bool counted; /* among the copies of its piece, or as the manifest's request: its donor is relied on */
	int64_t asked_us;
};

struct fetch_donor {
	bool linked, allowed;
	bool silent;  /* owes something and sends nothing: relied on no more until it does */
	int staging;  /* where its answer is gathered; FETCH_NOBODY: it owes nothing */
	int first, n; /* asks: a ring, the oldest first */
	int window;
	uint32_t got, total; /* of the oldest ask's answer */
	uint8_t encoding;
	int64_t piece_us; /* how long a piece takes, smoothed; 0: not known */
	int64_t head_us;  /* since when the oldest ask is the oldest */
	int64_t heard_us;
	bool probing; /* one of the asks is only there to find out about the connection */
	bool forgets; /* nothing that it owes is wanted any more: it is to be told */
	int offences;
	int64_t banned_until_us;
	int64_t lacks_until_us[FETCH_FILES], lacks_pause_us[FETCH_FILES];
	struct fetch_ask asks[FETCH_WINDOW_MAX];
};

struct fetch_file {
	bool used;
	bool looked_for; /* fetch_core_look() */
	struct state_id id;
	uint32_t n_pieces, n_held, n_free; /* free: neither held nor asked for */
	uint32_t first_free;               /* none before it */
	uint64_t bytes_held;
	uint8_t *copies; /* per piece: FETCH_HELD, or how many donors are relied on for it */
	struct rv_hash *manifest;
	bool has_manifest;
	int manifest_donor;                    /* FETCH_NOBODY */
	uint32_t manifest_asked, manifest_got; /* parts */
	int manifest_tries;
	int64_t manifest_until_us; /* then another donor may take over */
};

struct fetch_core {
	struct fetch_core_config cfg;
	int64_t now_us;
	size_t piece_bytes; /* the largest one's */
	int n_order, order[FETCH_FILES];
	struct fetch_file files[FETCH_FILES];
	struct fetch_donor donors[NET_MAX_MEMBERS];
	int8_t staging_of[FETCH_DONORS_MAX]; /* member; FETCH_NOBODY: free */
	uint8_t *staging;                    /* FETCH_DONORS_MAX pieces, and one to decode into */
};

static inline struct fetch_ask *fetch_ask_at(struct fetch_donor *d, int k) {
	return &d->asks[(d->first + k) % FETCH_WINDOW_MAX];
}

/* ---- fetch_core.c ---- */
uint32_t fetch_manifest_parts(const struct fetch_core *c, enum state_kind kind, uint64_t round);
/* Bytes of what was asked for, raw; 0: there is no such piece. */
uint32_t fetch_bytes_of(const struct fetch_core *c, const struct frame_fetch *what);
uint8_t *fetch_staging(const struct fetch_core *c, int i);
/* This donor is not relied on for it any more; the answer may still come. */
void fetch_release(struct fetch_core *c, uint32_t member, struct fetch_ask *a);
void fetch_release_all(struct fetch_core *c, uint32_t member);
void fetch_hold(struct fetch_core *c, struct fetch_file *f, uint32_t index);
/* The oldest ask is answered. */
void fetch_pop(struct fetch_core *c, uint32_t member);
/* It gave other bytes than those committed. */
void fetch_ban(struct fetch_core *c, uint32_t member);
void fetch_manifest_restart(struct fetch_file *f);

#endif
