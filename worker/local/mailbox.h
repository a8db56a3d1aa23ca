/* mailbox.h: commands of the person who runs a worker, on their way from the thread that receives
 * them to the one that carries them out (the *owner*), and its answers on their way back.
 *
 * Each side has a descriptor that is readable while something may wait for it. The functions are
 * thread-safe and never block for long. */
#ifndef RV_WORKER_LOCAL_MAILBOX_H
#define RV_WORKER_LOCAL_MAILBOX_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAILBOX_MOST = 8, LOCAL_TEXT_BYTES = 2048 };

struct mailbox;

/* The result of a command, in plain words. */
struct local_answer {
	bool ok;
	char text[LOCAL_TEXT_BYTES];
};

/* Makes a mailbox; the caller frees it once neither side uses it. RV_E_NOMEM, RV_E_IO. */
enum rv_err mailbox_new(struct mailbox **out, struct rv_errtext *et);
void mailbox_free(struct mailbox *m); /* NULL is fine */

/* ---- the receiver's side ---- */

/* Posts a command and takes its reference. *ticket: its number. Returns false, and drops the
 * command, if MAILBOX_MOST are under way. */
bool mailbox_post(struct mailbox *m, json_t *command, uint64_t *ticket);
/* Takes an answer. Returns false if there is none. */
bool mailbox_collect(struct mailbox *m, uint64_t *ticket, struct local_answer *out);
/* Gives a command up: one that the owner has not taken is never carried out; the answer of one
 * that it has is dropped. Returns false if the owner had taken it. */
bool mailbox_give_up(struct mailbox *m, uint64_t ticket);
/* Returns the descriptor that is readable once answers wait, or mailbox_close was called. */
int mailbox_receiver_fd(const struct mailbox *m);
bool mailbox_is_closed(struct mailbox *m);

/* ---- the owner's side ---- */

/* Takes the oldest command; the caller drops its reference, and answers it. NULL: none. */
json_t *mailbox_take(struct mailbox *m, uint64_t *ticket);
/* Answers a command that was taken, once. */
void mailbox_answer(struct mailbox *m, uint64_t ticket, const struct local_answer *answer);
/* Returns the descriptor that is readable while a command waits. */
int mailbox_owner_fd(const struct mailbox *m);
/* Wakes the receiver for good. */
void mailbox_close(struct mailbox *m);

#endif
