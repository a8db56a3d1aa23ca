/* piece.h: pieces that the auditor, and gather, ask members for: a chunk of what a member sent to a
 * round, or a part of its inner state, with the proof that this is what it has committed to; and
 * answers that nobody waits for. */
#ifndef RV_WORKER_AUDIT_PIECE_H
#define RV_WORKER_AUDIT_PIECE_H

#include "worker/audit/auditor.h"

enum piece_state { PIECE_WANTED, PIECE_ASKED, PIECE_HERE };
struct piece {
	const struct auditor_member *from;
	enum piece_state state;
	int64_t ready_us; /* not asked before; INT64_MIN: at once */
	int cuts;         /* links that it has ended while it owed the piece, since more of it came */
	/* It was asked over a relayed link: now, or over one that it has ended since more came. */
	bool relayed;
	bool refused; /* it has said NONE since it was asked */
	size_t most;  /* bytes of it that came over one link */
	size_t chunk_bytes, bytes, got;
	uint8_t *at;
};

/* Returns the bytes of the proof of one of so many chunks. */
size_t piece_proof_bytes(uint32_t n_chunks, uint32_t chunk);
/* Returns true if the piece is the chunk that its sender has committed to. */
bool piece_is_proven(const struct piece *p, uint32_t n_chunks, uint32_t chunk);

/* Returns true if all are here. */
bool pieces_are_here(const struct piece *pieces, int n);
/* Returns the piece of the member; NULL: it has none. */
struct piece *pieces_find(struct piece *pieces, int n, uint32_t member);
/* Lets those be asked again that gave NONE long enough ago. */
void pieces_make_ready(struct piece *pieces, int n, int64_t now_us);
/* Returns when the next one of them may be asked again; INT64_MAX: none waits for that. */
int64_t pieces_ready_us(const struct piece *pieces, int n);

/* Answers that are still due, though nobody wants them: the next one of each of these members,
 * which are linked. */
struct owed_answers {
	int n;
	struct {
		uint32_t member;
		struct frame_fetch of;
	} of[NET_MAX_PEERS];
};
void owed_add(struct owed_answers *o, uint32_t member, struct frame_fetch of);
/* Returns the place of the oldest answer of the member; -1: it owes none. */
int owed_find(const struct owed_answers *o, uint32_t member);
void owed_drop(struct owed_answers *o, int at);

#endif
