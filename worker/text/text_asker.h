/* text_asker.h: what this worker asks other members about the run's text on the links of the mesh,
 * and their answers: which files a member holds, and ranges of them (TEXT_RANGE_BYTES,
 * text_core.h), each by FETCHes of NET_MAX_PIECE_BYTES. text_core chooses what to ask of whom.
 *
 * A link keeps the order of answers, so anything but the answer to the oldest FETCH of kind TEXT,
 * or to the question, is a breach. A range that is no longer needed is answered and discarded;
 * once nothing else is under way of a member, it is asked to forget the rest.
 *
 * No I/O, no clock, no allocation. One thread, or a lock. */
#ifndef RV_WORKER_TEXT_TEXT_ASKER_H
#define RV_WORKER_TEXT_TEXT_ASKER_H

#include "net/mesh/peers.h"

enum {
	TEXT_ASKER_MEMBERS = 48, /* members with questions or ranges under way: TEXT_SOURCES_MAX */
	TEXT_ASKER_FETCHES = 16  /* of one member under way */
};

/* Called inside text_asker_receive. */
struct text_asker_owner {
	void *ctx;
	/* Takes bytes [at, at + n) of a range, in order. */
	void (*on_bytes)(void *ctx, uint32_t ask, uint32_t at, const uint8_t *bytes, uint32_t n);
	/* Reports that the member does not have the range: the ask is over. */
	void (*on_none)(void *ctx, uint32_t ask);
	/* Takes the answer to a question: bit i of `held` for files[i]. */
	void (*on_held)(void *ctx, uint32_t member, const uint64_t *files, int n, uint64_t held);
};

struct text_asker_fetch {
	uint32_t ask; /* 0: no longer needed */
	uint64_t file;
	uint32_t index, at, bytes; /* number of the piece, its place in the range, its size */
	bool sent;
};

struct text_asker_member {
	bool used;
	uint32_t member;
	int n; /* of fetches, the oldest first; those that were sent before the others */
	struct text_asker_fetch fetches[TEXT_ASKER_FETCHES];
	uint32_t got; /* bytes of the answer to the oldest */
	bool forgets; /* to be asked to forget what was sent */
	int n_files;  /* of the question under way; 0: none */
	bool asked;   /* it was sent */
	uint64_t files[NET_MAX_TEXT_FILES];
};

/* Plain data; opaque to others than text_asker.c. */
struct text_asker {
	uint64_t run_tag;
	struct text_asker_owner owner;
	struct text_asker_member members[TEXT_ASKER_MEMBERS];
	uint8_t body[FRAME_TEXT_FILE_BYTES * NET_MAX_TEXT_FILES];
};

void text_asker_init(struct text_asker *a, uint64_t run_tag, const struct text_asker_owner *owner);
/* Returns true if another range can be asked of the member. */
bool text_asker_has_room(const struct text_asker *a, uint32_t member);
/* Asks for `bytes` (1 to TEXT_RANGE_BYTES) of range number `range` of a file. There is room. */
void text_asker_request(struct text_asker *a, uint32_t member, uint32_t ask, uint64_t file, uint32_t range,
						uint32_t bytes);
/* Ends an ask without a call of the owner; one that is over is ignored. */
void text_asker_cancel(struct text_asker *a, uint32_t ask);
/* Asks which of n files the member holds. Returns false if there is no place for another member; no
 * question to this one is under way. */
bool text_asker_question(struct text_asker *a, uint32_t member, const uint64_t *files, int n);
/* Forgets all that is under way of a member whose link is gone, without a call of the owner. */
void text_asker_link_down(struct text_asker *a, uint32_t member);

/* Writes the next frame for `member`, borrowed until the next call. Returns false if there is
 * none. */
bool text_asker_send(struct text_asker *a, uint32_t member, struct peers_message *out);
/* Takes a PIECE or NONE of kind TEXT, or a TEXT_HELD. RV_E_INVALID, RV_E_PROTOCOL: it is not the
 * answer that is due. */
enum rv_err text_asker_receive(struct text_asker *a, uint32_t member, const struct frame_header *h, const uint8_t *body,
							   struct rv_errtext *et);

#endif
