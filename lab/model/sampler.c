/* sampler.c: temperature, top-k, top-p. A heap, because only a few tokens of a large vocabulary are
 * needed. */
#include "lab/model/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct candidate {
	float logit;
	int token;
	double weight; /* exp of the scaled distance from the best */
};

struct sampler {
	struct sampler_params params;
	int vocab;
	struct candidate candidates[];
};

enum rv_err sampler_new(const struct sampler_params *params, int vocab, struct sampler **out, struct rv_errtext *et) {
	struct sampler *s = malloc(sizeof *s + (size_t)vocab * sizeof s->candidates[0]);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory to sample from %d tokens", vocab);
	s->params = *params;
	s->vocab = vocab;
	*out = s;
	return RV_OK;
}

void sampler_free(struct sampler *s) {
	free(s);
}

static bool more_likely(const struct candidate *a, const struct candidate *b) {
	return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

/* Restores the heap of candidates [0, n), the most likely on top, below `at`. */
static void sift_down(struct candidate *heap, int n, int at) {
	struct candidate moved = heap[at];
	for (int child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && more_likely(&heap[child + 1], &heap[child]))
			child++;
		if (!more_likely(&heap[child], &moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* Removes the most likely of n and keeps it behind the others, at index n - 1. */
static const struct candidate *pop(struct candidate *heap, int n) {
	struct candidate top = heap[0];
	heap[0] = heap[n - 1];
	sift_down(heap, n - 1, 0);
	heap[n - 1] = top;
	return &heap[n - 1];
}

static double weigh(struct sampler *s, float best) {
	double all = 0;
	for (int i = 0; i < s->vocab; i++) {
		struct candidate *c = &s->candidates[i];
		c->weight = exp(((double)c->logit - (double)best) / s->params.temperature);
		all += c->weight;
	}
	return all;
}

/* Takes the likeliest off the heap until there are k of them or their weights reach the share p of
 * the k likeliest (top-k first, then top-p among those). Moves them to candidates [vocab - *kept,
 * vocab), the likeliest last; returns the sum of their weights. */
static double keep_likely(struct sampler *s, double all, int *kept) {
	const struct sampler_params *p = &s->params;
	int k = p->top_k > 0 && p->top_k < s->vocab ? p->top_k : s->vocab, n = 0;
	if (k < s->vocab) { /* the share is of the k likeliest */
		double of_k = 0;
		while (n < k)
			of_k += pop(s->candidates, s->vocab - n++)->weight;
		all = of_k;
	}
	double total = 0;
	int taken = 0;
	while (taken < k && (taken == 0 || total < p->top_p * all)) {
		if (taken == n)
			(void)pop(s->candidates, s->vocab - n++);
		total += s->candidates[s->vocab - 1 - taken++].weight;
	}
	*kept = taken;
	return total;
}

/* Draws one of the candidates [first, vocab), from the last on, by weight. */
static int draw(const struct sampler *s, int first, double total, struct rv_rng *rng) {
	double at = rv_rng_double(rng) * total, below = 0;
	for (int i = s->vocab - 1; i > first; i--) {
		below += s->candidates[i].weight;
		if (at < below)
			return s->candidates[i].token;
	}
	return s->candidates[first].token;
}

int sampler_next(struct sampler *s, const float *logits, struct rv_rng *rng) {
	int best = 0, kept = s->vocab;
	for (int i = 0; i < s->vocab; i++) {
		s->candidates[i] = (struct candidate){.logit = logits[i], .token = i};
		if (logits[i] > logits[best])
			best = i;
	}
	if (s->params.temperature <= 0)
		return best;
	double total = weigh(s, logits[best]);
	if ((s->params.top_k > 0 && s->params.top_k < s->vocab) || s->params.top_p < 1) {
		for (int i = s->vocab / 2 - 1; i >= 0; i--)
			sift_down(s->candidates, s->vocab, i);
		total = keep_likely(s, total, &kept);
	}
	return draw(s, s->vocab - kept, total, rng);
}
