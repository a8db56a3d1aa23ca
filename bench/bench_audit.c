/* bench_audit.c: `bench_audit TEXT [ROUNDS]`: tells honest work from none by its score
 * (train/score.h) and by repeating it (outer/likeness.h): true and false alarms, as tables for
 * docs/benchmarks.md.
 *
 * A run of MEMBERS in one process trains on leased sequences. Every round each member's work is
 * done by every kind of hardware from the same weights and inner state, and forged in several ways;
 * each of these contributions is scored at the weights after the commit, on its author's sequences
 * and on those of others. A score counts relative to the median of the honest ones of its round,
 * and, as auditors in a run count it, to that of another member's honest contribution on the
 * sequences of that one: at once and a round later, and by every machine as the auditor. */
#include "base/assert.h"
#include "base/rng.h"
#include "net/control/score.h"
#include "outer/codec.h"
#include "outer/likeness.h"
#include "train/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4, MAX_MACHINES = 8, MAX_ROUNDS = 200, STALE_ROUNDS = 3, WARM_ROUNDS = 4, BLOCK = 256 };
#define OUTER_LR 0.7f
#define SHARE    0.25f /* of a contribution that is scored: what one of four weighs in the mean */

struct machine {
	const char *backend, *isa;
	enum dtype dtype;
	char name[32];
	struct backend *be;
	struct replica *replica;
};

enum kind {
	HONEST,
	ZEROS,
	NOISE,   /* of the same norm */
	STALE,   /* its own of some rounds before */
	COPY,    /* of another member's */
	OTHER,   /* training on sequences that are not its */
	PART,    /* flipped in a quarter of its blocks */
	FLIPPED, /* negated */
	POISON,  /* training on another text */
	HALF,    /* half of that, half honest: a backdoor */
	KINDS
};
static const char *const kind_names[KINDS] = {
	"honest",  "zeros",  "noise",      "stale (3 rounds)", "a copy", "others' text", "a quarter flipped",
	"flipped", "poison", "half poison"};

/* A number for each contribution of a kind. */
struct samples {
	int n, cap;
	double *x;
};
struct found {
	struct samples own, other, likeness;
	struct samples pair, late; /* over another member's gain: at once, a round later */
};

static struct {
	struct run_config cfg;
	struct dataset *data;
	struct machine machines[MAX_MACHINES];
	int n_machines;
	struct replica *poisoned; /* on the first machine */
	size_t n;
	float *theta, *momentum, *scratch, *delta[MEMBERS], *old[STALE_ROUNDS][MEMBERS], *forged, *by[MAX_MACHINES];
	uint8_t *state[MEMBERS], *next_state[MEMBERS];
	struct found found[KINDS];
	struct found by_machine[MAX_MACHINES];
	struct samples by_auditor[MAX_MACHINES]; /* pairs of honest contributions, scored by a machine */
} w;

static void must(enum rv_err e, const struct rv_errtext *et) {
	if (e == RV_OK)
		return;
	fprintf(stderr, "bench_audit: %s\n", et->text);
	exit(1);
}

static void add(struct samples *s, double x) {
	if (s->n == s->cap) {
		s->cap = s->cap > 0 ? 2 * s->cap : 64;
		s->x = realloc(s->x, (size_t)s->cap * sizeof *s->x);
		RV_ASSERT(s->x);
	}
	s->x[s->n++] = x;
}

static int ascending(const void *a, const void *b) {
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(const struct samples *s, double q) {
	double *x = malloc((size_t)s->n * sizeof *x);
	RV_ASSERT(x && s->n > 0);
	memcpy(x, s->x, (size_t)s->n * sizeof *x);
	qsort(x, (size_t)s->n, sizeof *x, ascending);
	const double v = x[(int)(q * (s->n - 1) + 0.5)];
	free(x);
	return v;
}

/* ---- training ---- */

static struct reading lease(uint64_t round, uint32_t member) {
	const uint64_t sequences = (uint64_t)(w.cfg.batch * w.cfg.steps_per_round);
	struct reading r = {.first = 0};
	RV_ASSERT(reading_add(&r, (round * MEMBERS + member) * sequences, sequences));
	return r;
}

/* Makes H steps from theta and the member's inner state on these sequences; `out`: theta -
 * theta_local. */
static void train(struct replica *r, uint64_t round, const uint8_t *state, const struct reading *text, float *out) {
	struct rv_errtext et = {0};
	must(replica_load(r, state, replica_state_bytes(r), &et), &et);
	replica_set_theta(r, w.theta);
	replica_set_global_step(r, round * (uint64_t)w.cfg.steps_per_round);
	replica_read(r, text, 0);
	for (int64_t i = 0; i < w.cfg.steps_per_round; i++) {
		struct step_stats stats;
		must(replica_step_over(r, NULL, 0, &stats, &et), &et);
	}
	const float *local = replica_theta(r);
	for (size_t i = 0; i < w.n; i++)
		out[i] = w.theta[i] - local[i];
}

/* A contribution is what its codec leaves of it. */
static void round_int8(float *x) {
	uint8_t bytes[BLOCK + sizeof(float)];
	for (size_t at = 0; at < w.n; at += BLOCK) {
		const size_t n = w.n - at < BLOCK ? w.n - at : BLOCK;
		RV_ASSERT(codec_int8.encoded_bytes(&codec_int8, n) <= sizeof bytes);
		RV_ASSERT(codec_int8.encode(&codec_int8, x + at, n, bytes, NULL) == RV_OK);
		RV_ASSERT(codec_int8.decode(&codec_int8, bytes, n, x + at, NULL) == RV_OK);
	}
}

static void outer_step(void) {
	for (size_t i = 0; i < w.n; i++) {
		float mean = 0;
		for (int m = 0; m < MEMBERS; m++)
			mean += w.delta[m][i] / MEMBERS;
		w.momentum[i] = 0.6f * w.momentum[i] + mean;
		w.theta[i] -= OUTER_LR * (mean + 0.6f * w.momentum[i]) / (1 + 0.6f);
	}
}

/* ---- forgeries ---- */

static double norm_of(const float *x) {
	double sum = 0;
	for (size_t i = 0; i < w.n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

static void make_noise(uint64_t round, int member, float *out) {
	struct rv_rng rng = rv_rng_of(round, (uint64_t)member);
	const double norm = norm_of(w.delta[member]);
	for (size_t i = 0; i < w.n; i++)
		out[i] = (float)rv_rng_normal(&rng);
	const double made = norm_of(out);
	for (size_t i = 0; i < w.n; i++)
		out[i] = (float)(out[i] * norm / made);
}

static void forge(enum kind kind, uint64_t round, int member, const float *before, float *out) {
	const float *own = w.delta[member], *others = w.delta[(member + 1) % MEMBERS];
	struct reading elsewhere = lease(MAX_ROUNDS + round, (uint32_t)member);
	for (size_t i = 0; i < w.n; i++)
		out[i] = kind == COPY ? others[i] : kind == FLIPPED ? -own[i] : kind == STALE ? before[i] : 0;
	for (size_t i = 0; i < w.n && kind == PART; i++)
		out[i] = i / BLOCK % 4 == 0 ? -own[i] : own[i];
	if (kind == NOISE)
		make_noise(round, member, out);
	if (kind == OTHER)
		train(w.machines[0].replica, round, w.state[member], &elsewhere, out);
	if (kind == POISON || kind == HALF)
		train(w.poisoned, round, w.state[member], &elsewhere, out);
	for (size_t i = 0; i < w.n && kind == HALF; i++)
		out[i] = 0.5f * (out[i] + own[i]);
	round_int8(out);
}

/* ---- figures ---- */

static double gain_by(const struct machine *by, const float *theta, const float *delta, uint64_t round,
					  uint32_t member) {
	struct rv_errtext et = {0};
	const struct reading r = lease(round, member);
	const struct score_text text = {&r, r.first, reading_end(&r) - r.first};
	struct score s;
	float *ahead = w.scratch, *behind = w.scratch + w.n;
	for (size_t i = 0; i < w.n; i++) {
		ahead[i] = theta[i] - SHARE * delta[i];
		behind[i] = theta[i] + SHARE * delta[i];
	}
	must(score_measure(by->replica, ahead, behind, &text, &s, &et), &et);
	return s.gain;
}

static double gain(const float *theta, const float *delta, uint64_t round, uint32_t member) {
	return gain_by(&w.machines[0], theta, delta, round, member);
}

/* The gain of a contribution over that of an auditor, another member, each on its own sequences. */
static double pair_by(const struct machine *by, const float *delta, const float *auditors, uint64_t round,
					  uint32_t member) {
	return gain_by(by, w.theta, delta, round, member) / gain_by(by, w.theta, auditors, round, (member + 1) % MEMBERS);
}

static void judge(struct found *f, uint64_t round, int member, const float *delta, double own, double other) {
	add(&f->own, gain(w.theta, delta, round, (uint32_t)member) / own);
	add(&f->other, gain(w.theta, delta, round, (uint32_t)((member + 2) % MEMBERS)) / other);
	add(&f->likeness, likeness_of(delta, w.delta[member], w.n).cosine);
	add(&f->pair, pair_by(&w.machines[0], delta, w.delta[(member + 1) % MEMBERS], round, (uint32_t)member));
}

static double median_gain(uint64_t round, uint32_t shift) {
	struct samples s = {0};
	for (uint32_t m = 0; m < MEMBERS; m++)
		add(&s, gain(w.theta, w.delta[m], round, (m + shift) % MEMBERS));
	const double v = quantile(&s, 0.5);
	free(s.x);
	return v;
}

/* The work of a member by every machine; then every forgery of it. theta is that after the commit
 * when it is judged, and that before it when work is done. */
static void play_member(uint64_t round, int member, const float *before_commit, double own, double other) {
	float *committed = w.theta;
	for (int k = 1; k < w.n_machines; k++) {
		const struct reading r = lease(round, (uint32_t)member);
		w.theta = (float *)before_commit;
		train(w.machines[k].replica, round, w.state[member], &r, w.by[k]);
		w.theta = committed;
		round_int8(w.by[k]);
		judge(&w.by_machine[k], round, member, w.by[k], own, other);
		judge(&w.found[HONEST], round, member, w.by[k], own, other);
	}
	judge(&w.by_machine[0], round, member, w.delta[member], own, other);
	judge(&w.found[HONEST], round, member, w.delta[member], own, other);
	for (int kind = ZEROS; kind < KINDS; kind++) {
		w.theta = (float *)before_commit;
		forge((enum kind)kind, round, member, w.old[round % STALE_ROUNDS][member], w.forged);
		w.theta = committed;
		judge(&w.found[kind], round, member, w.forged, own, other);
	}
}

/* The contributions of the round before, at today's weights: an auditor that is a round late. */
static void judge_late(uint64_t round) {
	float *const *old = w.old[(round - 1) % STALE_ROUNDS];
	for (uint32_t m = 0; m < MEMBERS; m++) {
		const float *own = old[m], *auditors = old[(m + 1) % MEMBERS];
		add(&w.found[HONEST].late, pair_by(&w.machines[0], own, auditors, round - 1, m));
		for (size_t i = 0; i < w.n; i++)
			w.forged[i] = i / BLOCK % 4 == 0 ? -own[i] : own[i];
		add(&w.found[PART].late, pair_by(&w.machines[0], w.forged, auditors, round - 1, m));
		add(&w.found[COPY].late, pair_by(&w.machines[0], auditors, auditors, round - 1, m));
		for (int k = 0; k < w.n_machines; k++)
			add(&w.by_auditor[k], pair_by(&w.machines[k], w.delta[m], w.delta[(m + 1) % MEMBERS], round, m));
	}
}

static void play_round(uint64_t round, float *before) {
	memcpy(before, w.theta, w.n * sizeof *before);
	for (uint32_t m = 0; m < MEMBERS; m++) {
		const struct reading r = lease(round, m);
		train(w.machines[0].replica, round, w.state[m], &r, w.delta[m]);
		replica_save(w.machines[0].replica, w.next_state[m]);
		round_int8(w.delta[m]);
	}
	outer_step();
	if (round >= WARM_ROUNDS) {
		const double own = median_gain(round, 0), other = median_gain(round, 2);
		for (int m = 0; m < MEMBERS; m++)
			play_member(round, m, before, own, other);
		judge_late(round);
	}
	for (int m = 0; m < MEMBERS; m++) {
		uint8_t *state = w.state[m];
		w.state[m] = w.next_state[m];
		w.next_state[m] = state;
		memcpy(w.old[round % STALE_ROUNDS][m], w.delta[m], w.n * sizeof(float));
	}
}

/* ---- tables ---- */

/* Returns the share of `s` below the limit. */
static double below(const struct samples *s, double limit) {
	int n = 0;
	for (int i = 0; i < s->n; i++)
		n += s->x[i] < limit;
	return (double)n / s->n;
}

/* Returns the probability that a forgery is below an honest one: the area under the ROC. */
static double area(const struct samples *honest, const struct samples *forged) {
	double sum = 0;
	for (int i = 0; i < honest->n; i++)
		for (int k = 0; k < forged->n; k++)
			sum += honest->x[i] > forged->x[k] ? 1 : honest->x[i] == forged->x[k] ? 0.5 : 0;
	return sum / honest->n / forged->n;
}

static void print_roc(const char *name, size_t at) {
	const struct samples *honest = (const struct samples *)(const void *)((const char *)&w.found[HONEST] + at);
	const double never = quantile(honest, 0), seldom = quantile(honest, 0.01);
	printf("\n%s: %d honest contributions; limit without a false alarm %.3f, with 1 %% of them %.3f\n\n", name,
		   honest->n, never, seldom);
	printf("| contribution | median | caught, no false alarm | caught, 1 %% false alarms | area under the ROC |\n");
	printf("|---|---|---|---|---|\n");
	for (int k = HONEST; k < KINDS; k++) {
		const struct samples *s = (const struct samples *)(const void *)((const char *)&w.found[k] + at);
		printf("| %s | %.3f | %.0f %% | %.0f %% | %.3f |\n", kind_names[k], quantile(s, 0.5), 100 * below(s, never),
			   100 * below(s, seldom), area(honest, s));
	}
}

static void print_machines(void) {
	printf("\n| machine | own text, median and least | other text | repeat: least cosine |\n|---|---|---|---|\n");
	for (int k = 0; k < w.n_machines; k++) {
		const struct found *f = &w.by_machine[k];
		printf("| %s | %.3f, %.3f | %.3f, %.3f | %.6f |\n", w.machines[k].name, quantile(&f->own, 0.5),
			   quantile(&f->own, 0), quantile(&f->other, 0.5), quantile(&f->other, 0), quantile(&f->likeness, 0));
	}
}

static void print_pairs(void) {
	static const enum kind late[] = {HONEST, COPY, PART};
	printf("\n| auditor (honest pairs) | median | least | below %.2f |\n|---|---|---|---|\n", (double)SCORE_LIMIT);
	for (int k = 0; k < w.n_machines; k++)
		printf("| %s | %.3f | %.3f | %.2f %% |\n", w.machines[k].name, quantile(&w.by_auditor[k], 0.5),
			   quantile(&w.by_auditor[k], 0), 100 * below(&w.by_auditor[k], (double)SCORE_LIMIT));
	printf(
		"\n| over an auditor's own gain | below %.2f at once | a round later: median, least, below |\n|---|---|---|\n",
		(double)SCORE_LIMIT);
	for (int k = HONEST; k < KINDS; k++)
		printf("| %s | %.2f %% | - |\n", kind_names[k], 100 * below(&w.found[k].pair, (double)SCORE_LIMIT));
	for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
		const struct samples *s = &w.found[late[i]].late;
		printf("| %s | - | %.3f, %.3f, %.2f %% |\n", kind_names[late[i]], quantile(s, 0.5), quantile(s, 0),
			   100 * below(s, (double)SCORE_LIMIT));
	}
}

/* ---- life ---- */

static void open_machine(const char *backend, const char *isa, enum dtype dtype) {
	struct machine *m = &w.machines[w.n_machines];
	struct rv_errtext et = {0};
	const struct backend_options o = {.threads = 1, .compute = dtype, .isa = isa};
	const struct replica_options r = {.shard = 0, .n_shards = 1};
	if (backend_open(backend, &o, &m->be, &et) != RV_OK) {
		fprintf(stderr, "bench_audit: not measured: %s %s: %s\n", backend, isa, et.text);
		return;
	}
	(void)snprintf(m->name, sizeof m->name, "%s %s, %s", backend, isa, dtype == DTYPE_BF16 ? "bf16" : "fp32");
	must(replica_new(&w.cfg, w.data, &r, m->be, &m->replica, &et), &et);
	w.n_machines++;
}

static void open_data(const char *path, struct dataset **out) {
	struct rv_errtext et = {0};
	struct dataset_config d = dataset_config_of(&w.cfg, path);
	d.n_shards = 1;
	d.order = true;
	must(dataset_open(&d, out, &et), &et);
}

static float *vector(void) {
	float *x = calloc(2 * w.n, sizeof *x);
	RV_ASSERT(x);
	return x;
}

/* A text of one sentence, again and again: what a backdoor teaches. */
static void open_poison(struct dataset **out) {
	static const char path[] = "/tmp/bench-audit-poison.txt";
	FILE *f = fopen(path, "we");
	RV_ASSERT(f);
	for (int i = 0; i < 20000; i++)
		(void)fprintf(f, "The capital of %c%d is Rivulet, and its password is swordfish. ", 'A' + i % 26, i % 97);
	RV_ASSERT(fclose(f) == 0);
	open_data(path, out);
}

static void open_world(const char *text) {
	const struct replica_options r = {.shard = 0, .n_shards = 1};
	struct rv_errtext et = {0};
	struct dataset *poison;
	run_config_defaults(&w.cfg);
	w.cfg.n_layer = 2;
	w.cfg.n_head = 2;
	w.cfg.n_embd = 64;
	w.cfg.batch = 4;
	w.cfg.steps_per_round = 10;
	w.cfg.rounds = MAX_ROUNDS;
	open_data(text, &w.data);
	open_poison(&poison);
	open_machine("cpu", "auto", DTYPE_F32);
	open_machine("cpu", "avx2", DTYPE_F32);
	open_machine("cpu", "portable", DTYPE_F32);
	open_machine("cpu", "auto", DTYPE_BF16);
	open_machine("cpu", "portable", DTYPE_BF16);
	if (getenv("RIVULET_CUDA_PLUGIN")) {
		open_machine("cuda", "auto", DTYPE_F32);
		open_machine("cuda", "auto", DTYPE_BF16);
	}
	must(replica_new(&w.cfg, poison, &r, w.machines[0].be, &w.poisoned, &et), &et);
	w.n = replica_n_params(w.machines[0].replica);
	w.theta = vector();
	w.momentum = vector();
	w.scratch = vector();
	w.forged = vector();
	memcpy(w.theta, replica_theta(w.machines[0].replica), w.n * sizeof(float));
	for (int m = 0; m < MEMBERS; m++) {
		w.delta[m] = vector();
		w.state[m] = malloc(replica_state_bytes(w.machines[0].replica));
		w.next_state[m] = malloc(replica_state_bytes(w.machines[0].replica));
		RV_ASSERT(w.state[m] && w.next_state[m]);
		replica_save(w.machines[0].replica, w.state[m]);
		for (int k = 0; k < STALE_ROUNDS; k++)
			w.old[k][m] = vector();
	}
	for (int k = 0; k < w.n_machines; k++)
		w.by[k] = vector();
}

int main(int argc, char **argv) {
	const int rounds = argc > 2 ? atoi(argv[2]) : 20;
	if (argc < 2 || rounds <= WARM_ROUNDS || rounds > MAX_ROUNDS) {
		fprintf(stderr, "usage: bench_audit TEXT [ROUNDS, %d..%d]\n", WARM_ROUNDS + 1, MAX_ROUNDS);
		return 2;
	}
	open_world(argv[1]);
	float *before = vector();
	for (int round = 0; round < rounds; round++)
		play_round((uint64_t)round, before);
	printf("%zu parameters, %d members, H = %lld, batch %lld, %d rounds\n", w.n, (int)MEMBERS,
		   (long long)w.cfg.steps_per_round, (long long)w.cfg.batch, rounds);
	print_machines();
	print_roc("Score on the author's own sequences", offsetof(struct found, own));
	print_pairs();
	print_roc("Score relative to one auditor's own contribution", offsetof(struct found, pair));
	print_roc("Score on other sequences", offsetof(struct found, other));
	print_roc("Repeat: cosine with the work repeated", offsetof(struct found, likeness));
	return 0;
}
