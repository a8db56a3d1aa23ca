/* evil_worker.c: the real worker in the hands of an attacker with one invite, by the linker
 * (--wrap). It exists for tests and for bench/poison.py only.
 *
 * RIVULET_EVIL is a list of name=value, separated by commas:
 *   from=R,until=R  its contributions are its own before round `from`, and from round `until` on
 *   scale=S         its outer gradient, times S
 *   noise=F         noise of F times its norm, in its place
 *   zero=1          zeros in its place
 *   stale=1         what it gave in the first of these rounds, again and again
 *   mean=S          means of the chunks that it owns, times S; everybody gets the same bytes
 *   tokens=T        its reports claim T tokens
 *   loss=L          its reports claim a loss of L
 *   candidates=K@A;K@A...  its reports name address A of kind K (enum candidate_kind) beside the
 *                   first, with a signature of its own making */
#include "base/assert.h"
#include "base/clock.h"
#include "base/rng.h"
#include "net/control/control.h"
#include "outer/merge.h"
#include "train/outer_device.h"
#include "worker/join/control_client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum rv_err encode_fn(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
							  struct rv_errtext *et);
typedef enum rv_err merge_fn(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
							 size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							 struct merge_measured *measured, struct rv_errtext *et);
typedef void report_fn(struct control_client *c, const struct report *r);
encode_fn __real_outer_device_encode, __wrap_outer_device_encode;
merge_fn __real_merge_chunk, __wrap_merge_chunk;
report_fn __real_control_client_report, __wrap_control_client_report;

/* Returns the text of `name` in RIVULET_EVIL, up to its end or a comma; NULL: it is not there. */
static const char *evil_text(const char *name) {
	const char *text = getenv("RIVULET_EVIL");
	const size_t n = strlen(name);
	for (; text != NULL && *text != '\0'; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
		if (strncmp(text, name, n) == 0 && text[n] == '=')
			return text + n + 1;
	return NULL;
}

/* Returns whether RIVULET_EVIL has `name`, and its value. */
static bool evil(const char *name, double *value) {
	const char *text = evil_text(name);
	if (text != NULL)
		*value = strtod(text, NULL);
	return text != NULL;
}

static bool evil_now(uint64_t round) {
	double from = 0, until = INFINITY;
	(void)evil("from", &from);
	(void)evil("until", &until);
	return (double)round >= from && (double)round < until;
}

static void fill_noise(float *x, size_t n, double factor, struct rv_rng *rng) {
	double norm2 = 0, sum = 0;
	for (size_t i = 0; i < n; i++)
		norm2 += (double)x[i] * (double)x[i];
	for (size_t i = 0; i < n; i++) {
		double z = rv_rng_normal(rng);
		sum += z * z;
		x[i] = (float)z;
	}
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)x[i] * factor * sqrt(norm2 / sum));
}

static void corrupt(float *x, size_t n, struct rv_rng *rng) {
	double value;
	if (evil("noise", &value))
		fill_noise(x, n, value, rng);
	if (evil("zero", &value))
		memset(x, 0, n * sizeof *x);
	if (evil("scale", &value))
		for (size_t i = 0; i < n; i++)
			x[i] = (float)((double)x[i] * value);
}

static void corrupt_vector(const struct global_state *g, uint8_t *vector) {
	const struct codec *c = global_sent(&g->cfg);
	const struct chunking chunks = global_round_chunks(&g->cfg, g->round);
	struct rv_rng rng = rv_rng_of(0x6576696c, g->round);
	float *x = malloc(g->cfg.chunks.chunk_elems * sizeof *x);
	RV_ASSERT(x);
	for (uint32_t k = 0; k < chunks.n_chunks; k++) {
		uint8_t *at = vector + chunking_offset_bytes(&chunks, c, k);
		size_t n = chunking_len(&chunks, k);
		RV_ASSERT(c->decode(c, at, n, x, NULL) == RV_OK);
		corrupt(x, n, &rng);
		RV_ASSERT(c->encode(c, x, n, at, NULL) == RV_OK);
	}
	free(x);
}

/* One thread encodes. */
static void make_stale(uint8_t *vector, size_t n) {
	static uint8_t *first;
	if (first == NULL) {
		first = malloc(n);
		RV_ASSERT(first);
		memcpy(first, vector, n);
	}
	memcpy(vector, first, n);
}

enum rv_err __wrap_outer_device_encode(struct outer_device *d, struct replica *r, const struct global_state *g,
									   uint8_t *out, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(&g->cfg, g->round);
	double ignored;
	RV_TRY(__real_outer_device_encode(d, r, g, out, et));
	if (!evil_now(g->round))
		return RV_OK;
	corrupt_vector(g, out);
	if (evil("stale", &ignored))
		make_stale(out, chunking_total_bytes(&chunks, global_sent(&g->cfg)));
	return RV_OK;
}

enum rv_err __wrap_merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
							   int n_in, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							   struct merge_measured *measured, struct rv_errtext *et) {
	double factor;
	RV_TRY(__real_merge_chunk(rule, in, weights, n_in, n, scratch, feedback, out, measured, et));
	if (!evil("mean", &factor))
		return RV_OK;
	RV_TRY(rule->mean->decode(rule->mean, out, n, scratch, et));
	for (size_t i = 0; i < n; i++)
		scratch[i] = (float)((double)scratch[i] * factor);
	return rule->mean->encode(rule->mean, scratch, n, out, et);
}

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

void __wrap_control_client_report(struct control_client *c, const struct report *r) {
	struct report lie = *r;
	double value;
	if (evil("tokens", &value) && lie.tokens > 0)
		lie.tokens = (uint64_t)value;
	if (evil("loss", &value))
		lie.loss = (float)value;
	if (evil_text("candidates") != NULL)
		add_lies(&lie, evil_text("candidates"));
	__real_control_client_report(c, &lie);
}
