/* mailbox.c: see mailbox.h. A few places under one lock; a byte in a pipe wakes the other side. */
#include "worker/local/mailbox.h"

#include "base/assert.h"
#include "base/os_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum state { FREE, POSTED, TAKEN, ANSWERED };

struct place {
	enum state state;
	uint64_t ticket;
	json_t *command; /* POSTED */
	bool given_up;   /* TAKEN: nobody waits for the answer */
	struct local_answer answer;
};

struct mailbox {
	pthread_mutex_t lock;
	struct place places[MAILBOX_MOST];
	uint64_t last; /* ticket */
	bool closed;
	int owner[2], receiver[2]; /* pipes: to read, to write */
};

/* ---- pipes ---- */

static void wake(const int pipe_fds[2]) {
	ssize_t n = write(pipe_fds[1], "", 1); /* a full pipe wakes as well */
	(void)n;
}

static void calm(const int pipe_fds[2]) {
	char bytes[MAILBOX_MOST];
	while (read(pipe_fds[0], bytes, sizeof bytes) > 0) {
	}
}

static void close_pipe(int pipe_fds[2]) {
	for (int i = 0; i < 2; i++)
		if (pipe_fds[i] >= 0)
			(void)close(pipe_fds[i]);
}

enum rv_err mailbox_new(struct mailbox **out, struct rv_errtext *et) {
	struct mailbox *m = calloc(1, sizeof *m);
	*out = NULL;
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for the commands");
	(void)pthread_mutex_init(&m->lock, NULL);
	m->owner[0] = m->owner[1] = m->receiver[0] = m->receiver[1] = -1;
	if (os_file_pipe(m->owner) != 0 || os_file_pipe(m->receiver) != 0) {
		enum rv_err e = rv_fail_errno(et, errno, "no pipe for the commands");
		mailbox_free(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

void mailbox_free(struct mailbox *m) {
	if (!m)
		return;
	for (int i = 0; i < MAILBOX_MOST; i++)
		json_decref(m->places[i].command);
	close_pipe(m->owner);
	close_pipe(m->receiver);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
}

/* ---- under the lock ---- */

/* Returns the oldest place in `state`, or NULL. */
static struct place *oldest(struct mailbox *m, enum state state) {
	struct place *found = NULL;
	for (struct place *p = m->places; p < m->places + MAILBOX_MOST; p++)
		if (p->state == state && (!found || p->ticket < found->ticket))
			found = p;
	return found;
}

static struct place *place_of(struct mailbox *m, uint64_t ticket) {
	for (struct place *p = m->places; p < m->places + MAILBOX_MOST; p++)
		if (p->state != FREE && p->ticket == ticket)
			return p;
	return NULL;
}

static void clear(struct place *p) {
	json_decref(p->command);
	*p = (struct place){.state = FREE};
}

/* ---- the receiver's side ---- */

bool mailbox_post(struct mailbox *m, json_t *command, uint64_t *ticket) {
	(void)pthread_mutex_lock(&m->lock);
	struct place *p = oldest(m, FREE);
	if (p) {
		*p = (struct place){.state = POSTED, .ticket = ++m->last, .command = command};
		*ticket = p->ticket;
	}
	(void)pthread_mutex_unlock(&m->lock);
	if (p)
		wake(m->owner);
	else
		json_decref(command);
	return p != NULL;
}

bool mailbox_collect(struct mailbox *m, uint64_t *ticket, struct local_answer *out) {
	(void)pthread_mutex_lock(&m->lock);
	if (!m->closed)
		calm(m->receiver);
	struct place *p = oldest(m, ANSWERED);
	if (p) {
		*ticket = p->ticket;
		*out = p->answer;
		clear(p);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return p != NULL;
}

bool mailbox_give_up(struct mailbox *m, uint64_t ticket) {
	(void)pthread_mutex_lock(&m->lock);
	struct place *p = place_of(m, ticket);
	const bool was_taken = p && p->state == TAKEN;
	if (was_taken)
		p->given_up = true;
	else if (p)
		clear(p);
	(void)pthread_mutex_unlock(&m->lock);
	return !was_taken;
}

int mailbox_receiver_fd(const struct mailbox *m) {
	return m->receiver[0];
}

bool mailbox_is_closed(struct mailbox *m) {
	(void)pthread_mutex_lock(&m->lock);
	const bool closed = m->closed;
	(void)pthread_mutex_unlock(&m->lock);
	return closed;
}

/* ---- the owner's side ---- */

json_t *mailbox_take(struct mailbox *m, uint64_t *ticket) {
	json_t *command = NULL;
	(void)pthread_mutex_lock(&m->lock);
	struct place *p = oldest(m, POSTED);
	if (p) {
		p->state = TAKEN;
		*ticket = p->ticket;
		command = p->command;
		p->command = NULL;
	}
	if (!oldest(m, POSTED))
		calm(m->owner);
	(void)pthread_mutex_unlock(&m->lock);
	return command;
}

void mailbox_answer(struct mailbox *m, uint64_t ticket, const struct local_answer *answer) {
	(void)pthread_mutex_lock(&m->lock);
	struct place *p = place_of(m, ticket);
	RV_ASSERT(p && p->state == TAKEN);
	p->answer = *answer;
	p->state = ANSWERED;
	if (p->given_up)
		clear(p);
	(void)pthread_mutex_unlock(&m->lock);
	wake(m->receiver);
}

int mailbox_owner_fd(const struct mailbox *m) {
	return m->owner[0];
}

void mailbox_close(struct mailbox *m) {
	(void)pthread_mutex_lock(&m->lock);
	m->closed = true;
	(void)pthread_mutex_unlock(&m->lock);
	wake(m->receiver);
}
