/* evil_reports.c: a member that lies to the coordinator, by the linker (--wrap). What it claims:
 * evil.h. */
#include "base/assert.h"
#include "base/clock.h"
#include "net/control/signed_roots.h"
#include "tests/attack/evil.h"
#include "worker/join/control_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void report_fn(struct control_client *c, const struct report *r);
report_fn __real_control_client_report, __wrap_control_client_report;
typedef void sign_fn(struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], const struct seal_ops *ops);
sign_fn __real_report_sign, __wrap_report_sign;

/* ---- where it may be dialed ---- */

/* Makes a candidate of K@A, n bytes. */
static struct candidate lie_of(const char *text, size_t n) {
	struct candidate c = {.kind = (uint8_t)strtoul(text, NULL, 10)};
	const char *at = strchr(text, '@') + 1;
	const size_t address_bytes = n - (size_t)(at - text);
	RV_ASSERT(address_bytes < sizeof c.addr);
	memcpy(c.addr, at, address_bytes);
	if (c.kind == CANDIDATE_REFLECTED) {
		c.relay = 1;
		c.unix_s = (uint64_t)rv_clock_wall_us() / RV_US_PER_S;
		memset(c.signature, 0x5a, sizeof c.signature);
	}
	return c;
}

static void add_lies(struct report *r, const char *text) {
	for (r->n_candidates = 1; *text != '\0' && *text != ','; r->n_candidates++) {
		const size_t n = strcspn(text, ";,");
		RV_ASSERT(r->n_candidates < NET_MAX_CANDIDATES);
		r->candidates[r->n_candidates] = lie_of(text, n);
		text += text[n] == ';' ? n + 1 : n;
	}
}

/* ---- what it does ---- */

/* A phase before READY: nothing of a contribution. */
static void become(struct report *r, enum worker_phase phase) {
	r->phase = (uint8_t)phase;
	r->attempt = 0;
	r->n_suspects = r->n_measured = 0;
	r->stands_out = 0;
	r->mean2 = 0;
	if (phase < WORKER_READY)
		r->commitment.n = 0;
	r->lease_first = r->lease_count = 0;
	memset(&r->digest, 0, sizeof r->digest);
}

static void claim_another_phase(struct report *r) {
	double value;
	if (evil_lies("ghost", r->round, &value) && r->phase != WORKER_SYNCING && r->phase != WORKER_LEAVING)
		become(r, WORKER_TRAINING);
	if (evil_lies("behind", r->round, &value) && r->phase != WORKER_LEAVING) {
		become(r, WORKER_SYNCING);
		memset(&r->chain, 0, sizeof r->chain);
		r->needs_from = 0;
	}
}

/* Accuses n places of a roster of `roster` in its present attempt, in turn; or always one. */
static void accuse(struct report *r, int n) {
	bool chosen[NET_MAX_ROW] = {false};
	double roster = 4, always;
	const uint32_t attempt = r->attempt;
	(void)evil("roster", &roster);
	become(r, WORKER_REDUCING);
	r->attempt = attempt;
	if (evil("accused", &always))
		chosen[(int)always] = true;
	for (int i = 0; i < n && i < (int)roster && !evil("accused", &always); i++)
		chosen[(r->round + attempt + (uint64_t)i) % (uint64_t)roster] = true;
	for (int place = 0; place < (int)roster; place++)
		if (evil_text("victim") ? evil_at(place) : chosen[place])
			r->suspects[r->n_suspects++] = (uint16_t)place;
}

/* Returns true if it lies so some seconds after it has entered an attempt, and these are over. */
static bool lies_after(const char *name, const struct report *r) {
	static uint64_t round, attempt;
	static int64_t since_us;
	double value;
	if (r->attempt == 0)
		return false;
	if (since_us == 0 || r->round != round || r->attempt != attempt)
		since_us = rv_clock_wall_us();
	round = r->round;
	attempt = r->attempt;
	return evil_lies(name, r->round, &value) && (double)(rv_clock_wall_us() - since_us) >= value * RV_US_PER_S;
}

static void claim_to_go(struct report *r) {
	if (lies_after("syncs", r)) {
		become(r, WORKER_SYNCING);
		memset(&r->chain, 0, sizeof r->chain);
	}
}

static void claim_of_the_attempt(struct report *r) {
	double value;
	if (evil_lies("suspects", r->round, &value) && r->attempt > 0)
		accuse(r, (int)value);
	if (evil_lies("digest", r->round, &value) && r->phase == WORKER_VOTED)
		r->digest.b[0] ^= 1;
	if (!evil_lies("measured", r->round, &value))
		return;
	for (int i = 0; i < r->n_measured; i++) {
		r->measured[i].dot = -r->measured[i].dot;
		r->measured[i].clipped = r->n_chunks;
	}
}

/* ---- what it is and has ---- */

static void claim_figures(struct report *r) {
	double value;
	if (evil_lies("tokens", r->round, &value) && r->tokens > 0)
		r->tokens = (uint64_t)value;
	if (evil_lies("loss", r->round, &value))
		r->loss = (float)value;
	if (evil_lies("heldout", r->round, &value)) {
		r->heldout_loss = (float)value;
		r->heldout_round = r->round;
	}
	if (evil_lies("chunks", r->round, &value))
		r->n_chunks = (uint32_t)value;
	if (evil_lies("rate", r->round, &value))
		r->up_bytes_per_s = r->down_bytes_per_s = (uint64_t)value;
	if (evil_lies("reads", r->round, &value) && r->lease_count > 0)
		r->lease_count = (uint32_t)(value * r->lease_count);
}

static void claim_worthless(struct report *r) {
	double below;
	for (int i = 0; evil_lies("false_score", r->round, &below) && i < r->n_scores; i++)
		if ((double)r->scores[i].member < below)
			r->scores[i] = (struct score_result){.round = r->scores[i].round,
												 .member = r->scores[i].member,
												 .verdict = SCORE_MEASURED,
												 .gain = -1,
												 .own = 1};
}

static void claim_a_place(struct report *r) {
	static unsigned port = 20000;
	double value;
	if (evil_lies("ahead", r->round, &value) && r->phase != WORKER_SYNCING)
		r->round += (uint64_t)value;
	if (evil_lies("state", r->full_round, &value) && r->full_round > 0)
		r->full_hash.b[0] ^= 1;
	for (int i = 0; evil_lies("apart", r->round, &value) && i < r->n_paths; i++)
		r->paths[i].path = PATH_APART;
	if (evil_lies("moves", r->round, &value))
		(void)snprintf(r->candidates[0].addr, NET_ADDR_BYTES, ":%u", port = port < 60000 ? port + 1 : 20000);
	if (evil_text("candidates") != NULL)
		add_lies(r, evil_text("candidates"));
}

/* ---- what it commits to ---- */

static struct seal_ops own_seals;
static uint8_t own_run[NET_RUN_ID_BYTES];

/* Notes how the worker signs, to sign lies too. */
void __wrap_report_sign(struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], const struct seal_ops *ops) {
	own_seals = *ops;
	memcpy(own_run, run_id, sizeof own_run);
	__real_report_sign(m, run_id, ops);
}

static void claim_another_root(struct report *r) {
	double value;
	if (evil_lies("two_roots", r->round, &value) && r->attempt > 0 && r->commitment.n > 0)
		r->commitment.roots[0].root.b[0] ^= 1;
	if (r->commitment.n > 0)
		__real_report_sign(r, own_run, &own_seals);
	if (evil_lies("false_root", r->round, &value) && r->commitment.n > 0)
		r->signatures[0][0] ^= 1;
}

void __wrap_control_client_report(struct control_client *c, const struct report *r) {
	struct report lie = *r;
	claim_another_phase(&lie);
	claim_of_the_attempt(&lie);
	claim_to_go(&lie);
	claim_worthless(&lie);
	claim_figures(&lie);
	claim_a_place(&lie);
	claim_another_root(&lie);
	__real_control_client_report(c, &lie);
}
