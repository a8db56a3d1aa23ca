/* stand_in_graph.c: carries out a graph of operations, one behind the other, on host memory; see
 * stand_in.h. */
#include "kernels/cuda/sdpa_graph.h"
#include "tests/kernels/cudnn/stand_in_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t index4[DIMS];

/* What a tensor's elements are in: floats of a virtual one, or memory of the pack. */
struct place {
	int64_t id;
	float *values; /* of a virtual tensor, at its strides; owned */
	void *memory;  /* of a tensor in the pack */
	float scalar;  /* of a by-value tensor */
};

struct run {
	const struct execution *e;
	struct place places[TENSORS_MAX];
	int n;
};

#define FOR_EACH_INDEX(i, dims)                                                                                        \
	for ((i)[0] = 0; (i)[0] < (dims)[0]; (i)[0]++)                                                                     \
		for ((i)[1] = 0; (i)[1] < (dims)[1]; (i)[1]++)                                                                 \
			for ((i)[2] = 0; (i)[2] < (dims)[2]; (i)[2]++)                                                             \
				for ((i)[3] = 0; (i)[3] < (dims)[3]; (i)[3]++)

static void fault(const char *what, int number) {
	(void)fprintf(stderr, "cuDNN's stand-in: %s (%d)\n", what, number);
	abort();
}

static size_t extent(const struct desc *t) {
	int64_t last = 0;
	for (int i = 0; i < DIMS; i++)
		last += (t->dims[i] - 1) * t->strides[i];
	return (size_t)last + 1;
}

static struct place *place_of(struct run *r, const struct desc *t) {
	for (int i = 0; i < r->n; i++)
		if (r->places[i].id == t->id)
			return &r->places[i];
	if (!t->is_virtual || r->n == TENSORS_MAX)
		fault("a tensor is not in the pack", (int)t->id);
	struct place *p = &r->places[r->n++];
	*p = (struct place){.id = t->id, .values = malloc(extent(t) * sizeof(float))};
	if (!p->values)
		abort();
	for (size_t i = 0; i < extent(t); i++)
		p->values[i] = NAN; /* what no operation writes */
	return p;
}

/* ---- elements ---- */

static float from_bf16(uint16_t bits) {
	uint32_t wide = (uint32_t)bits << 16;
	float x;
	memcpy(&x, &wide, sizeof x);
	return x;
}

static uint16_t to_bf16(float x) {
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	if (isnan(x))
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float read_at(const struct place *p, const struct desc *t, size_t at) {
	if (t->by_value)
		return p->scalar;
	if (p->values)
		return p->values[at];
	return t->data_type == CUDNN_DATA_BFLOAT16 ? from_bf16(((const uint16_t *)p->memory)[at])
											   : ((const float *)p->memory)[at];
}

static void write_at(const struct place *p, const struct desc *t, size_t at, float x) {
	bool rounds = t->data_type == CUDNN_DATA_BFLOAT16;
	if (p->values)
		p->values[at] = rounds ? from_bf16(to_bf16(x)) : x;
	else if (rounds)
		((uint16_t *)p->memory)[at] = to_bf16(x);
	else
		((float *)p->memory)[at] = x;
}

/* The element of t at an index of a tensor of `dims`: dims of 1 are repeated, and heads are shared
 * by groups. */
static size_t offset(const struct desc *t, const index4 i, const int64_t dims[DIMS]) {
	int64_t at = 0;
	for (int k = 0; k < DIMS; k++)
		at += i[k] * t->dims[k] / dims[k] * t->strides[k];
	return (size_t)at;
}

/* A tensor and where it is. */
struct tensor {
	const struct desc *t; /* NULL: the operation has none */
	struct place *at;
};

static struct tensor tensor(struct run *r, const struct desc *t) {
	return (struct tensor){t, t ? place_of(r, t) : NULL};
}

static float get(struct tensor x, const index4 i, const int64_t dims[DIMS]) {
	return read_at(x.at, x.t, offset(x.t, i, dims));
}

static void put(struct tensor x, const index4 i, float value) {
	write_at(x.at, x.t, offset(x.t, i, x.t->dims), value);
}

/* ---- operations ---- */

static float pointwise_value(int mode, float x, float b, float t) {
	switch (mode) {
	case CUDNN_POINTWISE_ADD:
		return x + b;
	case CUDNN_POINTWISE_SUB:
		return x - b;
	case CUDNN_POINTWISE_MUL:
		return x * b;
	case CUDNN_POINTWISE_DIV:
		return x / b;
	case CUDNN_POINTWISE_EXP:
		return expf(x);
	case CUDNN_POINTWISE_LOG:
		return logf(x);
	case CUDNN_POINTWISE_IDENTITY:
		return x;
	case CUDNN_POINTWISE_CMP_GE:
		return x >= b;
	case CUDNN_POINTWISE_BINARY_SELECT:
		return t != 0 ? x : b;
	default:
		fault("no such pointwise mode", mode);
		return 0;
	}
}

static void pointwise(struct run *r, const struct desc *op) {
	const struct tensor x = tensor(r, op->x), b = tensor(r, op->b), t = tensor(r, op->t), y = tensor(r, op->y);
	const int64_t *dims = op->y->dims;
	index4 i;
	FOR_EACH_INDEX(i, dims) {
		if (op->how->mode == CUDNN_POINTWISE_GEN_INDEX)
			put(y, i, (float)i[op->how->axis]);
		else
			put(y, i,
				pointwise_value(op->how->mode, get(x, i, dims), b.t ? get(b, i, dims) : 0, t.t ? get(t, i, dims) : 0));
	}
}

static void product(struct run *r, const struct desc *op) {
	const struct tensor a = tensor(r, op->x), b = tensor(r, op->b), c = tensor(r, op->y);
	const int64_t *dims = c.t->dims, inner = a.t->dims[3];
	bool adds = r->e->adds_to_sums && c.t->id == SDPA_DQ_SUM;
	int64_t of_a[DIMS] = {dims[0], dims[1], dims[2], inner}, of_b[DIMS] = {dims[0], dims[1], inner, dims[3]};
	index4 i;
	if (b.t->dims[2] != inner || a.t->dims[2] != dims[2] || b.t->dims[3] != dims[3])
		fault("dims of a product do not fit", (int)c.t->id);
	FOR_EACH_INDEX(i, dims) {
		float sum = adds ? get(c, i, dims) : 0;
		for (int64_t k = 0; k < inner; k++)
			sum += get(a, (index4){i[0], i[1], i[2], k}, of_a) * get(b, (index4){i[0], i[1], k, i[3]}, of_b);
		put(c, i, sum);
	}
}

/* Every dim of y divides x's; element i of x belongs to y's at i * y.dims / x.dims. */
static void reduction(struct run *r, const struct desc *op) {
	const struct tensor x = tensor(r, op->x), y = tensor(r, op->y);
	bool max = op->how->reduction == CUDNN_REDUCE_TENSOR_MAX;
	size_t n = extent(y.t);
	float *sums = malloc(n * sizeof *sums);
	index4 i;
	if (!sums || (!max && op->how->reduction != CUDNN_REDUCE_TENSOR_ADD))
		fault("no such reduction", op->how->reduction);
	for (size_t k = 0; k < n; k++)
		sums[k] = max ? -INFINITY : 0;
	FOR_EACH_INDEX(i, x.t->dims) {
		float *sum = &sums[offset(y.t, i, x.t->dims)], value = get(x, i, x.t->dims);
		*sum = max ? fmaxf(*sum, value) : *sum + value;
	}
	FOR_EACH_INDEX(i, y.t->dims)
	put(y, i, sums[offset(y.t, i, y.t->dims)]);
	free(sums);
}

/* The same memory under other dims and strides. */
static void reshape(struct run *r, const struct desc *op) {
	const struct tensor x = tensor(r, op->x), y = tensor(r, op->y);
	index4 i;
	FOR_EACH_INDEX(i, y.t->dims)
	put(y, i, read_at(x.at, x.t, offset(y.t, i, y.t->dims)));
}

static void carry_out(struct run *r, const struct desc *op) {
	switch (op->type) {
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
		pointwise(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		product(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
		reduction(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		reshape(r, op);
		break;
	default:
		fault("no such operation", op->type);
	}
}

/* Dim 2 counts tokens in everything that the pack holds. */
static void spoil(struct run *r) {
	for (int64_t k = 0; k < r->e->graph->n_ops; k++) {
		const struct desc *y = r->e->graph->ops[k]->y;
		index4 i;
		if (y->id != r->e->spoiled)
			continue;
		const struct tensor spoiled = tensor(r, y);
		FOR_EACH_INDEX(i, y->dims)
		if (i[2] >= r->e->spoiled_from)
			put(spoiled, i, r->e->spoiled_by * get(spoiled, i, y->dims));
	}
}

void stand_in_compute(const void *execution) {
	struct run r = {.e = execution};
	for (int64_t i = 0; i < r.e->n; i++)
		r.places[r.n++] = (struct place){.id = r.e->ids[i], .memory = r.e->pointers[i], .scalar = r.e->scalars[i]};
	for (int64_t i = 0; i < r.e->graph->n_ops; i++)
		carry_out(&r, r.e->graph->ops[i]);
	spoil(&r);
	for (int i = 0; i < r.n; i++)
		free(r.places[i].values);
}
