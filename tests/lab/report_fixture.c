/* report_fixture.c: see report_fixture.h. */
#include "tests/lab/report_fixture.h"

#include "tests/lab/lab_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARAMS = 1000000, STEPS = 192, TOKENS_PER_STEP = 128, WORKERS = 4 };

const struct report_line report_fixture_line = {.rate_bits_per_s = 1e8, .latency_s = 0.02, .sync_s = 0.05};

const char *const report_fixture_hostile[REPORT_FIXTURE_HOSTILE] = {
	"</script><script>alert(1)</script>",
	"\"><img src=http://127.0.0.1:9/x onerror=alert(1)>",
	"=cmd|' /C calc'!A0",
	" @SUM(1+9)*cmd",
	"'; alert(1); //\\",
	"<!--<script>",
	("tab\there \xe2\x80\xae"
	 "desrever \x1b[31m line\nbreak"),
	"a name of a run that is very much longer than any legend or table has room for it, and goes on",
};

double report_fixture_loss(uint64_t h, int seed) {
	return 2 + 0.1 * log2((double)h) + REPORT_FIXTURE_SD * seed;
}

void report_fixture_file(const char *place, const char *id, const char *file, const char *text) {
	char path[600];
	snprintf(path, sizeof path, "%s/%s", place, id);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof path, "%s/%s/%s", place, id, file);
	if (!text) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void print_line(json_t *line, FILE *f) {
	assert_non_null(line);
	assert_int_equal(json_dumpf(line, f, JSON_COMPACT), 0);
	assert_true(fputc('\n', f) == '\n');
	json_decref(line);
}

/* diverged > 0: in that round, which it does not complete. */
static void print_metrics(const char *method, uint64_t h, int seed, const char *name, int diverged, FILE *f) {
	const bool ddp = strcmp(method, "ddp") == 0;
	const json_int_t rounds = diverged > 0 ? diverged - 1 : STEPS / (json_int_t)h,
					 payload = ddp ? 4 * PARAMS * (json_int_t)h : PARAMS;
	const json_int_t sent = (json_int_t)metrics_allreduce_bytes((uint64_t)payload, WORKERS);
	const double end = report_fixture_loss(ddp ? 1 : h, seed);
	print_line(json_pack("{ss ss ss ss ss si sI sI}", "kind", "run", "name", name, "role", "lab", "method", method,
						 "codec", "int8", "workers", WORKERS, "n_params", (json_int_t)PARAMS, "steps_per_round",
						 (json_int_t)h),
			   f);
	for (json_int_t r = 1; r <= rounds; r++) {
		json_int_t tokens = r * (json_int_t)h * TOKENS_PER_STEP * WORKERS;
		print_line(json_pack("{ss sI sI si sf sI sI sI sI si sf sf}", "kind", "round", "round", r, "tokens", tokens,
							 "participants", WORKERS, "train_loss", end, "bytes_sent", r * sent, "formula_bytes",
							 r * sent, "compute_us", (json_int_t)h * 50000, "reduce_us", (json_int_t)20000, "idle_us",
							 0, "delta_norm", 1.5, "delta_cosine", 0.25),
				   f);
		print_line(json_pack("{ss sI sI sf sI}", "kind", "eval", "round", r, "tokens", tokens, "loss",
							 end + 3.0 / (double)r / (double)h, "bytes_sent", r * sent),
				   f);
	}
	if (diverged > 0) {
		print_line(json_pack("{ss si si si si}", "kind", "diverged", "round", diverged, "worker", 2, "step",
							 diverged * (int)h - 1, "wall_us", 5000000),
				   f);
		return;
	}
	print_line(json_pack("{ss sI sf sI sf sf}", "kind", "end", "round", rounds, "loss", end, "wall_us",
						 (json_int_t)9000000, "average_loss", end + 0.02, "replica_loss", end + 0.05),
			   f);
}

static void write_cell(const char *place, const char *id, const char *method, uint64_t h, int seed, const char *name,
					   int diverged) {
	char *text = NULL, conf[512];
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	print_metrics(method, h, seed, name, diverged, f);
	assert_int_equal(fclose(f), 0);
	report_fixture_file(place, id, METRICS_FILE, text);
	free(text);
	snprintf(conf, sizeof conf,
			 "# a comment\nmethod = %s\nworkers = %d\nout = %s/%s\nname = \"\"\nn-layer = 4\nsteps-per-round = %" PRIu64
			 "\nrounds = %" PRIu64 "\nseed = %d\nouter = nesterov\ncodec = int8\nvocab = 256\n",
			 method, WORKERS, place, id, h, STEPS / h, seed);
	report_fixture_file(place, id, "run.conf", conf);
	report_fixture_file(place, id, "sweep.json", "{\"id\":\"x\",\"replicas_mode\":\"fixed-steps\"}");
}

void report_fixture_cell(const char *place, const char *id, const char *method, uint64_t h, int seed,
						 const char *name) {
	write_cell(place, id, method, h, seed, name, 0);
}

void report_fixture_diverged(const char *place, const char *id, uint64_t h, int seed, int round) {
	write_cell(place, id, "diloco", h, seed, id, round);
}

void report_fixture_sweep(const char *place) {
	static const uint64_t hs[] = {16, 4, 16, 64};
	for (int i = 0; i < 4; i++)
		for (int seed = 1; seed <= 3; seed++) {
			char id[32];
			snprintf(id, sizeof id, "%d-%d", i, seed);
			report_fixture_cell(place, id, i == 0 ? "ddp" : "diloco", hs[i], seed, id);
		}
}
