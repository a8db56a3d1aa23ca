/* cuda_tokens.c: the operations that take token ids from host memory, and the optimizer, which
 * takes spans: embedding, classifier, logits, adamw. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

#include <stdlib.h>
#include <string.h>

enum { RADIX_BITS = 16, RADIX_BUCKETS = 1 << RADIX_BITS };

/* Returns the tokens on the device; in a micro-step they are there already. */
static const int32_t *tokens_on_device(struct cuda_backend *cu, const int32_t *tokens, int n) {
	if (!cu->micro.batch)
		return cuda_stage_in(cu, tokens, (size_t)n * sizeof *tokens);
	RV_ASSERT(tokens == cu->micro.batch->tokens);
	return cuda_micro_parts(cu, n).tokens;
}

void cuda_embed_forward(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe,
						int b, int t, int c) {
	struct cuda_backend *cu = cuda_of(be);
	const int32_t *device_tokens = tokens_on_device(cu, tokens, b * t);
	launch_embed_forward(cu->stream, be->act, out, device_tokens, wte, wpe, b * t, t, c);
}

/* Sorts rows in `from` (NULL: 0, 1, ...) by 16 bits of their tokens, stably: one pass of a radix
 * sort. */
static void sort_pass(int32_t *to, const int32_t *from, const int32_t *tokens, int n, int shift) {
	int32_t *next = calloc(RADIX_BUCKETS + 1, sizeof *next);
	RV_ASSERT(next);
	for (int i = 0; i < n; i++)
		next[((tokens[i] >> shift) & (RADIX_BUCKETS - 1)) + 1]++;
	for (int i = 0; i < RADIX_BUCKETS; i++)
		next[i + 1] += next[i];
	for (int i = 0; i < n; i++) {
		int32_t row = from ? from[i] : i;
		to[next[(tokens[row] >> shift) & (RADIX_BUCKETS - 1)]++] = row;
	}
	free(next);
}

int cuda_sort_tokens(int32_t *out, const int32_t *tokens, int n) {
	int32_t *rows = out + n, *starts = out + 2 * n, largest = 0;
	memcpy(out, tokens, (size_t)n * sizeof *out);
	for (int i = 0; i < n; i++)
		largest = tokens[i] > largest ? tokens[i] : largest;
	if (largest < RADIX_BUCKETS) {
		sort_pass(rows, NULL, tokens, n, 0);
	} else {
		sort_pass(starts, NULL, tokens, n, 0); /* starts: not in use yet */
		sort_pass(rows, starts, tokens, n, RADIX_BITS);
	}
	int distinct = 0;
	for (int i = 0; i < n; i++)
		if (i == 0 || tokens[rows[i]] != tokens[rows[i - 1]])
			starts[distinct++] = i;
	for (int i = distinct; i <= n; i++)
		starts[i] = n;
	return distinct;
}

/* Returns the order on the device. In a micro-step it is sized for all-distinct tokens, so that the
 * launch is the same for all batches. */
static struct embed_order order_on_device(struct cuda_backend *cu, const int32_t *tokens, int n) {
	if (cu->micro.batch) {
		RV_ASSERT(tokens == cu->micro.batch->tokens);
		const int32_t *sorted = cuda_micro_parts(cu, n).sorted;
		return (struct embed_order){sorted, sorted + n, sorted + 2 * (size_t)n, n};
	}
	size_t bytes = (3 * (size_t)n + 1) * sizeof *tokens;
	int32_t *sorted = malloc(bytes);
	RV_ASSERT(sorted);
	int distinct = cuda_sort_tokens(sorted, tokens, n);
	const int32_t *device = cuda_stage_in(cu, sorted, bytes);
	free(sorted);
	return (struct embed_order){device, device + n, device + 2 * (size_t)n, distinct};
}

void cuda_embed_backward(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout, int b,
						 int t, int c) {
	struct cuda_backend *cu = cuda_of(be);
	int n = b * t;
	launch_embed_backward(cu->stream, be->act, dwte, order_on_device(cu, tokens, n), dout, c);
	int32_t most = 0;
	for (int i = 0; i < n; i++)
		most = tokens[i] > most ? tokens[i] : most;
	cuda_weights_changed(cu, dwte, ((size_t)most + 1) * c * sizeof *dwte);
	if (!dwpe)
		return;
	launch_position_backward(cu->stream, be->act, dwpe, dout, b, t, c);
	cuda_weights_changed(cu, dwpe, (size_t)t * c * sizeof *dwpe);
}

/* Computes logits (n, ld) = x wte^T for `columns` rows of wte. */
static void logits_of(struct cuda_backend *cu, void *logits, enum dtype out, const act_t *x, const float *wte, int n,
					  int c, int columns, int ld) {
	const struct gemm_call call = {
		.a = x,
		.b = cuda_weights(cu, wte, (size_t)columns * c),
		.d = logits,
		.m = n,
		.n = columns,
		.k = c,
		.lda = c,
		.ldb = c,
		.ldd = ld,
		.b_transposed = true,
		.in = cu->base.act,
		.out = out,
		.epilogue = GEMM_PLAIN,
	};
	cuda_gemm(cu, &call);
}

/* Arguments that all chunks of tokens of a classifier call share. */
struct head {
	const float *wte;
	float *dwte;
	act_t *logits;
	int c, v, vp, ld;
};

/* Computes dx = dlogits wte; dwte = or += dlogits^T x. */
static void head_backward(struct cuda_backend *cu, const struct head *h, act_t *dx, const act_t *x, int n,
						  enum gradient_mode mode) {
	const struct gemm_call input = {
		.a = h->logits,
		.b = cuda_weights(cu, h->wte, (size_t)h->vp * h->c),
		.d = dx,
		.m = n,
		.n = h->c,
		.k = h->vp,
		.lda = h->ld,
		.ldb = h->c,
		.ldd = h->c,
		.in = cu->base.act,
		.out = cu->base.act,
		.epilogue = GEMM_PLAIN,
	};
	const struct gemm_call weight = {
		.a = h->logits,
		.b = x,
		.d = h->dwte,
		.m = h->v,
		.n = h->c,
		.k = n,
		.lda = h->ld,
		.ldb = h->c,
		.ldd = h->c,
		.a_transposed = true,
		.accumulate = mode == GRADIENT_ADD,
		.in = cu->base.act,
		.out = DTYPE_F32,
		.epilogue = GEMM_PLAIN,
	};
	cuda_gemm(cu, &input);
	cuda_gemm(cu, &weight);
}

/* Returns the addresses where kernels read targets and grad_scale, and room for the losses. */
static struct cuda_micro_parts head_parts(struct cuda_backend *cu, const int32_t *targets, int n, float grad_scale) {
	if (cu->micro.batch) {
		RV_ASSERT(targets == cu->micro.batch->targets);
		return cuda_micro_parts(cu, n);
	}
	return (struct cuda_micro_parts){
		.targets = cuda_stage_in(cu, targets, (size_t)n * sizeof *targets),
		.grad_scale = cuda_stage_in(cu, &grad_scale, sizeof grad_scale),
		.losses = cuda_scratch(cu, SCRATCH_ROWS, (size_t)n * sizeof(float)),
	};
}

void cuda_classifier(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					 const int32_t *targets, int n, int c, int v, int vp, float grad_scale, enum gradient_mode mode) {
	struct cuda_backend *cu = cuda_of(be);
	size_t row_bytes = cuda_logits_row_bytes(be->act, vp);
	int ld = (int)(row_bytes / dtype_bytes(be->act)), chunk = cuda_logits_rows(cu->logits_rows, n);
	struct head h = {wte, dwte, cuda_scratch(cu, SCRATCH_LOGITS, (size_t)chunk * row_bytes), c, v, vp, ld};
	const struct cuda_micro_parts parts = head_parts(cu, targets, n, grad_scale);
	for (int first = 0; first < n; first += chunk) {
		int rows = n - first < chunk ? n - first : chunk;
		const act_t *from = (const act_t *)((const char *)x + (size_t)first * c * dtype_bytes(be->act));
		logits_of(cu, h.logits, be->act, from, wte, rows, c, vp, ld);
		const struct classifier_rows p = {h.logits, parts.losses + first, parts.targets + first, rows, v, vp,
										  ld,       dx != NULL,           parts.grad_scale};
		launch_classifier(cu->stream, be->act, &p);
		if (dx)
			head_backward(cu, &h, backend_act_at(be, dx, (size_t)first * c), from, rows,
						  first == 0 ? mode : GRADIENT_ADD);
	}
	if (dx && mode == GRADIENT_WRITE && v < vp)
		be->ops->zero(be, dwte + (size_t)v * c, (size_t)(vp - v) * c * sizeof *dwte);
	if (dx)
		cuda_weights_changed(cu, dwte, (size_t)v * c * sizeof *dwte);
	if (!cu->micro.batch)
		cuda_fetch(cu, losses, parts.losses, (size_t)n * sizeof *losses);
}

void cuda_logits(struct backend *be, float *host_out, const act_t *x, const float *wte, int n, int c, int v) {
	struct cuda_backend *cu = cuda_of(be);
	size_t bytes = (size_t)n * v * sizeof *host_out;
	float *out = cuda_scratch(cu, SCRATCH_LOGITS, bytes);
	logits_of(cu, out, DTYPE_F32, x, wte, n, c, v, v);
	cuda_fetch(cu, host_out, out, bytes);
}

/* The optimizer's spans on the device. */
struct staged_spans {
	const size_t *ends;
	const uint8_t *decays;
};

static struct staged_spans stage_spans(struct cuda_backend *cu, const struct decay_span *spans, int n_spans) {
	const size_t ends_bytes = (size_t)n_spans * sizeof(size_t);
	char *packed = malloc(cuda_spans_bytes(n_spans));
	RV_ASSERT(packed);
	for (int i = 0; i < n_spans; i++) {
		memcpy(packed + (size_t)i * sizeof(size_t), &spans[i].end, sizeof(size_t));
		packed[ends_bytes + (size_t)i] = spans[i].decay;
	}
	const char *device = cuda_stage_in(cu, packed, cuda_spans_bytes(n_spans));
	free(packed);
	return (struct staged_spans){(const size_t *)(const void *)device, (const uint8_t *)device + ends_bytes};
}

void cuda_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
				int n_spans, const struct adamw_params *a) {
	struct cuda_backend *cu = cuda_of(be);
	if (n_spans < 1 || spans[n_spans - 1].end == 0)
		return;
	const size_t n = spans[n_spans - 1].end;
	const struct staged_spans staged = stage_spans(cu, spans, n_spans);
	const struct adamw_arrays arrays = {.p = p,
										.m = m,
										.v = v,
										.g = g,
										.p_bf16 = cuda_weights_overwritten(cu, p, n),
										.ends = staged.ends,
										.decays = staged.decays,
										.n_spans = n_spans,
										.n = n};
	launch_adamw(cu->stream, &arrays, a);
}

void cuda_adamw8(struct backend *be, float *p, const float *g, void *m, void *v, const struct decay_span *spans,
				 int n_spans, const struct adamw_params *a, struct moments_place place) {
	struct cuda_backend *cu = cuda_of(be);
	RV_ASSERT(n_spans > 0 && spans[n_spans - 1].end > 0 && place.first % MOMENTS_BLOCK == 0);
	const size_t n = spans[n_spans - 1].end, block = place.at / MOMENTS_BLOCK;
	RV_ASSERT(place.at % MOMENTS_BLOCK == 0 && place.at + n <= place.n);
	const struct staged_spans staged = stage_spans(cu, spans, n_spans);
	const struct adamw8_arrays arrays = {.p = p,
										 .m = (uint8_t *)m + place.at,
										 .v = (uint8_t *)v + place.at,
										 .m_tops = moments_tops(m, place.n) + block,
										 .v_tops = moments_tops(v, place.n) + block,
										 .g = g,
										 .p_bf16 = cuda_weights_overwritten(cu, p, n),
										 .ends = staged.ends,
										 .decays = staged.decays,
										 .n_spans = n_spans,
										 .n = n,
										 .step = (uint64_t)a->step,
										 .first_block = place.first / MOMENTS_BLOCK};
	launch_adamw8(cu->stream, &arrays, a);
}
