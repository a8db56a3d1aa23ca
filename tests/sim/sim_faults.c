/* sim_faults.c: carries the plan out: each fault at its time or its delicate moment, and its end;
 * and healing. What a fault does follows from the fault alone: no random numbers are drawn here. */
#include "sim.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *number_arg(int number) {
	int *arg = sim_alloc(sizeof *arg);
	*arg = number;
	return arg;
}

static int take_number(void *arg) {
	int number = *(int *)arg;
	free(arg);
	return number;
}

static const struct sim_fault *fault_of(const struct sim *s, int number) {
	return &s->plan->faults[number];
}

/* ---- hosts that are down, and come back ---- */

static void restart_worker(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	int host = take_number(arg);
	if (s->workers[host].life == 0 && (s->healed || s->now_us >= s->down_until_us[host]))
		worker_start(s, host);
}

static void restart_coordinator(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	free(arg);
	if (s->coordinator.core == NULL && (s->healed || s->now_us >= s->down_until_us[SIM_COORDINATOR]))
		coordinator_start(s);
}

/* Where several faults keep a host down, the last one to end counts. */
static void stay_down(struct sim *s, int host, int64_t until_us) {
	int64_t *down = &s->down_until_us[host];
	*down = until_us > *down ? until_us : *down;
	if (host == SIM_COORDINATOR)
		sim_at(s, *down, SIM_NOBODY, 0, restart_coordinator, NULL);
	else
		sim_at(s, *down, SIM_NOBODY, 0, restart_worker, number_arg(host));
}

static void crash(struct sim *s, int host, bool silent, int64_t lasts_us) {
	if (host == SIM_COORDINATOR && s->coordinator.core != NULL)
		coordinator_crash(s, silent);
	else if (host != SIM_COORDINATOR && s->workers[host].life != 0)
		worker_crash(s, host, silent);
	stay_down(s, host, s->now_us + lasts_us);
}

/* They do not all come back at once. */
static void cut_power(struct sim *s, const struct sim_fault *f, uint64_t set) {
	for (int h = 0; h <= SIM_COORDINATOR; h = sim_next_host(s, h))
		if (sim_in_set(s->opt.n_workers, set, h))
			crash(s, h, true, f->lasts_us + (sim_number(h) * 7919 % 64) * 50 * SIM_MS);
}

/* The earlier of two ends would let what happens to it overtake what waits for the later one. */
static void freeze(struct sim *s, const struct sim_fault *f) {
	int64_t until_us = s->now_us + f->lasts_us;
	if (until_us > s->frozen_until_us[f->host])
		s->frozen_until_us[f->host] = until_us;
}

static void leave_for_a_while(struct sim *s, const struct sim_fault *f) {
	if (s->workers[f->host].core == NULL)
		return;
	worker_leave(s, f->host);
	stay_down(s, f->host, s->now_us + f->lasts_us);
}

/* ---- the network ---- */

static void cut_partition(struct sim *s, uint64_t set, bool cut) {
	const int n = s->opt.n_workers;
	for (int a = 0; a < SIM_HOSTS; a = sim_next_host(s, a))
		for (int b = 0; b < SIM_HOSTS; b = sim_next_host(s, b))
			if (sim_in_set(n, set, a) != sim_in_set(n, set, b))
				sim_cut(s, a, b, cut);
}

/* Of a fault of a relay: `peer`. */
static int relay_of(const struct sim_fault *f) {
	RV_ASSERT(f->peer < SIM_MAX_RELAYS);
	return f->peer;
}

static void cut_as_planned(struct sim *s, const struct sim_fault *f, bool cut) {
	int peer = f->kind == FAULT_RELAY_CUT ? SIM_RELAY + relay_of(f) : f->peer;
	if (f->kind == FAULT_PARTITION)
		cut_partition(s, f->set, cut);
	else
		sim_cut(s, f->host, peer, cut);
	if (f->kind == FAULT_PAIR || f->kind == FAULT_RELAY_CUT)
		sim_cut(s, peer, f->host, cut);
}

/* Its kernel goes on sending what it wrote; most of it reaches `peer` when its successor is at work
 * again. */
static void die_behind_a_cut(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	const struct sim_fault *f = fault_of(s, take_number(arg));
	if (!s->healed)
		crash(s, f->host, false, f->lasts_us / 16);
}

static void break_link(struct sim *s, const struct sim_fault *f) {
	oracle_opening_over(s, f->host, f->peer);
	pipe_break(s, f->host, f->peer, f->lasts_us / 4);
}

/* ---- disks, clocks, bits ---- */

static void slow_disk(struct sim *s, const struct sim_fault *f, bool begins) {
	double *slowness = f->host == SIM_COORDINATOR ? &s->coordinator.disk_slowness : &s->workers[f->host].disk.slowness;
	*slowness = begins ? f->amount : 1;
}

static bool wipe(struct sim *s, const struct sim_fault *f) {
	if (!f->reckless && !oracle_others_hold_the_run(s, f->host))
		return false;
	crash(s, f->host, true, f->lasts_us);
	disk_wipe(&s->workers[f->host].disk);
	corpus_store_wipe(&s->workers[f->host]);
	sim_say(s, f->host, "its disk is wiped");
	return true;
}

static bool rot(struct sim *s, const struct sim_fault *f) {
	bool may = f->reckless || oracle_others_hold_the_run(s, f->host);
	if (!may || !disk_rot(&s->workers[f->host].disk, (uint32_t)f->amount))
		return false;
	corpus_store_rot(&s->workers[f->host], (uint32_t)f->amount);
	if (f->reckless && (int)f->amount % 2 == 0) /* else it may hold in memory what nobody can fetch any more */
		crash(s, f->host, true, f->lasts_us);
	sim_say(s, f->host, "a file on its disk is damaged");
	return true;
}

static void jump(struct sim *s, const struct sim_fault *f) {
	s->wall_jump_us[f->host] += (int64_t)(f->amount * SIM_S);
	crash(s, f->host, false, f->lasts_us);
	sim_say(s, f->host, "its wall clock jumps by %.0f s", f->amount);
}

/* Of theta or v; what it becomes stays in the range of weights, as most flips do. Every other one
 * is so small that an outer step may round it away. */
static void flip_bit(const struct sim *s, const struct sim_fault *f, struct sim_worker *w) {
	enum { MANTISSA_BITS = 23, LOW_BITS = 2, LARGEST = 16 };
	uint64_t where = (uint64_t)(f->amount * 0x1p52);
	bool low = (where >> 46) % 2 != 0;
	float *x = where % 2 ? w->global.theta : w->global.state[0];
	float *at = &x[where / 2 % s->opt.n_params], flipped;
	uint32_t bits;
	memcpy(&bits, at, sizeof bits);
	uint32_t other = bits ^ 1u << (where >> 40) % (low ? LOW_BITS : 32);
	memcpy(&flipped, &other, sizeof flipped);
	if (!(fabsf(flipped) < LARGEST)) {
		other = bits ^ 1u << (where >> 40) % MANTISSA_BITS;
		memcpy(&flipped, &other, sizeof flipped);
	}
	*at = flipped;
}

static bool flip(struct sim *s, const struct sim_fault *f) {
	struct sim_worker *w = &s->workers[f->host];
	if (w->core == NULL || w->flipped || w->global.round >= s->opt.rounds)
		return false;
	flip_bit(s, f, w);
	w->flipped = true;
	w->flipped_at = w->global.round;
	sim_say(s, f->host, "a bit of its state of round %llu flips", (unsigned long long)w->global.round);
	return true;
}

/* ---- one fault ---- */

static void end_fault(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	const struct sim_fault *f = fault_of(s, take_number(arg));
	if (s->healed)
		return;
	switch (f->kind) {
	case FAULT_PARTITION:
	case FAULT_ONE_WAY:
	case FAULT_PAIR:
	case FAULT_RELAY_CUT:
	case FAULT_POSTHUMOUS:
		cut_as_planned(s, f, false);
		break;
	case FAULT_RELAY:
		relay_start(s, relay_of(f));
		break;
	case FAULT_RELAY_SLOW:
		sim_network_slow(s, SIM_RELAY + relay_of(f), 1);
		break;
	case FAULT_SLOW_LINE:
		sim_network_slow(s, f->host, 1);
		break;
	case FAULT_SLOW_DISK:
		slow_disk(s, f, false);
		break;
	case FAULT_PAUSE:
		worker_pause(s, f->host, false);
		break;
	default:
		s->workers[f->host].disk.full = s->workers[f->host].disk.read_only = false;
	}
}

/* What goes on for a while, until end_fault. False: not such a fault. */
static bool begin_lasting(struct sim *s, int number) {
	const struct sim_fault *f = fault_of(s, number);
	switch (f->kind) {
	case FAULT_PARTITION:
	case FAULT_ONE_WAY:
	case FAULT_PAIR:
	case FAULT_RELAY_CUT:
		cut_as_planned(s, f, true);
		break;
	case FAULT_RELAY:
		relay_crash(s, relay_of(f), false);
		break;
	case FAULT_RELAY_SLOW:
		sim_network_slow(s, SIM_RELAY + relay_of(f), f->amount);
		break;
	case FAULT_POSTHUMOUS:
		cut_as_planned(s, f, true);
		sim_at(s, s->now_us + f->lasts_us / 8, SIM_NOBODY, 0, die_behind_a_cut, number_arg(number));
		break;
	case FAULT_SLOW_LINE:
		sim_network_slow(s, f->host, f->amount);
		break;
	case FAULT_SLOW_DISK:
		slow_disk(s, f, true);
		break;
	case FAULT_PAUSE:
		worker_pause(s, f->host, true);
		break;
	case FAULT_DISK_FULL:
		s->workers[f->host].disk.full = true;
		s->workers[f->host].disk.read_only = f->lasts_us % 2 != 0; /* remounted so, after a fault */
		break;
	default:
		return false;
	}
	sim_at(s, s->now_us + f->lasts_us, SIM_NOBODY, 0, end_fault, number_arg(number));
	return true;
}

/* False: it could not happen as things stand. */
static bool do_at_once(struct sim *s, const struct sim_fault *f) {
	switch (f->kind) {
	case FAULT_KILL:
	case FAULT_COORDINATOR:
	case FAULT_HOUR:
		crash(s, f->kind == FAULT_KILL ? f->host : SIM_COORDINATOR, false, f->lasts_us);
		return true;
	case FAULT_POWER_CUT:
		crash(s, f->host, true, f->lasts_us);
		return true;
	case FAULT_BLACKOUT:
	case FAULT_TOO_FEW:
		cut_power(s, f, f->kind == FAULT_BLACKOUT ? UINT64_MAX : f->set);
		return true;
	case FAULT_FREEZE:
		freeze(s, f);
		return true;
	case FAULT_LINK:
		break_link(s, f);
		return true;
	case FAULT_RELAY_BREAKS:
		relay_breaks(s, relay_of(f), f->host);
		return true;
	case FAULT_SPEED:
		s->workers[f->host].speed = f->amount;
		return true;
	case FAULT_ROT:
		return rot(s, f);
	case FAULT_WIPE:
		return wipe(s, f);
	case FAULT_CLOCK:
		jump(s, f);
		return true;
	case FAULT_LEAVE:
		leave_for_a_while(s, f);
		return true;
	case FAULT_FLIP:
		return flip(s, f);
	case FAULT_SYBILS:
		strangers_join(s, (int)f->amount);
		return true;
	case FAULT_ROLLBACK:
		operator_takes_back(s, (uint64_t)f->amount);
		return true;
	default:
		RV_UNREACHABLE("a fault that lasts");
	}
}

static void happen(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	int number = take_number(arg);
	const struct sim_fault *f = fault_of(s, number);
	bool needs_two =
		f->kind == FAULT_LINK || f->kind == FAULT_ONE_WAY || f->kind == FAULT_PAIR || f->kind == FAULT_POSTHUMOUS;
	if (s->healed || (needs_two && f->host == f->peer))
		return;
	if (s->verbose) {
		char text[512];
		sim_fault_text(f, text, sizeof text);
		sim_say(s, SIM_NOBODY, "fault %d: %s", number, text);
	}
	if (!begin_lasting(s, number) && !do_at_once(s, f))
		return;
	s->plan->happened[number] = true;
	s->stats.faults[f->kind]++;
}

/* ---- the plan ---- */

static int next_aimed_at(const struct sim *s, int host, int from) {
	for (int i = from; i < s->plan->n; i++)
		if (s->plan->chosen[i] && s->plan->faults[i].at_us < 0 && s->plan->faults[i].host == host &&
			s->plan->faults[i].on == ON_NOTHING)
			return i;
	return s->plan->n;
}

void faults_aim(struct sim *s, int host, uint32_t weight, int64_t lasts_us) {
	uint32_t moment = s->moments[host] += weight;
	int number = s->next_aimed[host];
	if (number == s->plan->n || s->healed || fault_of(s, number)->moment > moment)
		return;
	int64_t into_us = (int64_t)(fault_of(s, number)->into * (double)lasts_us);
	sim_at(s, s->now_us + into_us, SIM_NOBODY, 0, happen, number_arg(number));
	s->next_aimed[host] = next_aimed_at(s, host, number + 1);
}

void faults_on(struct sim *s, int host, enum sim_on what, uint64_t round, int64_t lasts_us) {
	for (int i = 0; s->n_planted > 0 && i < s->plan->n; i++) {
		const struct sim_fault *f = fault_of(s, i);
		bool due = s->plan->chosen[i] && !s->plan->happened[i] && f->on == what && what != ON_NOTHING &&
				   f->round == round && f->host == host;
		if (!due)
			continue;
		s->plan->happened[i] = true; /* once */
		s->n_planted--;
		sim_at(s, s->now_us + (int64_t)(f->into * (double)lasts_us), SIM_NOBODY, 0, happen, number_arg(i));
	}
}

/* Starts a fault that is counted each time that it acts. Returns false for another one. */
static bool start_counted_by_act(struct sim *s, const struct sim_fault *f) {
	switch (f->kind) {
	case FAULT_HTTP_LOSS:
		s->net.http_loss = f->amount;
		return true;
	case FAULT_HTTP_DOUBLING:
		s->net.http_doubling = f->amount;
		return true;
	case FAULT_HTTP_ECHO:
		s->net.http_echo = f->amount;
		return true;
	case FAULT_LIAR:
		s->liar = f->host;
		return true;
	default:
		return false;
	}
}

static void start_lasting(struct sim *s, int number) {
	const struct sim_fault *f = fault_of(s, number);
	s->plan->happened[number] = true;
	if (start_counted_by_act(s, f))
		return;
	s->stats.faults[f->kind]++;
	switch (f->kind) {
	case FAULT_WITHHOLDER:
		s->withholder = f->host;
		s->withheld = (enum sim_withheld)f->amount;
		break;
	case FAULT_IMPOSTOR:
		s->impostor = f->host;
		s->impersonated = f->peer;
		s->had_impostor = true;
		break;
	case FAULT_GHOST:
		s->ghost = f->host;
		break;
	case FAULT_ACCUSER:
		s->accuser = f->host;
		break;
	case FAULT_REFUSER:
		s->refuses[f->host] |= UINT64_C(1) << f->peer;
		sim_cut(s, f->host, f->peer, true);
		sim_cut(s, f->peer, f->host, true);
		break;
	case FAULT_CLAIMER:
		s->lies[f->host] |= UINT32_C(1) << (int)f->amount;
		break;
	case FAULT_RELAY_DROPS:
		s->relays[0].drops = f->amount;
		s->false_relays |= 1;
		break;
	case FAULT_FALSE_ADDRESS:
		s->false_address = f->host;
		break;
	case FAULT_FALSE_RELAY:
		s->relays[relay_of(f)].is = (uint8_t)f->amount;
		s->false_relays |= 1u << relay_of(f);
		break;
	case FAULT_MISLED:
		strangers_mislead(s, f->host, (enum sim_other_run)f->amount, f->round);
		break;
	case FAULT_HOME:
		homes_add(s, f->set, (enum sim_home_kind)f->amount, f->moment);
		break;
	default:
		for (int h = 0; h < s->opt.n_workers; h++)
			if (sim_in_set(s->opt.n_workers, f->set, h))
				homes_add_one(s, h, HOME_SYMMETRIC);
	}
}

void faults_start(struct sim *s) {
	memset(s->plan->happened, 0, sizeof s->plan->happened);
	memset(s->plan->committed_us, 0, sizeof s->plan->committed_us);
	s->was_withholder = s->was_liar = SIM_NOBODY;
	s->liar = s->flip_victim = s->withholder = s->ghost = s->accuser = s->impostor = s->false_address = SIM_NOBODY;
	s->strangers = (struct sim_strangers){.member = NET_NO_MEMBER, .misled = SIM_NOBODY, .was_misled = SIM_NOBODY};
	memset(s->refuses, 0, sizeof s->refuses);
	memset(s->lies, 0, sizeof s->lies);
	for (int h = 0; h < SIM_HOSTS; h = sim_next_host(s, h))
		s->next_aimed[h] = next_aimed_at(s, h, 0);
	for (int i = 0; i < s->plan->n; i++) {
		const struct sim_fault *f = fault_of(s, i);
		if (!s->plan->chosen[i])
			continue;
		s->n_planted += f->on != ON_NOTHING;
		if (f->kind <= FAULT_HOME)
			start_lasting(s, i);
		else if (f->at_us >= 0)
			sim_at(s, f->at_us, SIM_NOBODY, 0, happen, number_arg(i));
		if (f->kind == FAULT_FLIP)
			s->flip_victim = f->host;
		if (f->kind == FAULT_HOUR && f->at_us + f->lasts_us + 20 * SIM_S > s->opt.safety_us)
			s->opt.safety_us = f->at_us + f->lasts_us + 20 * SIM_S;
	}
}

/* Liars of a universe of liars lie on. */
static void stop_lying(struct sim *s) {
	if (s->opt.liars)
		return;
	s->liar = s->withholder = s->ghost = s->accuser = s->impostor = s->false_address = SIM_NOBODY;
	memset(s->refuses, 0, sizeof s->refuses);
	memset(s->lies, 0, sizeof s->lies);
}

void faults_heal(struct sim *s) {
	s->healed = true;
	s->healed_us = s->now_us;
	sim_say(s, SIM_NOBODY, "everything heals");
	s->net.http_loss = s->net.http_doubling = s->net.http_echo = 0;
	if (s->impostor != SIM_NOBODY && s->workers[s->impostor].life != 0)
		worker_crash(s, s->impostor, false);
	/* Its person starts it again. */
	if (s->strangers.misled != SIM_NOBODY && s->workers[s->strangers.misled].life != 0)
		worker_crash(s, s->strangers.misled, false);
	s->strangers.misled = SIM_NOBODY;
	s->was_withholder = s->withholder;
	s->was_liar = s->liar;
	stop_lying(s);
	sim_cut_nothing(s);
	for (int r = 0; r < s->opt.relay; r++) {
		relay_start(s, r);
		s->relays[r].drops = 0;
		s->relays[r].is = FALSE_NOT;
	}
	for (int h = 0; h < SIM_HOSTS; h = sim_next_host(s, h))
		sim_network_slow(s, h, 1);
	s->coordinator.disk_slowness = 1;
	restart_coordinator(s, SIM_NOBODY, NULL);
	for (int h = 0; h < s->opt.n_workers; h++) {
		struct sim_worker *w = &s->workers[h];
		w->disk.full = w->disk.read_only = false;
		w->disk.slowness = 1;
		if (w->life == 0)
			worker_start(s, h);
		worker_pause(s, h, false);
		w->speed = 1;
	}
}
