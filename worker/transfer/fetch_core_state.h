/* fetch_core_state.h: the state behind fetch_core.h, shared by fetch_core.c (files and donors),
 * fetch_core_ask.c (requests) and fetch_core_answer.c (answers). Internal to them. */
#ifndef RV_WORKER_TRANSFER_FETCH_CORE_STATE_H
#define RV_WORKER_TRANSFER_FETCH_CORE_STATE_H

#include "worker/transfer/fetch_core.h"

enum {
	FETCH_NOBODY = -1,
	FETCH_HELD = 0xff,
	FETCH_TABLE = NET_MAX_ROW /* donors that are remembered: more than a document names */
};

/* A request that a donor has not answered yet. */
struct fetch_ask {
	struct frame_fetch what;
	int slot;     /* -1: its file is no longer wanted, and the answer is discarded */
	bool counted; /* in the copies of its piece, or as the manifest's request: relied on */
	int64_t asked_us;
};

struct fetch_donor {
	uint32_t member;
	bool linked, allowed;
	bool silent;         /* owes something and sends nothing: not relied on until it does */
	int staging;         /* index of the buffer for its answer; FETCH_NOBODY: it owes nothing */
	int first, n;        /* ring of `asks`, the oldest first */
	int window;          /* pieces it may owe */
	uint32_t got, total; /* bytes of the answer to the oldest ask */
	uint8_t encoding;
	int64_t piece_us; /* smoothed time for a piece; 0: not known */
	int64_t head_us;  /* when the oldest ask became the oldest */
	int64_t heard_us; /* when its last frame arrived, or its link came up */
	bool probing;     /* one of the asks only tests the connection */
	bool forgets;     /* nothing that it owes is wanted: a FORGET is to be sent */
	int offences;     /* wrong pieces so far */
	int64_t banned_until_us;
	int64_t lacks_until_us[FETCH_FILES], lacks_pause_us[FETCH_FILES];
	struct fetch_ask asks[FETCH_WINDOW_MAX];
};

struct fetch_file {
	bool used;
	bool looked_for; /* fetch_core_look() is on */
	struct state_id id;
	uint32_t n_pieces, n_held, n_free; /* free: neither held nor requested */
	uint32_t first_free;               /* no piece before this index is free */
	uint64_t bytes_held;
	uint8_t *copies; /* per piece: FETCH_HELD, or the number of donors relied on for it */
	struct rv_hash *manifest;
	bool has_manifest;
	int manifest_donor;                    /* index in `donors`; FETCH_NOBODY: none */
	uint32_t manifest_asked, manifest_got; /* parts */
	int manifest_tries;
	int64_t manifest_until_us; /* when another donor may take over */
};

struct fetch_core {
	struct fetch_core_config cfg;
	int64_t now_us;
	size_t piece_bytes; /* size of a staging buffer: the largest piece or manifest part */
	int n_order, order[FETCH_FILES];
	struct fetch_file files[FETCH_FILES];
	struct member_set links; /* members that are linked, donors or not */
	int n_donors;            /* number of `donors`, from the first, that were ever in use */
	struct fetch_donor donors[FETCH_TABLE];
	int8_t staging_of[FETCH_DONORS_MAX]; /* index in `donors`; FETCH_NOBODY: free */
	uint8_t *staging;                    /* FETCH_DONORS_MAX pieces, and one to decode into */
};

static inline struct fetch_ask *fetch_ask_at(struct fetch_donor *d, int k) {
	return &d->asks[(d->first + k) % FETCH_WINDOW_MAX];
}

/* ---- fetch_core.c ---- */
/* Asserts what always holds, between two calls. */
void fetch_core_check_invariants(const struct fetch_core *c);
uint32_t fetch_manifest_parts(const struct fetch_core *c, enum state_kind kind, uint64_t round);
/* Returns the raw bytes of a piece or manifest part; 0: there is no such one. */
uint32_t fetch_bytes_of(const struct fetch_core *c, const struct frame_fetch *what);
uint8_t *fetch_staging(const struct fetch_core *c, int i);
/* Returns the donor with this number; NULL: none. */
struct fetch_donor *fetch_find(struct fetch_core *c, uint32_t member);
int fetch_index(const struct fetch_core *c, const struct fetch_donor *d);
/* Stops relying on this donor for `a`; the answer may still come. */
void fetch_release(struct fetch_core *c, const struct fetch_donor *d, struct fetch_ask *a);
void fetch_hold(struct fetch_core *c, struct fetch_file *f, uint32_t index);
/* Removes the oldest ask, which is answered. */
void fetch_pop(struct fetch_core *c, struct fetch_donor *d);
/* Bans a donor for a while: it gave bytes other than the committed ones. */
void fetch_ban(struct fetch_core *c, struct fetch_donor *d);
void fetch_manifest_restart(struct fetch_file *f);

#endif
