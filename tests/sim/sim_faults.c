/* sim_faults.c: what goes wrong in the safety phase, one thing after the other at random times; and healing. */
#include "sim.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_fault_names[SIM_FAULTS] = {[FAULT_KILL] = "killed",
												 [FAULT_POWER_CUT] = "power cuts",
												 [FAULT_FREEZE] = "frozen",
												 [FAULT_LINK] = "links broken",
												 [FAULT_PARTITION] = "partitions",
												 [FAULT_COORDINATOR] = "coordinator killed",
												 [FAULT_SLOW] = "speed changed",
												 [FAULT_LEAVE] = "left",
												 [FAULT_FLIP] = "bits flipped",
												 [FAULT_HTTP_LOST] = "HTTP lost",
												 [FAULT_HTTP_DOUBLED] = "HTTP doubled",
												 [FAULT_TORN_WRITE] = "torn writes"};

static void restart_worker(struct sim *s, int host, void *arg) {
	(void)host;
	int which = *(int *)arg;
	free(arg);
	if (s->workers[which].life == 0)
		worker_start(s, which);
}

static void restart_worker_at(struct sim *s, int host, int64_t at_us) {
	int *which = sim_alloc(sizeof *which);
	*which = host;
	sim_at(s, at_us, SIM_NOBODY, 0, restart_worker, which);
}

static void restart_coordinator(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	if (s->coordinator.core == NULL)
		coordinator_start(s);
}

static void end_partition(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	static const int together[SIM_HOSTS];
	sim_partition(s, together);
}

static int64_t a_while(struct sim *s) {
	bool long_one = sim_chance(s, 0.3);
	return s->now_us + sim_between(s, 50 * SIM_MS, long_one ? 12 * SIM_S : 2 * SIM_S);
}

static void crash(struct sim *s, int host, bool silent) {
	if (s->workers[host].life == 0)
		return;
	worker_crash(s, host, silent);
	restart_worker_at(s, host, a_while(s));
}

static void freeze(struct sim *s, int host) {
	s->frozen_until_us[host] = a_while(s);
	sim_say(s, host, "is frozen until %.3f s", (double)s->frozen_until_us[host] / SIM_S);
}

static void break_link(struct sim *s, int a, int b) {
	peers_break_at(s, a, b, s->workers[a].links[b].number, s->now_us + sim_between(s, 0, SIM_S));
	peers_break_at(s, b, a, s->workers[b].links[a].number, s->now_us + sim_between(s, 0, SIM_S));
}

static void partition(struct sim *s) {
	int side[SIM_HOSTS];
	for (int h = 0; h < SIM_HOSTS; h++)
		side[h] = (int)sim_between(s, 0, 2);
	sim_say(s, SIM_NOBODY, "a partition");
	sim_partition(s, side);
	sim_at(s, a_while(s), SIM_NOBODY, 0, end_partition, NULL);
}

static void leave_for_a_while(struct sim *s, int host) {
	if (s->workers[host].core == NULL)
		return;
	worker_leave(s, host);
	crash(s, host, false);
}

static void restart_coordinator_later(struct sim *s) {
	if (s->coordinator.core != NULL)
		coordinator_crash(s);
	sim_at(s, a_while(s), SIM_NOBODY, 0, restart_coordinator, NULL);
}

static void do_fault(struct sim *s, enum sim_fault fault, int host) {
	int other = (host + 1 + (int)sim_between(s, 0, s->opt.n_workers)) % s->opt.n_workers;
	s->stats.faults[fault]++;
	switch (fault) {
	case FAULT_KILL:
	case FAULT_POWER_CUT:
		crash(s, host, fault == FAULT_POWER_CUT);
		break;
	case FAULT_FREEZE:
		freeze(s, host);
		break;
	case FAULT_LINK:
		if (host != other)
			break_link(s, host, other);
		break;
	case FAULT_PARTITION:
		partition(s);
		break;
	case FAULT_COORDINATOR:
		restart_coordinator_later(s);
		break;
	case FAULT_SLOW:
		s->workers[host].speed = 0.2 + 2 * rv_rng_double(&s->rng);
		break;
	default:
		leave_for_a_while(s, host);
	}
}

static void next_fault(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	if (s->healed)
		return;
	do_fault(s, (enum sim_fault)sim_between(s, 0, FAULT_LEAVE + 1), (int)sim_between(s, 0, s->opt.n_workers));
	sim_at(s, s->now_us + sim_between(s, 1, 2 * s->opt.fault_interval_us), SIM_NOBODY, 0, next_fault, NULL);
}

static void aimed_fault(struct sim *s, int host, void *arg) {
	(void)host;
	int target = *(int *)arg;
	free(arg);
	if (s->healed)
		return;
	if (target == SIM_COORDINATOR)
		do_fault(s, FAULT_COORDINATOR, 0);
	else
		do_fault(s, (enum sim_fault)sim_between(s, 0, FAULT_PARTITION + 1), target);
}

void faults_aim(struct sim *s, int host, int64_t lasts_us) {
	if (s->opt.calm || s->healed || !sim_chance(s, 0.01))
		return;
	int *target = sim_alloc(sizeof *target);
	*target = host;
	sim_at(s, s->now_us + sim_between(s, 0, lasts_us + 1), SIM_NOBODY, 0, aimed_fault, target);
}

/* ---- flipped bits: of one worker, where the others are a majority of every roster ---- */

/* Of theta or v; what it becomes stays in the range of weights, as most flips do. */
static void flip_bit(struct sim *s, struct sim_worker *w) {
	enum { MANTISSA_BITS = 23, LARGEST = 16 };
	float *x = rv_rng_below(&s->flip_rng, 2) ? w->global.theta : w->global.state[0];
	float *at = &x[rv_rng_below(&s->flip_rng, s->opt.n_params)], flipped;
	uint32_t bits;
	memcpy(&bits, at, sizeof bits);
	uint32_t other = bits ^ 1u << rv_rng_below(&s->flip_rng, 32);
	memcpy(&flipped, &other, sizeof flipped);
	if (!(fabsf(flipped) < LARGEST)) {
		other = bits ^ 1u << rv_rng_below(&s->flip_rng, MANTISSA_BITS);
		memcpy(&flipped, &other, sizeof flipped);
	}
	*at = flipped;
}

static void next_flip(struct sim *s, int host, void *arg) {
	(void)host;
	(void)arg;
	struct sim_worker *w = &s->workers[s->flip_victim];
	if (s->healed)
		return;
	if (w->core != NULL && !w->flipped && w->global.round < s->opt.rounds) {
		flip_bit(s, w);
		w->flipped = true;
		w->flipped_at = w->global.round;
		s->stats.faults[FAULT_FLIP]++;
		sim_say(s, s->flip_victim, "a bit of its state of round %llu flips", (unsigned long long)w->global.round);
	}
	int64_t pause_us = (int64_t)rv_rng_below(&s->flip_rng, (uint64_t)s->opt.safety_us);
	sim_at(s, s->now_us + pause_us, SIM_NOBODY, 0, next_flip, NULL);
}

static void start_flipping(struct sim *s) {
	enum { ENOUGH_FOR_A_MAJORITY = 3 };
	s->flip_victim = SIM_NOBODY;
	if (s->opt.calm || s->opt.min_workers < ENOUGH_FOR_A_MAJORITY || rv_rng_below(&s->flip_rng, 2) == 0)
		return;
	s->flip_victim = (int)rv_rng_below(&s->flip_rng, (uint64_t)s->opt.n_workers);
	sim_at(s, (int64_t)rv_rng_below(&s->flip_rng, (uint64_t)s->opt.safety_us / 2), SIM_NOBODY, 0, next_flip, NULL);
}

void faults_start(struct sim *s) {
	start_flipping(s);
	if (!s->opt.calm)
		sim_at(s, s->now_us + s->opt.fault_interval_us, SIM_NOBODY, 0, next_fault, NULL);
}

void faults_heal(struct sim *s) {
	s->healed = true;
	s->healed_us = s->now_us;
	sim_say(s, SIM_NOBODY, "everything heals");
	s->net.http_loss = s->net.http_duplication = 0;
	end_partition(s, SIM_NOBODY, NULL);
	restart_coordinator(s, SIM_NOBODY, NULL);
	for (int h = 0; h < s->opt.n_workers; h++) {
		if (s->frozen_until_us[h] > s->now_us)
			s->frozen_until_us[h] = s->now_us;
		if (s->workers[h].life == 0)
			worker_start(s, h);
		s->workers[h].speed = 1;
	}
}
