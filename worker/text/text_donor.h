/* text_donor.h: gives the run's text to other members: says which files this worker holds, and
 * sends pieces of them as a donor (worker/transfer/donor.h) does, with its caps, budgets and
 * turns, behind the all-reduce and the state.
 *
 * A member has one question waiting at most, more is a breach; one is answered in TEXT_ANSWER_US,
 * so no member can make this worker look for files all the time. The files come from a
 * text_donor_source: the worker's directory (worker/text/text_donor_store.h), or the simulator's.
 *
 * No I/O, no clock, no allocation. One thread. */
#ifndef RV_WORKER_TEXT_TEXT_DONOR_H
#define RV_WORKER_TEXT_TEXT_DONOR_H

#include "worker/transfer/donor.h"

enum { TEXT_ANSWER_US = 200 * 1000 };

struct text_donor_source {
	struct donor_source pieces; /* of frame_fetch.round, a file of the text, of any number */
	/* Returns true if the file, of any number, is here: cheap. */
	bool (*holds)(void *ctx, uint64_t file);
	void *ctx;
};

struct text_donor_config {
	struct donor_config donor; /* its source is that of `source` */
	struct text_donor_source source;
};

struct text_donor; /* opaque: text_donor_size() bytes, the caller's memory */
size_t text_donor_size(void);
struct text_donor *text_donor_init(void *memory, const struct text_donor_config *cfg);
/* Returns what gives the pieces: its sending is limited, and counted, there. */
struct donor *text_donor_pieces(struct text_donor *d);

/* Takes a FETCH of kind TEXT, or a TEXT_ASK, of `member`. RV_E_INVALID, RV_E_PROTOCOL, RV_E_FULL,
 * as donor_receive. */
enum rv_err text_donor_receive(struct text_donor *d, int64_t now_us, uint32_t member, const struct frame_header *h,
							   const uint8_t *body, struct rv_errtext *et);
/* Writes the answer to a question of `member` that is due, which waits for no cap; *out is borrowed
 * until the next call. Returns false if there is none now. */
bool text_donor_answer(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
/* Writes the next answer, or slice of a file, for `member`; otherwise as text_donor_answer. */
bool text_donor_send(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
void text_donor_link_down(struct text_donor *d, uint32_t member);
int64_t text_donor_deadline_us(struct text_donor *d, int64_t now_us); /* when one of them may write again */

#endif
