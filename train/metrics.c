/* metrics.c: writes and reads a run's metrics as JSON lines (base/json_lines.h). */
#include "train/metrics.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/json_lines.h"
#include "base/version.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool metrics_ended(const struct rv_json_lines *m) {
	const char *kind = json_string_value(json_object_get(rv_json_lines_last(m), "kind"));
	return kind && strcmp(kind, "end") == 0;
}

/* Returns a number, or null for one that is not finite: JSON has no NaN. */
static json_t *real(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *known(double v) {
	return v != 0 ? real(v) : json_null();
}

static json_t *hash(const struct rv_hash *h) {
	char text[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h->b, sizeof h->b, text);
	return rv_hash_is_zero(h) ? json_null() : json_string(text);
}

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

enum rv_err metrics_write_run(struct rv_json_lines *m, const struct metrics_run *r, struct rv_errtext *et) {
	return rv_json_lines_write(
		m,
		json_pack("{ss si ss ss ss ss ss so so so so so so so ss so so si so}", "kind", "run", "version",
				  METRICS_VERSION, "name", r->name, "role", r->role, "method", r->method, "codec", r->codec, "outer",
				  r->outer, "member", whole(r->member), "workers", whole(r->workers), "n_params", whole(r->n_params),
				  "rounds", whole(r->rounds), "steps_per_round", whole(r->steps_per_round), "tokens_per_step",
				  whole(r->tokens_per_step), "payload_bytes", whole(r->payload_bytes), "device", r->device, "program",
				  json_sprintf("rivulet %s", rv_version()), "data",
				  r->data && r->data[0] ? json_string(r->data) : json_null(), "threads", r->threads, "heldout_tokens",
				  whole(r->heldout_tokens)),
		et);
}

enum rv_err metrics_write_round(struct rv_json_lines *m, const struct metrics_round *r, struct rv_errtext *et) {
	return rv_json_lines_write(
		m,
		json_pack("{ss so so so so so so so so so so so so so so so so so so so so so so so so so so}", "kind", "round",
				  "round", whole(r->round), "step", whole(r->step), "tokens", whole(r->tokens), "participants",
				  whole(r->participants), "train_loss", real(r->train_loss), "lr", real(r->lr), "grad_norm",
				  real(r->grad_norm), "bytes_sent", whole(r->bytes_sent), "formula_bytes", whole(r->formula_bytes),
				  "bytes_donated", whole(r->bytes_donated), "given_rounds", whole(r->given_rounds), "given_tokens",
				  whole(r->given_tokens), "bytes_relayed", whole(r->bytes_relayed), "compute_us",
				  json_integer(r->compute_us), "reduce_us", json_integer(r->reduce_us), "overlap_us",
				  json_integer(r->overlap_us), "idle_us", json_integer(r->idle_us), "wall_us", json_integer(r->wall_us),
				  "checkpoint_us", json_integer(r->checkpoint_us), "data_stall_us", json_integer(r->data_stall_us),
				  "text_bytes", whole(r->text_bytes), "chain", hash(&r->chain), "delta_norm", known(r->delta_norm),
				  "delta_cosine", known(r->delta_cosine), "codec_error", known(r->codec_error), "codec_cosine",
				  known(r->codec_cosine), "modelled_us",
				  r->modelled_us > 0 ? json_integer(r->modelled_us) : json_null(), "modelled_exchange_us",
				  r->modelled_exchange_us > 0 ? json_integer(r->modelled_exchange_us) : json_null()),
		et);
}

enum rv_err metrics_write_eval(struct rv_json_lines *m, const struct metrics_eval *e, struct rv_errtext *et) {
	return rv_json_lines_write(m,
							   json_pack("{ss so so so so so so}", "kind", "eval", "round", whole(e->round), "step",
										 whole(e->step), "tokens", whole(e->tokens), "loss", real(e->loss),
										 "bytes_sent", whole(e->bytes_sent), "eval_tokens", whole(e->eval_tokens)),
							   et);
}

enum rv_err metrics_write_end(struct rv_json_lines *m, const struct metrics_end *e, struct rv_errtext *et) {
	return rv_json_lines_write(
		m,
		json_pack("{ss so so so so so so so so so so so so}", "kind", "end", "round", whole(e->round), "step",
				  whole(e->step), "tokens", whole(e->tokens), "loss", real(e->loss), "bytes_sent", whole(e->bytes_sent),
				  "formula_bytes", whole(e->formula_bytes), "bytes_donated", whole(e->bytes_donated), "wall_us",
				  json_integer(e->wall_us), "chain", hash(&e->chain), "state", hash(&e->state), "average_loss",
				  known(e->average_loss), "replica_loss", known(e->replica_loss)),
		et);
}

enum rv_err metrics_write_diverged(struct rv_json_lines *m, const struct metrics_diverged *d, struct rv_errtext *et) {
	return rv_json_lines_write(m,
							   json_pack("{ss so so so so}", "kind", "diverged", "round", whole(d->round), "worker",
										 d->worker >= 0 ? json_integer(d->worker) : json_null(), "step", whole(d->step),
										 "wall_us", json_integer(d->wall_us)),
							   et);
}

enum rv_err metrics_write_rollback(struct rv_json_lines *m, const struct metrics_rollback *r, struct rv_errtext *et) {
	return rv_json_lines_write(m,
							   json_pack("{ss so so so so so so}", "kind", "rollback", "round", whole(r->round),
										 "from_round", whole(r->from_round), "term", whole(r->term), "tokens",
										 whole(r->tokens), "bytes_sent", whole(r->bytes_sent), "formula_bytes",
										 whole(r->formula_bytes)),
							   et);
}

enum rv_err metrics_each(const char *path, void (*visit)(void *ctx, const struct json_t *line), void *ctx,
						 struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	enum rv_err e = rv_file_read(path, METRICS_MAX_FILE_BYTES, &text, &n, et);
	if (e != RV_OK)
		return e == RV_E_NOTFOUND ? RV_OK : e;
	for (char *at = (char *)text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
		if (line)
			visit(ctx, line);
		json_decref(line);
	}
	free(text);
	return RV_OK;
}

struct tokens_at {
	uint64_t round, tokens;
};

/* Takes the tokens of a line of a round up to `round`. */
static void take_tokens(void *ctx, const json_t *line) {
	struct tokens_at *t = ctx;
	const char *kind = json_string_value(json_object_get(line, "kind"));
	json_int_t of = json_integer_value(json_object_get(line, "round"));
	json_int_t n = json_integer_value(json_object_get(line, "tokens"));
	if (!kind || strcmp(kind, "round") != 0 || of < 0 || (uint64_t)of > t->round || n < 0)
		return;
	t->tokens = (uint64_t)n;
}

enum rv_err metrics_tokens_at(const char *path, uint64_t round, uint64_t *tokens, struct rv_errtext *et) {
	struct tokens_at t = {.round = round};
	enum rv_err e = metrics_each(path, take_tokens, &t, et);
	*tokens = t.tokens;
	return e;
}

/* Returns what one of k workers in one row sends: (k-1)/k (sent + mean), rounded up. */
static uint64_t one_row_bytes(uint64_t sent_bytes, uint64_t mean_bytes, uint32_t k) {
	return k < 2 ? 0 : ((sent_bytes + mean_bytes) * (k - 1) + k - 1) / k;
}

/* In rows of lengths L, all send (L - 1) payloads a row, that is k - n_rows in all; and n_rows - 1
 * vectors of partial sums and means go through the columns. */
uint64_t metrics_rows_bytes(uint64_t sent_bytes, uint64_t mean_bytes, uint64_t sum_bytes, uint32_t k, uint32_t n_rows) {
	if (n_rows <= 1 || k < n_rows)
		return one_row_bytes(sent_bytes, mean_bytes, k);
	const uint64_t in_rows = (sent_bytes + mean_bytes) * (k - n_rows);
	const uint64_t in_columns = (sum_bytes + mean_bytes) * (n_rows - 1);
	return (in_rows + in_columns + k - 1) / k;
}

uint64_t metrics_allreduce_bytes(uint64_t payload_bytes, uint32_t k) {
	return one_row_bytes(payload_bytes, payload_bytes, k);
}
