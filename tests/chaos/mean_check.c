/* mean_check.c: see mean_check.h. */
#include "tests/chaos/mean_check.h"

#include "base/bytes.h"
#include "base/chain.h"
#include "base/file.h"
#include "base/rows.h"
#include "base/run_config.h"
#include "base/weights.h"
#include "coordinator/store/sqlite.h"
#include "outer/codec_kernels.h"
#include "outer/global.h"
#include "tests/chaos/mean_dump.h"
#include "train/model/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 512, DUMP_MAX_BYTES = 1 << 28, VALUES_MAX = 1 << 26 };

struct checker {
	const char *dir;
	struct mean_check *out;
	struct run_config run;
	struct rv_hash run_hash;
	struct core_record roster;    /* the latest */
	uint8_t rows[NET_MAX_ROSTER]; /* of its participants: as the round's first roster was laid out */
};

struct dump {
	uint8_t *bytes;        /* the whole file */
	const uint8_t *vector; /* in it */
	size_t n_params, n;
};

/* ---- dumps ---- */

static enum rv_err load_dump(const struct checker *c, const char *kind, uint64_t round, uint32_t member, uint64_t which,
							 struct dump *out, struct rv_errtext *et) {
	char path[PATH_BYTES], magic[8];
	size_t n;
	(void)snprintf(path, sizeof path, "%s/%s-%" PRIu64 "-%u-%" PRIu64, c->dir, kind, round, member, which);
	RV_TRY(rv_file_read(path, DUMP_MAX_BYTES, &out->bytes, &n, et));
	struct rv_reader r = rv_reader_of(out->bytes, n);
	rv_read_copy(&r, magic, sizeof magic);
	out->n_params = rv_read_u64(&r);
	bool same = rv_read_u64(&r) == round;
	same = rv_read_u64(&r) == member && same;
	same = rv_read_u64(&r) == which && same;
	out->n = rv_read_u64(&r);
	out->vector = out->bytes + MEAN_DUMP_HEADER_BYTES;
	if (rv_reader_ok(&r) && memcmp(magic, MEAN_DUMP_MAGIC, sizeof magic) == 0 && same && out->n_params > 0 &&
		out->n_params <= VALUES_MAX && n == MEAN_DUMP_HEADER_BYTES + out->n)
		return RV_OK;
	free(out->bytes);
	out->bytes = NULL;
	return rv_fail(et, RV_E_CORRUPT, "%s: is not the dump that its name says", path);
}

static void release_dumps(struct dump *dumps, int n) {
	for (int i = 0; i < n; i++)
		free(dumps[i].bytes);
}

static enum rv_err load_contributions(const struct checker *c, struct dump *dumps, struct rv_errtext *et) {
	const struct core_record *r = &c->roster;
	for (int i = 0; i < r->n_members; i++) {
		RV_TRY(load_dump(c, "contribution", r->round, r->members[i], r->boots[i], &dumps[i], et));
		if (dumps[i].n_params != dumps[0].n_params || dumps[i].n != dumps[0].n)
			return rv_fail(et, RV_E_CORRUPT, "round %" PRIu64 ": members %u and %u have vectors of different sizes",
						   r->round, r->members[0], r->members[i]);
	}
	return RV_OK;
}

/* ---- the mean ---- */

struct sums {
	float *mean, *sum, *x; /* a chunk each */
	uint8_t *encoded;
};

/* How much each contribution to a chunk counts: its weight, less where its norm is beyond the limit
 * (outer/merge.h). */
static enum rv_err factors_of(const struct global_config *g, const struct dump *dumps, size_t at, size_t n,
							  const uint32_t *weights, int n_in, const struct sums *s, float *factors,
							  struct rv_errtext *et) {
	const struct codec *sent = global_sent(g);
	const double clip = g->merge == &merge_clipped ? g->merge_params.clip : 0;
	double norm[NET_MAX_ROW], median = 0;
	for (int i = 0; i < n_in; i++) {
		const uint8_t *code = dumps[i].vector + at;
		RV_TRY(sent->decode(sent, code, n, s->x, et));
		norm[i] =
			sqrt(sent->sum_squares ? sent->sum_squares(sent, code, n) : codec_kernels_portable.dot(s->x, s->x, n));
		factors[i] = (float)weights[i];
	}
	for (int i = 0; i < n_in; i++) {
		int below = 0, equal = 0;
		for (int k = 0; k < n_in; k++) {
			below += norm[k] < norm[i];
			equal += norm[k] == norm[i];
		}
		if (below <= (n_in - 1) / 2 && (n_in - 1) / 2 < below + equal)
			median = norm[i];
	}
	for (int i = 0; i < n_in && n_in >= 3 && clip > 0; i++)
		if (norm[i] > clip * median)
			factors[i] = (float)(clip * median / norm[i] * (double)weights[i]);
	return RV_OK;
}

/* Sets s->sum to the sum of a row's n_in contributions to a chunk. */
static enum rv_err sum_of_row(const struct global_config *g, const struct dump *dumps, size_t at, size_t n,
							  const uint32_t *weights, int n_in, const struct sums *s, struct rv_errtext *et) {
	const struct codec *sent = global_sent(g);
	float factors[NET_MAX_ROW];
	RV_TRY(factors_of(g, dumps, at, n, weights, n_in, s, factors, et));
	memset(s->sum, 0, n * sizeof(float));
	for (int i = 0; i < n_in; i++) {
		RV_TRY(sent->decode(sent, dumps[i].vector + at, n, s->x, et));
		for (size_t k = 0; k < n; k++)
			s->sum[k] += factors[i] * s->x[k];
	}
	return RV_OK;
}

/* Returns how many participants share the row of the one at `first`, from that one on. */
static int row_from(const struct checker *c, int first) {
	int end = first + 1;
	while (end < c->roster.n_members && c->rows[end] == c->rows[first])
		end++;
	return end - first;
}

static enum rv_err mean_of_chunk(const struct checker *c, const struct global_config *g, const struct dump *dumps,
								 uint32_t chunk, const struct sums *s, struct rv_errtext *et) {
	const struct core_record *r = &c->roster;
	const struct chunking exchanged = global_round_chunks(g, r->round);
	size_t n = chunking_len(&exchanged, chunk), at = chunking_offset_bytes(&exchanged, global_sent(g), chunk);
	uint32_t weights[NET_MAX_ROW], all = 0;
	rv_weights(r->tokens, r->n_members, c->run.weight_by_tokens, weights);
	memset(s->mean, 0, n * sizeof(float));
	for (int i = 0; i < r->n_members; i += row_from(c, i)) {
		RV_TRY(sum_of_row(g, dumps + i, at, n, weights + i, row_from(c, i), s, et));
		for (size_t k = 0; k < n; k++)
			s->mean[k] += s->sum[k];
	}
	for (int i = 0; i < r->n_members; i++)
		all += weights[i];
	for (size_t k = 0; k < n; k++)
		s->mean[k] /= (float)all;
	return g->codec->encode(g->codec, s->mean, n, s->encoded + chunking_offset_bytes(&g->chunks, g->codec, chunk), et);
}

static enum rv_err mean_of_round(const struct checker *c, const struct global_config *g, const struct dump *dumps,
								 const struct sums *s, struct rv_errtext *et) {
	const struct chunking exchanged = global_round_chunks(g, c->roster.round);
	if (chunking_total_bytes(&exchanged, global_sent(g)) != dumps[0].n)
		return rv_fail(et, RV_E_CORRUPT, "round %" PRIu64 ": a contribution has %zu bytes", c->roster.round,
					   dumps[0].n);
	for (uint32_t chunk = 0; chunk < exchanged.n_chunks; chunk++)
		RV_TRY(mean_of_chunk(c, g, dumps, chunk, s, et));
	return RV_OK;
}

/* ---- what was reduced and committed ---- */

/* Whoever died before it had everything has no dump. */
static enum rv_err compare_reduced(const struct checker *c, const uint8_t *mean, size_t n, struct rv_errtext *et) {
	const struct core_record *r = &c->roster;
	uint64_t before = c->out->reduced;
	for (int i = 0; i < r->n_members; i++) {
		struct dump d = {.bytes = NULL};
		enum rv_err e = load_dump(c, "reduced", r->round, r->members[i], r->attempt, &d, et);
		if (e == RV_E_NOTFOUND)
			continue;
		RV_TRY(e);
		bool same = d.n == n && memcmp(d.vector, mean, n) == 0;
		free(d.bytes);
		if (!same)
			return rv_fail(et, RV_E_CORRUPT,
						   "round %" PRIu64
						   ", attempt %u: what member %u reduced is not the mean of its %u participants",
						   r->round, r->attempt, r->members[i], r->n_members);
		c->out->reduced++;
	}
	if (c->out->reduced == before)
		return rv_fail(et, RV_E_NOTFOUND, "round %" PRIu64 ": nobody has dumped what was reduced", r->round);
	return RV_OK;
}

static enum rv_err compare_committed(const struct checker *c, const struct core_record *commit,
									 const struct global_config *g, const uint8_t *mean, struct rv_errtext *et) {
	struct global_state names = {.cfg = *g};
	struct rv_hash digest = global_digest(&names, commit->round, mean);
	if (!rv_hash_equal(&digest, &commit->digest))
		return rv_fail(et, RV_E_CORRUPT,
					   "round %" PRIu64 ": the committed digest is not that of the participants' mean", commit->round);
	struct rv_hash next = rv_chain_next(&c->out->chain[commit->round], &digest);
	if (!rv_hash_equal(&next, &commit->chain))
		return rv_fail(et, RV_E_CORRUPT, "round %" PRIu64 ": the committed chain does not follow", commit->round);
	c->out->chain[commit->round + 1] = next;
	return RV_OK;
}

/* The layers say what a fragment is. */
static enum rv_err configure(const struct checker *c, size_t n_params, struct global_config *g, struct rv_errtext *et) {
	const struct model_shape shape = model_shape_of(&c->run);
	const struct model_ops *family = model_family(&c->run);
	struct model_layout layout = {0};
	if (c->run.fragments == 1)
		return global_config_of(&c->run, n_params, &(struct fragment_layers){0}, &c->run_hash, g, et);
	enum rv_err e = model_layout_init(&layout, family, &shape, NULL, et);
	if (e == RV_OK && layout.n_params != n_params)
		e = rv_fail(et, RV_E_CORRUPT, "a dump is of %zu parameters, the run's model has %zu", n_params,
					layout.n_params);
	if (e == RV_OK)
		e = global_config_of(&c->run, n_params, &layout.layers, &c->run_hash, g, et);
	model_layout_release(&layout);
	return e;
}

static enum rv_err check_mean(const struct checker *c, const struct core_record *commit, const struct dump *dumps,
							  struct rv_errtext *et) {
	struct global_config g;
	RV_TRY(configure(c, dumps[0].n_params, &g, et));
	struct sums s = {.mean = calloc(g.chunks.chunk_elems, sizeof(float)),
					 .sum = calloc(g.chunks.chunk_elems, sizeof(float)),
					 .x = calloc(g.chunks.chunk_elems, sizeof(float)),
					 .encoded = malloc(dumps[0].n)};
	enum rv_err e = s.mean && s.sum && s.x && s.encoded ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to average");
	if (e == RV_OK)
		e = mean_of_round(c, &g, dumps, &s, et);
	if (e == RV_OK)
		e = compare_reduced(c, s.encoded, dumps[0].n, et);
	if (e == RV_OK)
		e = compare_committed(c, commit, &g, s.encoded, et);
	free(s.mean);
	free(s.sum);
	free(s.x);
	free(s.encoded);
	return e;
}

/* ---- records ---- */

static bool same_participants(const struct core_record *roster, const struct core_record *commit) {
	return roster->round == commit->round && roster->attempt == commit->attempt &&
		   roster->n_members == commit->n_members && commit->n_members > 0 &&
		   memcmp(roster->members, commit->members, commit->n_members * sizeof commit->members[0]) == 0 &&
		   memcmp(roster->tokens, commit->tokens, commit->n_members * sizeof commit->tokens[0]) == 0;
}

/* Lays out the first roster of a round by its participants' places; those that are left in a later
 * attempt stay in their rows. */
static void take_roster(struct checker *c, const struct core_record *rec) {
	const struct core_record *former = &c->roster;
	const bool first = former->round != rec->round || former->n_members == 0 || rec->n_members == 0;
	const int n = rec->n_members, n_rows = n > 0 ? rows_choose(n, (int)c->run.row_size) : 1;
	uint8_t rows[NET_MAX_ROSTER] = {0};
	for (int i = 0, row = 0, at = 0; i < n; i++) {
		if (first) {
			row += row + 1 < n_rows && i == rows_first(n, n_rows, row + 1);
			rows[i] = (uint8_t)row;
			continue;
		}
		while (at < former->n_members && former->members[at] != rec->members[i])
			at++;
		rows[i] = c->rows[at];
	}
	memcpy(c->rows, rows, sizeof rows);
	c->roster = *rec;
}

static enum rv_err check_commit(struct checker *c, const struct core_record *commit, struct rv_errtext *et) {
	struct dump dumps[NET_MAX_ROW] = {{.bytes = NULL}};
	if (commit->round != c->out->rounds || commit->round >= MEAN_CHECK_MAX_ROUNDS)
		return rv_fail(et, RV_E_CORRUPT, "round %" PRIu64 " is committed after %" PRIu64 " rounds", commit->round,
					   c->out->rounds);
	if (!same_participants(&c->roster, commit))
		return rv_fail(et, RV_E_CORRUPT, "round %" PRIu64 ": the commit is not over the last roster", commit->round);
	enum rv_err e = load_contributions(c, dumps, et);
	if (e == RV_OK)
		e = check_mean(c, commit, dumps, et);
	release_dumps(dumps, commit->n_members);
	c->out->rounds++;
	c->out->contributions += commit->n_members;
	c->out->by_later_attempts += commit->attempt > 1;
	c->out->in_rows += row_from(c, 0) < commit->n_members;
	return e;
}

static enum rv_err on_record(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	struct checker *c = ctx;
	if (rec->type == CORE_ROSTER)
		take_roster(c, rec);
	return rec->type == CORE_COMMIT ? check_commit(c, rec, et) : RV_OK;
}

enum rv_err mean_check(const char *store, const char *dump_dir, struct mean_check *out, struct rv_errtext *et) {
	struct checker c = {.dir = dump_dir, .out = out};
	uint8_t run_id[NET_RUN_ID_BYTES];
	char config[NET_MAX_CONFIG_BYTES];
	struct store *s = NULL;
	memset(out, 0, sizeof *out);
	RV_TRY(sqlite_store_open(store, &s, et));
	enum rv_err e = s->ops->run(s, run_id, config, et);
	if (e == RV_OK)
		e = run_config_parse(&c.run, store, config, et);
	if (e == RV_OK) {
		c.run_hash = rv_run_hash(run_id, config);
		out->chain[0] = rv_chain_start(&c.run_hash);
		e = s->ops->each(s, on_record, &c, et);
	}
	store_close(s);
	return e;
}
