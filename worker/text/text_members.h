/* text_members.h: where the text thread (text_thread.h) and the thread of the mesh meet: what is
 * asked of members goes one way, links and answers the other, through text_asker.h under a lock.
 *
 * Memory: a range for each of TEXT_MEMBER_ASKS, whatever members send. */
#ifndef RV_WORKER_TEXT_TEXT_MEMBERS_H
#define RV_WORKER_TEXT_TEXT_MEMBERS_H

#include "net/member_set.h"
#include "worker/text/text_asker.h"
#include "worker/text/text_core.h"

enum { TEXT_MEMBER_ASKS = 12 /* ranges under way of all members together */ };

struct text_members;

/* Makes it, without members. The thread of the mesh calls wake(ctx) when there is an event. NULL:
 * no memory. */
struct text_members *text_members_new(void (*wake)(void *ctx), void *ctx);
void text_members_free(struct text_members *m); /* NULL is fine */

/* ---- the thread of the mesh ---- */

/* Says that there are members from now on. The text thread calls wake(ctx) when there is something
 * to send: the caller then calls text_members_send for all links. */
void text_members_meet(struct text_members *m, uint64_t run_tag, void (*wake)(void *ctx), void *ctx);
void text_members_link_up(struct text_members *m, uint32_t member);
void text_members_link_down(struct text_members *m, uint32_t member);
/* Do what text_asker_send and text_asker_receive do. */
bool text_members_send(struct text_members *m, uint32_t member, struct peers_message *out);
enum rv_err text_members_receive(struct text_members *m, uint32_t member, const struct frame_header *h,
								 const uint8_t *body, struct rv_errtext *et);

/* ---- the text thread ---- */

/* Copies the links, and those of the members whose link went down since the last call, whether
 * they have another one or not. Returns false if nothing changed; *meets: text_members_meet was
 * called. */
bool text_members_links(struct text_members *m, bool *meets, struct member_set *linked, struct member_set *lost);
/* Returns true if a question, or another range, can be asked of the member. */
bool text_members_may_question(struct text_members *m, uint32_t member);
bool text_members_may_request(struct text_members *m, uint32_t member);
/* Asks which of `files` the member holds, and for a range of a file (RV_E_NOMEM). Each after its
 * text_members_may_*() returned true, with nothing between but calls of this thread. A link that is
 * gone meanwhile is in the next text_members_links(). */
void text_members_question(struct text_members *m, uint32_t member, const uint64_t *files, int n);
enum rv_err text_members_request(struct text_members *m, uint32_t member, const struct text_request *q, uint32_t bytes,
								 struct rv_errtext *et);
void text_members_cancel(struct text_members *m, uint32_t ask);

enum text_member_event_type { TEXT_MEMBER_HELD, TEXT_MEMBER_NONE, TEXT_MEMBER_PROGRESS, TEXT_MEMBER_RANGE };
struct text_member_event {
	enum text_member_event_type type;
	/* HELD: bit i of `held` for files[i]. */
	uint32_t member;
	int n;
	uint64_t files[NET_MAX_TEXT_FILES], held;
	/* The others. NONE and RANGE end the ask. */
	uint32_t ask, bytes; /* PROGRESS: so far */
	uint8_t *range;      /* RANGE: `bytes` of it, the caller's to free */
};
/* Writes the next event. Returns false if there is none. */
bool text_members_next(struct text_members *m, struct text_member_event *out);

#endif
