/* run_record.c: reading metrics.jsonl. Unknown kinds and fields are skipped; a torn last line is
 * ignored, and lines that are not JSON (torn by a crash, then appended to) are skipped and
 * counted. */
#include "lab/run/run_record.h"

#include "base/file.h"
#include "train/metrics.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number(json_t *line, const char *key) {
	json_t *v = json_object_get(line, key);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static uint64_t count(json_t *line, const char *key) {
	json_int_t v = json_integer_value(json_object_get(line, key));
	return v > 0 ? (uint64_t)v : 0;
}

static void text(json_t *line, const char *key, char *out, size_t cap) {
	const char *v = json_string_value(json_object_get(line, key));
	snprintf(out, cap, "%s", v ? v : "");
}

static void take_run(struct run_record *r, json_t *line) {
	text(line, "name", r->name, sizeof r->name);
	text(line, "role", r->role, sizeof r->role);
	text(line, "method", r->method, sizeof r->method);
	text(line, "codec", r->codec, sizeof r->codec);
	text(line, "outer", r->outer, sizeof r->outer);
	r->member = (uint32_t)count(line, "member");
	r->workers = (uint32_t)count(line, "workers");
	r->n_params = count(line, "n_params");
	r->steps_per_round = count(line, "steps_per_round");
	text(line, "program", r->program, sizeof r->program);
	text(line, "data", r->data, sizeof r->data);
	r->threads = (uint32_t)count(line, "threads");
	r->newer = count(line, "version") > METRICS_VERSION;
	r->heldout_tokens = count(line, "heldout_tokens");
	r->diverged_round = 0; /* the round is tried again */
}

/* Makes room for one more element. Drops those at or after `round`: a resumed run repeats rounds,
 * and the later line wins. Returns the place to write to, or NULL. */
static void *place(void **array, int *n, size_t size, uint64_t round) {
	while (*n > 0 && *(uint64_t *)((char *)*array + (size_t)(*n - 1) * size) >= round)
		--*n;
	if (*n >= RECORD_MAX_ROUNDS)
		return NULL;
	if ((*n & (*n - 1)) == 0) { /* full at every power of two */
		void *grown = realloc(*array, (size_t)(*n ? 2 * *n : 1) * size);
		if (!grown)
			return NULL;
		*array = grown;
	}
	return (char *)*array + (size_t)(*n)++ * size;
}

static bool take_round(struct run_record *r, json_t *line) {
	const double us = 1e-6;
	uint64_t round = count(line, "round");
	struct record_round *to = place((void **)&r->rounds, &r->n_rounds, sizeof *to, round);
	if (!to)
		return false;
	*to = (struct record_round){.round = round,
								.tokens = count(line, "tokens"),
								.participants = count(line, "participants"),
								.train_loss = number(line, "train_loss"),
								.bytes_sent = (double)count(line, "bytes_sent"),
								.formula_bytes = (double)count(line, "formula_bytes"),
								.compute_s = (double)count(line, "compute_us") * us,
								.reduce_s = ((double)count(line, "reduce_us") - (double)count(line, "overlap_us")) * us,
								.idle_s = (double)count(line, "idle_us") * us,
								.delta_norm = number(line, "delta_norm"),
								.delta_cosine = number(line, "delta_cosine"),
								.codec_error = number(line, "codec_error"),
								.codec_cosine = number(line, "codec_cosine"),
								.modelled_s = (double)count(line, "modelled_us") * us};
	return true;
}

static bool take_eval(struct run_record *r, json_t *line) {
	uint64_t round = count(line, "round");
	double loss = number(line, "loss");
	const uint64_t tokens = count(line, "eval_tokens");
	if (!isfinite(loss))
		return true;
	if (tokens != r->eval_tokens) /* another text from here on: the curve ends */
		r->n_evals = 0;
	r->eval_tokens = tokens;
	struct record_eval *to = place((void **)&r->evals, &r->n_evals, sizeof *to, round);
	if (!to)
		return false;
	*to = (struct record_eval){round, count(line, "tokens"), loss, (double)count(line, "bytes_sent")};
	return true;
}

/* Drops the rounds of a rollback. */
static void take_rollback(struct run_record *r, json_t *line) {
	uint64_t round = count(line, "round");
	while (r->n_rounds > 0 && r->rounds[r->n_rounds - 1].round > round)
		r->n_rounds--;
	while (r->n_evals > 0 && r->evals[r->n_evals - 1].round > round)
		r->n_evals--;
	r->ended = false;
	r->final_loss = r->average_loss = r->replica_loss = NAN;
}

static void take_end(struct run_record *r, json_t *line) {
	r->ended = true;
	r->end.round = count(line, "round");
	r->end.tokens = count(line, "tokens");
	r->end.bytes_sent = (double)count(line, "bytes_sent");
	r->end.formula_bytes = (double)count(line, "formula_bytes");
	r->final_loss = number(line, "loss");
	r->wall_s = number(line, "wall_us") * 1e-6;
	r->average_loss = number(line, "average_loss");
	r->replica_loss = number(line, "replica_loss");
}

static bool take_line(struct run_record *r, json_t *line) {
	const char *kind = json_string_value(json_object_get(line, "kind"));
	if (!kind)
		return true;
	if (strcmp(kind, "run") == 0)
		take_run(r, line);
	if (strcmp(kind, "round") == 0)
		return take_round(r, line);
	if (strcmp(kind, "eval") == 0)
		return take_eval(r, line);
	if (strcmp(kind, "rollback") == 0)
		take_rollback(r, line);
	if (strcmp(kind, "diverged") == 0) {
		r->diverged_round = count(line, "round");
		r->wall_s = number(line, "wall_us") * 1e-6;
	}
	if (strcmp(kind, "end") == 0)
		take_end(r, line);
	return true;
}

static enum rv_err parse(struct run_record *r, const char *path, char *at, struct rv_errtext *et) {
	for (int number_of_line = 1; *at; number_of_line++) {
		char *end = strchr(at, '\n');
		if (!end) /* torn */
			break;
		json_error_t why;
		json_t *line = json_loadb(at, (size_t)(end - at), 0, &why);
		bool ok = !line || take_line(r, line);
		r->skipped_lines += !line;
		json_decref(line);
		if (!ok)
			return rv_fail(et, RV_E_NOMEM, "%s: line %d: no room for more rounds", path, number_of_line);
		if (r->newer)
			return rv_fail(
				et, RV_E_UNSUPPORTED,
				"%s: line %d: metrics of a later version than %d: read them with the release that wrote them, "
				"or a later one",
				path, number_of_line, (int)METRICS_VERSION);
		at = end + 1;
	}
	if (r->name[0] == '\0')
		return rv_fail(et, RV_E_CORRUPT, "%s: no line of kind \"run\"", path);
	return RV_OK;
}

enum rv_err run_record_read(const char *path, struct run_record *out, struct rv_errtext *et) {
	*out = (struct run_record){.final_loss = NAN, .average_loss = NAN, .replica_loss = NAN};
	uint8_t *bytes;
	size_t n;
	RV_TRY(rv_file_read(path, RECORD_MAX_FILE_BYTES, &bytes, &n, et));
	enum rv_err e = parse(out, path, (char *)bytes, et);
	free(bytes);
	if (e != RV_OK)
		run_record_release(out);
	return e;
}

void run_record_release(struct run_record *r) {
	free(r->rounds);
	free(r->evals);
	*r = (struct run_record){0};
}

uint64_t run_record_missing(const struct run_record *r, uint64_t upto) {
	uint64_t next = 1;
	for (int i = 0; i < r->n_rounds && r->rounds[i].round == next && next <= upto; i++)
		next++;
	return next <= upto ? next : 0;
}

/* Takes the larger counts: sums only grow, so the larger of two lines is the later, whatever is
 * missing between them. */
static void take_counts_of_end(const struct run_record *r, struct record_totals *t) {
	t->rounds = r->end.round > t->rounds ? r->end.round : t->rounds;
	t->tokens = r->end.tokens > t->tokens ? r->end.tokens : t->tokens;
	t->bytes_sent = fmax(t->bytes_sent, r->end.bytes_sent);
	t->formula_bytes = fmax(t->formula_bytes, r->end.formula_bytes);
}

/* Returns the mean of a field of record_round (its offset) over the rounds that have it. */
static double mean_of(const struct run_record *r, size_t field) {
	double sum = 0;
	int n = 0;
	for (int i = 0; i < r->n_rounds; i++) {
		double v = *(const double *)((const char *)&r->rounds[i] + field);
		if (isfinite(v)) {
			sum += v;
			n++;
		}
	}
	return n > 0 ? sum / n : NAN;
}

struct record_totals run_record_totals(const struct run_record *r) {
	struct record_totals t = {.loss = NAN,
							  .delta_norm = mean_of(r, offsetof(struct record_round, delta_norm)),
							  .delta_cosine = mean_of(r, offsetof(struct record_round, delta_cosine)),
							  .codec_error = mean_of(r, offsetof(struct record_round, codec_error)),
							  .codec_cosine = mean_of(r, offsetof(struct record_round, codec_cosine))};
	for (int i = 0; i < r->n_rounds; i++) {
		t.compute_s += r->rounds[i].compute_s;
		t.reduce_s += r->rounds[i].reduce_s;
		t.idle_s += r->rounds[i].idle_s;
		t.modelled_s += r->rounds[i].modelled_s;
	}
	if (r->n_rounds > 0) {
		const struct record_round *last = &r->rounds[r->n_rounds - 1];
		t.bytes_sent = last->bytes_sent;
		t.formula_bytes = last->formula_bytes;
		t.rounds = last->round;
		t.tokens = last->tokens;
	}
	if (r->ended)
		take_counts_of_end(r, &t);
	t.steps = t.rounds * r->steps_per_round;
	/* A run that has ended is judged by its last evaluation only if that is of the end. */
	bool latest = r->n_evals > 0 && (!r->ended || r->evals[r->n_evals - 1].round == t.rounds);
	if (latest)
		t.loss = r->evals[r->n_evals - 1].loss;
	if (r->ended && isfinite(r->final_loss))
		t.loss = r->final_loss;
	return t;
}

double run_record_ddp_bytes(const struct run_record *r) {
	double bytes = 0;
	for (int i = 0; i < r->n_rounds; i++) {
		double k = r->rounds[i].participants > 0 ? (double)r->rounds[i].participants : (double)r->workers;
		if (k > 1)
			bytes += 2 * (k - 1) / k * 4.0 * (double)r->n_params * (double)r->steps_per_round;
	}
	return bytes;
}
