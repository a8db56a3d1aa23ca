/* live.c: counts of readers. */
#include "worker/trainer/live.h"

#include "base/assert.h"

void live_init(struct live_state *l) {
	*l = (struct live_state){.ended = false};
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->let_go, NULL);
}

void live_release(struct live_state *l) {
	for (int i = 0; i < LIVE_PARTS; i++)
		RV_ASSERT(l->readers[i] == 0);
	pthread_cond_destroy(&l->let_go);
	pthread_mutex_destroy(&l->lock);
}

void live_hold(struct live_state *l, enum live_part part) {
	pthread_mutex_lock(&l->lock);
	l->readers[part]++;
	pthread_mutex_unlock(&l->lock);
}

void live_let_go(struct live_state *l, enum live_part part) {
	pthread_mutex_lock(&l->lock);
	RV_ASSERT(l->readers[part] > 0);
	l->readers[part]--;
	pthread_cond_broadcast(&l->let_go);
	pthread_mutex_unlock(&l->lock);
}

void live_wait(struct live_state *l, enum live_part part) {
	pthread_mutex_lock(&l->lock);
	while (l->readers[part] > 0 && !l->ended && !(l->given_up && part == LIVE_REPLICA))
		pthread_cond_wait(&l->let_go, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

void live_end(struct live_state *l) {
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	pthread_cond_broadcast(&l->let_go);
	pthread_mutex_unlock(&l->lock);
}

void live_give_up(struct live_state *l) {
	pthread_mutex_lock(&l->lock);
	l->given_up = true;
	pthread_cond_broadcast(&l->let_go);
	pthread_mutex_unlock(&l->lock);
}

bool live_is_free(struct live_state *l) {
	pthread_mutex_lock(&l->lock);
	const bool is_free = l->given_up || l->readers[LIVE_REPLICA] == 0;
	pthread_mutex_unlock(&l->lock);
	return is_free;
}

bool live_begin_piece(struct live_state *l) {
	pthread_mutex_lock(&l->lock);
	if (!l->given_up)
		return true;
	pthread_mutex_unlock(&l->lock);
	return false;
}

void live_end_piece(struct live_state *l) {
	pthread_mutex_unlock(&l->lock);
}
