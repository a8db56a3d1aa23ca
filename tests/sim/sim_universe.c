/* sim_universe.c: a universe from a seed: its options, its birth, a safety phase with faults, then
 * a liveness phase in which everything is healed and the run must end in bounded virtual time. */
#include "sim.h"

#include "base/assert.h"
#include "base/chain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where liars lie on, a round may take so long beside that. */
enum { LIVENESS_BOUND_US = 300 * SIM_S, LIARS_ROUND_US = 20 * SIM_S };

/* ---- small services ---- */

void *sim_alloc(size_t n) {
	void *p = calloc(1, n > 0 ? n : 1);
	RV_ASSERT(p != NULL);
	return p;
}

void sim_fail(struct sim *s, const char *fmt, ...) {
	if (s->failed)
		return;
	s->failed = true;
	int n = snprintf(s->why, sizeof s->why, "at %.3f s: ", (double)s->now_us / SIM_S);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(s->why + n, sizeof s->why - (size_t)n, fmt, ap);
	va_end(ap);
}

void sim_say(const struct sim *s, int host, const char *fmt, ...) {
	if (!s->verbose)
		return;
	printf("%10.3f ", (double)s->now_us / SIM_S);
	if (host == SIM_COORDINATOR)
		printf("coordinator ");
	else if (host != SIM_NOBODY)
		printf("w%d ", host);
	va_list ap;
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* Finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014). */
static uint64_t mix(uint64_t x) {
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t draw(struct sim *s, int host, enum sim_luck luck) {
	enum { WINDOW_US = 250 * SIM_MS };
	struct sim_window *w = &s->windows[host][luck];
	int64_t now = s->now_us / WINDOW_US;
	w->n = now == w->at ? w->n + 1 : 0;
	w->at = now;
	uint64_t which = (uint64_t)sim_number(host) << 16 | (uint64_t)luck << 8;
	return mix(mix(mix(s->opt.seed + which) + (uint64_t)now) + w->n);
}

int64_t sim_between(struct sim *s, int host, enum sim_luck luck, int64_t lo, int64_t hi) {
	return lo + (int64_t)((unsigned __int128)draw(s, host, luck) * (uint64_t)(hi - lo) >> 64);
}

bool sim_chance(struct sim *s, int host, enum sim_luck luck, double p) {
	return (double)(draw(s, host, luck) >> 11) * 0x1p-53 < p;
}

uint32_t sim_version(struct sim *s, int host) {
	return s->opt.mixed && sim_chance(s, host, LUCK_WORK, 0.5) ? control_version() : CONTROL_VERSION;
}

/* In the place of net/control/version.c: the next version is spoken as well. */
uint32_t control_version(void) {
	return CONTROL_VERSION + 1;
}

float sim_noise(uint64_t a, uint64_t b, uint64_t i) {
	uint64_t x = a * 0x9e3779b97f4a7c15u ^ b * 0xbf58476d1ce4e5b9u ^ i * 0x94d049bb133111ebu;
	x ^= x >> 29;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 32;
	return (float)(int32_t)(uint32_t)x * 0x1p-31f;
}

bool sim_is_checked(const struct sim *s, uint64_t round) {
	return round % s->opt.snapshot_every == 0 || round == s->opt.rounds;
}

void sim_key_of(const struct sim *s, int host, uint8_t key[NET_KEY_BYTES]) {
	memcpy(key, s->identities[host].id.key, NET_KEY_BYTES);
}

int sim_host_of_key(const struct sim *s, const uint8_t key[NET_KEY_BYTES]) {
	for (int h = 0; h < s->opt.n_workers; h++)
		if (memcmp(s->identities[h].id.key, key, NET_KEY_BYTES) == 0)
			return h;
	return SIM_NOBODY;
}

/* ---- birth and end ---- */

size_t sim_payload(const struct sim *s, uint64_t round) {
	return state_payload_bytes(&s->global_config, STATE_KIND_LOG, round);
}

/* All chunks but the first are a layer each. */
static void make_fragments(struct sim *s) {
	struct global_config *g = &s->global_config;
	int layers = (int)g->chunks.n_chunks - 1;
	const struct fragment_layers all = {.begin = g->chunks.chunk_elems,
										.layer_elems = g->chunks.chunk_elems,
										.n = layers < FRAGMENTS_MAX_LAYERS ? layers : FRAGMENTS_MAX_LAYERS};
	RV_ASSERT(fragments_make(&g->chunks, s->opt.fragments, &all, &g->fragments, NULL) == RV_OK);
	s->max_payload = global_max_payload_bytes(g);
	s->max_sent = forms_most_bytes(g);
}

static void number_seed(uint8_t seed[IDENTITY_SEED_BYTES], int number) {
	seed[IDENTITY_SEED_BYTES - 1] = (uint8_t)number;
	seed[IDENTITY_SEED_BYTES - 2] = (uint8_t)(number >> 8);
}

static void make_identities(struct sim *s) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {0};
	memcpy(seed, &s->opt.seed, sizeof s->opt.seed);
	for (int h = 0; h < s->opt.n_workers; h++) {
		number_seed(seed, sim_number(h) + 1);
		identity_of_seed(seed, &s->identities[h].id);
		s->identities[h].next_number = &s->next_number;
	}
	number_seed(seed, 0);
	identity_of_seed(seed, &s->run_identity);
	for (int r = 0; r < s->opt.relay; r++) {
		number_seed(seed, sim_number(SIM_RELAY + r) + 1);
		identity_of_seed(seed, &s->relay_identities[r]);
	}
	memcpy(s->run_id, s->run_hash.b, sizeof s->run_id);
}

static int codec_place(const struct codec *codec) {
	int i = 0;
	while (codec_registry[i] != codec)
		i++;
	return i;
}

static const struct merge_ops *merge_of(const struct sim_options *o) {
	return o->clip == 0 ? &merge_mean : o->agrees ? &merge_agreed : &merge_clipped;
}

/* Returns floats enough for all parameters, and for merging a chunk of a row's contributions. */
static size_t scratch_of(const struct sim *s) {
	const struct merge_rule rule = global_merge(&s->global_config);
	const size_t merging = merge_scratch(&rule, s->opt.chunk_elems, s->opt.row_size);
	return merging > s->opt.n_params ? merging : s->opt.n_params;
}

static void make_run(struct sim *s) {
	s->run_hash = rv_hash_of(&s->opt.seed, sizeof s->opt.seed);
	s->global_config = (struct global_config){.n = s->opt.n_params,
											  .chunks = chunking_of(s->opt.n_params, s->opt.chunk_elems),
											  .codec = s->opt.codec,
											  .merge = merge_of(&s->opt),
											  .merge_params = {.clip = s->opt.clip},
											  .optimizer = &outer_nesterov,
											  .params = {.lr = 0.7f, .momentum = 0.9f},
											  .run_hash = s->run_hash};
	make_identities(s);
	s->run = (struct run_config){.steps_per_round = (int64_t)s->opt.steps_per_round,
								 .row_size = s->opt.row_size,
								 .mix = (double)s->opt.mix,
								 .eager_share = (double)s->opt.share,
								 .error_feedback = (double)s->opt.feedback,
								 .slow_members = s->opt.slow_members,
								 .codec = codec_place(s->opt.codec),
								 .mean_feedback = (double)s->opt.mean_feedback,
								 .updates = !s->opt.gives_away ? UPDATES_WAITED
											: s->opt.share > 0 ? UPDATES_EAGER
															   : UPDATES_DELAYED};
	make_fragments(s);
	s->theta0 = sim_alloc(s->opt.n_params * sizeof(float));
	s->scratch = sim_alloc(scratch_of(s) * sizeof(float));
	s->doc = sim_alloc(sizeof *s->doc);
	s->index = sim_alloc(sizeof *s->index);
	s->doc_bytes = sim_alloc(NET_MAX_DOCUMENT_BYTES);
	for (size_t i = 0; i < s->opt.n_params; i++)
		s->theta0[i] = sim_noise(s->opt.seed, 0, i);
	oracle_init(s);
}

static void first_start(struct sim *s, int host, void *arg) {
	(void)host;
	int which = *(int *)arg;
	free(arg);
	if (s->workers[which].life == 0)
		worker_start(s, which);
}

/* The last one of a hasty universe without faults comes when the others are on their way. */
static int64_t late_by_us(const struct sim *s, int host) {
	return s->opt.hasty && s->opt.calm && host == s->opt.n_workers - 1 ? 2 * SIM_S : 0;
}

static void populate(struct sim *s) {
	struct rv_rng r = rv_rng_of(s->opt.seed, 2);
	s->coordinator.disk_slowness = 1;
	for (int h = 0; h < s->opt.n_workers; h++)
		s->homes[h] = (struct sim_home){.router = SIM_NO_ROUTER, .kind = HOME_OPEN, .has_v4 = true};
	for (int relay = 0; relay < s->opt.relay; relay++)
		relay_start(s, relay);
	coordinator_start(s);
	operator_start(s);
	oracle_mesh_start(s);
	for (int h = 0; h < s->opt.n_workers; h++) {
		s->workers[h].sim = s;
		s->workers[h].host = h;
		s->workers[h].disk.slowness = 1;
		s->workers[h].speed = 0.5 + rv_rng_double(&r);
		int64_t within_us = !s->opt.calm && rv_rng_below(&r, 5) == 0 ? 30 * SIM_S : SIM_S;
		int *which = sim_alloc(sizeof *which);
		*which = h;
		int64_t at_us = late_by_us(s, h) + (int64_t)rv_rng_below(&r, (uint64_t)within_us);
		sim_at(s, at_us, SIM_NOBODY, 0, first_start, which);
	}
}

static void release(struct sim *s) {
	oracle_release(s);
	for (int h = 0; h < s->opt.n_workers; h++)
		worker_release(&s->workers[h]);
	coordinator_release(&s->coordinator);
	for (int r = 0; r < SIM_MAX_RELAYS; r++)
		relay_release(&s->relays[r]);
	homes_release(s);
	sim_network_release(&s->net);
	sim_queue_release(&s->queue);
	free(s->pairs);
	free(s->theta0);
	free(s->scratch);
	free(s->doc);
	free(s->doc_bytes);
	free(s->index);
	free(s);
}

/* ---- phases ---- */

/* Its process has reached the end of the run, or a former one has stored it. */
static bool has_finished(const struct sim *s, const struct sim_worker *w) {
	if (s->banned[w - s->workers])
		return true;
	return w->term == s->oracle.term && (w->done || (w->life != 0 && w->finished));
}

static bool all_finished(const struct sim *s) {
	for (int h = 0; h < s->opt.n_workers; h++)
		if (!audits_banished(s, h) && !(s->opt.liars && lies_at(s, h)) && !has_finished(s, &s->workers[h]))
			return false;
	return s->coordinator.core != NULL;
}

static void run_until(struct sim *s, int64_t end_us) {
	while (!s->failed && !all_finished(s) && sim_queue_step(s, end_us))
		;
}

static void demand_the_end(struct sim *s, int64_t from_us) {
	if (s->failed)
		return;
	if (s->oracle.stranded) {
		oracle_stranded_end(s);
		return;
	}
	if (!all_finished(s)) {
		int n = 0;
		char at[800] = "";
		for (int h = 0; h < s->opt.n_workers && n < (int)sizeof at - 40; h++) {
			const struct sim_worker *w = &s->workers[h];
			if (s->opt.n_workers > SIM_ORDINARY && has_finished(s, w))
				continue;
			n += snprintf(at + n, sizeof at - (size_t)n, " w%d %s%llu/%d", h, w->core == NULL ? "down " : "",
						  (unsigned long long)w->global.round, w->core == NULL ? 0 : (int)round_phase(w->core));
		}
		sim_fail(s, "no end %.0f s after everything healed: %llu of %llu rounds are committed; (round/phase)%s",
				 (double)(s->now_us - from_us) / SIM_S, (unsigned long long)s->oracle.n_committed,
				 (unsigned long long)s->opt.rounds, at);
		return;
	}
	for (int h = 0; h < s->opt.n_workers; h++) {
		bool in_the_last = s->oracle.in_last[h];
		const struct sim_worker *w = &s->workers[h];
		if (s->banned[h])
			continue;
		uint64_t round = w->done ? w->done_round : w->global.round;
		if (round != s->opt.rounds && !audits_banished(s, h) && !(s->opt.liars && lies_at(s, h)))
			sim_fail(s, "w%d ended at round %llu", h, (unsigned long long)round);
		if (s->opt.hasty && s->opt.calm && !in_the_last && s->opt.adversary == ADVERSARY_NONE)
			sim_fail(s, "w%d was there, and is not in the last round: it did not catch up", h);
	}
}

bool sim_run(const struct sim_options *opt, struct sim_plan *plan, bool verbose, struct sim_stats *stats,
			 char why[1024]) {
	struct sim *s = sim_alloc(sizeof *s);
	s->opt = *opt;
	s->pairs = sim_alloc((size_t)opt->n_workers * (size_t)opt->n_workers * sizeof *s->pairs);
	s->plan = plan;
	s->verbose = verbose;
	make_run(s);
	sim_network_init(s);
	populate(s);
	faults_start(s);
	run_until(s, opt->calm ? LIVENESS_BOUND_US : s->opt.safety_us);
	int64_t healed_us = s->now_us;
	if (!s->failed && !all_finished(s)) {
		faults_heal(s);
		run_until(s, healed_us + LIVENESS_BOUND_US + (s->opt.liars ? (int64_t)s->opt.rounds * LIARS_ROUND_US : 0));
	}
	demand_the_end(s, healed_us);
	if (!s->failed)
		oracle_leases_end(s);
	if (!s->failed)
		scores_end(s);
	if (!s->failed)
		audits_end(s);
	if (!s->failed)
		expect_check(s);
	if (!s->failed)
		lies_judge_costs(s);
	if (!s->failed)
		plots_judge(s);
	s->stats.seeds = 1;
	s->stats.workers = (uint64_t)opt->n_workers;
	s->stats.virtual_us = s->now_us;
	s->stats.recovery_us = s->now_us - healed_us;
	*stats = s->stats;
	bool ok = !s->failed;
	memcpy(why, s->why, sizeof s->why);
	release(s);
	return ok;
}
