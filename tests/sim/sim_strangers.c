/* sim_strangers.c: keys that join and are banned (FAULT_SYBILS), and what a coordinator in the
 * hands of an attacker shows one member (FAULT_MISLED). */
#include "sim.h"

enum { EVERY_US = SIM_S / 2, KEY_OF = 0x73, TOKEN_OF = 0xa0, MORE_ROUNDS = 7 };

/* ---- keys that come and are banned ---- */

static enum rv_err join_one(struct sim *s, struct rv_errtext *et) {
	struct join_request rq = {
		.protocol = CONTROL_VERSION, .protocol_min = CONTROL_VERSION_MIN, .has_token = true, .software = "simulator"};
	const uint8_t key[NET_KEY_BYTES] = {KEY_OF, (uint8_t)s->strangers.left, (uint8_t)(s->strangers.left >> 8)};
	rq.token[0] = TOKEN_OF;
	rq.token[1] = (uint8_t)s->strangers.left;
	return core_join(s->coordinator.core, s->now_us, key, &rq, true, &s->strangers.member, et);
}

/* The operator bans the one that came before the next comes: numbers have no end, and whoever joins
 * meanwhile finds room. */
static void come_and_go(struct sim *s, int nobody, void *arg) {
	struct sim_strangers *g = &s->strangers;
	struct rv_errtext et = {0};
	(void)nobody, (void)arg;
	if (g->left == 0 && g->member == NET_NO_MEMBER)
		return;
	sim_at(s, s->now_us + EVERY_US, SIM_NOBODY, 0, come_and_go, NULL);
	if (s->coordinator.core == NULL || s->frozen_until_us[SIM_COORDINATOR] > s->now_us)
		return;
	enum rv_err e = RV_OK;
	if (g->member != NET_NO_MEMBER)
		e = core_ban(s->coordinator.core, s->now_us, g->member, true, &et);
	if (e == RV_OK)
		g->member = NET_NO_MEMBER;
	if (e == RV_OK && g->left > 0)
		e = join_one(s, &et);
	if (e == RV_OK && g->left > 0)
		g->left--;
	const bool later = e == RV_E_BUSY || e == RV_E_NOTFOUND; /* its record is not durable yet */
	if (e != RV_OK && !later)
		sim_fail(s, "one that joins and is banned after many others: %s", et.text);
	coordinator_turn(s);
}

void strangers_join(struct sim *s, int n) {
	s->strangers.left = n;
	s->strangers.member = NET_NO_MEMBER;
	come_and_go(s, SIM_NOBODY, NULL);
}

/* ---- another run ---- */

void strangers_mislead(struct sim *s, int host, enum sim_other_run how, uint64_t from_round) {
	s->strangers.misled = s->strangers.was_misled = host;
	s->strangers.how = how;
	s->strangers.from_round = from_round;
}

bool strangers_misled(const struct sim *s, int host) {
	return host == s->strangers.misled;
}

/* Gives each member, as its only address, that of a bystander. */
static void send_to_a_bystander(struct document *d) {
	const struct sim_where at = homes_bystander();
	for (int i = 0; i < d->n_members; i++) {
		d->members[i].n_candidates = 1;
		d->members[i].candidates[0].kind = CANDIDATE_SEEN;
		where_text(&at, d->members[i].candidates[0].addr);
	}
}

bool strangers_dial_anybody(const struct sim *s, int host) {
	return host == s->strangers.was_misled && s->strangers.how == OTHER_ADDRESSES;
}

bool strangers_change(const struct sim *s, int host, struct document *d) {
	if (!strangers_misled(s, host) || d->round < s->strangers.from_round)
		return false;
	switch (s->strangers.how) {
	case OTHER_CONFIGURATION:
		d->run_hash.b[0] ^= 1;
		break;
	case OTHER_ROUNDS:
		d->final_round += MORE_ROUNDS;
		break;
	default:
		send_to_a_bystander(d);
	}
	return true;
}

bool strangers_follows(struct sim *s, int host, const struct document *d) {
	const struct document *now = round_document(s->workers[host].core);
	if (rv_hash_equal(&d->run_hash, &s->run_hash) && d->final_round == s->opt.rounds)
		return true;
	if (now != NULL && now->seq == d->seq)
		sim_fail(s, "w%d follows document %llu of a run that it has not agreed to", host, (unsigned long long)d->seq);
	s->stats.misled++;
	return false;
}
