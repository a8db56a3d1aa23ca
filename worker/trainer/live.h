/* live.h: which of the trainer's state is being read where it lies, and must not change: a replica,
 * or the shared state, on its way to the disk without a copy. Any thread. */
#ifndef RV_WORKER_TRAINER_LIVE_H
#define RV_WORKER_TRAINER_LIVE_H

#include <pthread.h>
#include <stdbool.h>

enum live_part {
	LIVE_REPLICA, /* theta_local, moments, what is kept with them */
	LIVE_SHARED,  /* theta and the outer optimizer's states */
	LIVE_PARTS
};

struct live_state {
	pthread_mutex_t lock;
	pthread_cond_t let_go;
	int readers[LIVE_PARTS]; /* under lock, as are the others */
	bool ended, given_up;
};

void live_init(struct live_state *l);
/* Frees it, once nobody reads. */
void live_release(struct live_state *l);
/* Adds and removes a reader of a part. */
void live_hold(struct live_state *l, enum live_part part);
void live_let_go(struct live_state *l, enum live_part part);
/* Waits until nobody reads a part: before a change, by the thread that changes and adds readers. */
void live_wait(struct live_state *l, enum live_part part);
/* Makes every wait end: no reader will read again. */
void live_end(struct live_state *l);

/* Gives the replica up: what its readers have not read yet is lost to them, nobody waits for them,
 * and its memory may be freed. Waits until no piece of it is being read. */
void live_give_up(struct live_state *l);
/* Reports whether nobody reads the replica any longer. */
bool live_is_free(struct live_state *l);
/* Begin and end reading a piece of the replica. Returns false, and nothing is to end, if it was
 * given up. */
bool live_begin_piece(struct live_state *l);
void live_end_piece(struct live_state *l);

#endif
