/* sdpa_graph.c: the operations of causal attention, forward and backward, as cuDNN's engines for
 * fused attention recognise them (cuDNN's documentation of its graph API, "fused flash attention"),
 * and plans for them. */
#include "kernels/cuda/sdpa_graph.h"

#include <string.h>

enum { OPS_MAX = 32, CONFIGS_MAX = 8, ALIGN_BYTES = 16, FIRST_VIRTUAL = 1000, DIMS = 4 };

typedef cudnnBackendDescriptor_t desc;

struct builder {
	const struct cudnn_api *api;
	cudnnHandle_t handle;
	desc device; /* NULL with a handle */
	struct sdpa_plan *p;
	desc ops[OPS_MAX];
	int n_ops;
	int64_t n_virtual;
	int64_t b, h, hk, t, d; /* of the shape */
	const char *failed;     /* the first step that failed; later ones are skipped */
};

static void note(struct builder *g, cudnnStatus_t s, const char *what) {
	if (s != CUDNN_STATUS_SUCCESS && !g->failed)
		g->failed = what;
}

static desc new_desc(struct builder *g, cudnnBackendDescriptorType_t type) {
	desc d = NULL;
	if (g->p->n == SDPA_DESCRIPTORS_MAX) {
		g->failed = "the number of descriptors";
		return NULL;
	}
	note(g, g->api->cudnnBackendCreateDescriptor(type, &d), "a descriptor");
	if (d)
		g->p->descriptors[g->p->n++] = d;
	return d;
}

static void set(struct builder *g, desc d, cudnnBackendAttributeName_t a, cudnnBackendAttributeType_t type, int64_t n,
				const void *value) {
	if (!g->failed)
		note(g, g->api->cudnnBackendSetAttribute(d, a, type, n, value), "an attribute");
}

static void set_desc(struct builder *g, desc d, cudnnBackendAttributeName_t a, desc value) {
	set(g, d, a, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(struct builder *g, desc d, const char *what) {
	if (!g->failed)
		note(g, g->api->cudnnBackendFinalize(d), what);
}

static void add_op(struct builder *g, desc op, const char *what) {
	finalize(g, op, what);
	if (g->n_ops == OPS_MAX)
		g->failed = "the number of operations";
	else
		g->ops[g->n_ops++] = op;
}

/* ---- tensors ---- */

struct layout {
	int64_t dims[DIMS], strides[DIMS];
};

static desc tensor(struct builder *g, int64_t id, cudnnDataType_t type, struct layout l) {
	const bool yes = true, is_virtual = id == 0, by_value = id >= SDPA_SCALE;
	const int64_t align = ALIGN_BYTES;
	desc t = new_desc(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	if (is_virtual)
		id = FIRST_VIRTUAL + g->n_virtual++;
	set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMS, l.dims);
	set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMS, l.strides);
	set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (is_virtual)
		set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
	if (by_value)
		set(g, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
	finalize(g, t, "a tensor");
	return t;
}

static desc scalar(struct builder *g, enum sdpa_tensor id) {
	return tensor(g, id, CUDNN_DATA_FLOAT, (struct layout){{1, 1, 1, 1}, {1, 1, 1, 1}});
}

/* Makes a tensor (B, heads, T, T), never in memory. */
static desc scores(struct builder *g, cudnnDataType_t type) {
	return tensor(g, 0, type, (struct layout){{g->b, g->h, g->t, g->t}, {g->h * g->t * g->t, g->t * g->t, g->t, 1}});
}

static desc scores_transposed(struct builder *g) {
	return tensor(g, 0, CUDNN_DATA_BFLOAT16,
				  (struct layout){{g->b, g->h, g->t, g->t}, {g->h * g->t * g->t, g->t * g->t, 1, g->t}});
}

/* Makes a tensor (B, heads, T, 1). */
static desc rows(struct builder *g, int64_t id) {
	return tensor(g, id, CUDNN_DATA_FLOAT, (struct layout){{g->b, g->h, g->t, 1}, {g->h * g->t, g->t, 1, 1}});
}

/* Makes a part of packed projections (B*T, (heads + 2 kv_heads) * head_dim): (B, n, T, head_dim),
 * or with the last two exchanged. */
static desc packed(struct builder *g, int64_t id, int64_t n, bool transposed) {
	int64_t row = (g->h + 2 * g->hk) * g->d;
	struct layout l = {{g->b, n, g->t, g->d}, {g->t * row, g->d, row, 1}};
	if (transposed)
		l = (struct layout){{g->b, n, g->d, g->t}, {g->t * row, g->d, 1, row}};
	return tensor(g, id, CUDNN_DATA_BFLOAT16, l);
}

/* Makes a tensor (B, heads, T, head_dim) laid out as the output: (B*T, heads * head_dim). */
static desc output(struct builder *g, int64_t id, cudnnDataType_t type) {
	int64_t row = g->h * g->d;
	return tensor(g, id, type, (struct layout){{g->b, g->h, g->t, g->d}, {g->t * row, g->d, row, 1}});
}

/* Makes a tensor (B, heads, T, head_dim), dense in this order. */
static desc dense(struct builder *g, int64_t id, cudnnDataType_t type) {
	return tensor(g, id, type, (struct layout){{g->b, g->h, g->t, g->d}, {g->h * g->t * g->d, g->t * g->d, g->d, 1}});
}

/* ---- operations ---- */

struct pointwise {
	cudnnPointwiseMode_t mode;
	desc x, b, t, y;           /* b, t: NULL where the mode has none */
	cudnnDataType_t precision; /* of the arithmetic */
	int64_t axis;              /* of CUDNN_POINTWISE_GEN_INDEX */
};

static void add_pointwise(struct builder *g, struct pointwise p) {
	desc how = new_desc(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p.mode);
	set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p.precision);
	if (p.mode == CUDNN_POINTWISE_GEN_INDEX)
		set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p.axis);
	finalize(g, how, "a pointwise descriptor");
	desc op = new_desc(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p.x);
	if (p.b)
		set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p.b);
	if (p.t)
		set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p.t);
	set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p.y);
	add_op(g, op, "a pointwise operation");
}

/* Adds y = x (mode) b in fp32. */
static desc apply(struct builder *g, cudnnPointwiseMode_t mode, desc x, desc b, desc y) {
	add_pointwise(g, (struct pointwise){.mode = mode, .x = x, .b = b, .y = y, .precision = CUDNN_DATA_FLOAT});
	return y;
}

static desc multiply(struct builder *g, desc a, desc b, desc c) {
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	desc how = new_desc(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	finalize(g, how, "a product's descriptor");
	desc op = new_desc(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	set_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	add_op(g, op, "a product");
	return c;
}

static desc reduce(struct builder *g, cudnnReduceTensorOp_t kind, desc x, desc y) {
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	desc how = new_desc(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
	finalize(g, how, "a reduction's descriptor");
	desc op = new_desc(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	set_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	add_op(g, op, "a reduction");
	return y;
}

static desc reshape(struct builder *g, desc x, desc y) {
	desc op = new_desc(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
	set_desc(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	set_desc(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_op(g, op, "a reshape");
	return y;
}

/* Returns s where the column is not behind the row, else the value of SDPA_MASKED. */
static desc causal(struct builder *g, desc s) {
	desc row = scores(g, CUDNN_DATA_INT32), column = scores(g, CUDNN_DATA_INT32);
	desc keep = scores(g, CUDNN_DATA_BOOLEAN), out = scores(g, CUDNN_DATA_FLOAT);
	add_pointwise(g, (struct pointwise){CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, row, CUDNN_DATA_FLOAT, 2});
	add_pointwise(g, (struct pointwise){CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, column, CUDNN_DATA_FLOAT, 3});
	add_pointwise(g, (struct pointwise){CUDNN_POINTWISE_CMP_GE, row, column, NULL, keep, CUDNN_DATA_BOOLEAN, 0});
	add_pointwise(g, (struct pointwise){CUDNN_POINTWISE_BINARY_SELECT, s, scalar(g, SDPA_MASKED), keep, out,
										CUDNN_DATA_FLOAT, 0});
	return out;
}

/* ---- the two graphs ---- */

/* Builds out = softmax(scale q k^T) v; lse = max + log(sum). */
static void forward(struct builder *g) {
	const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
	desc q = packed(g, SDPA_Q, g->h, false), k = packed(g, SDPA_K, g->hk, true), v = packed(g, SDPA_V, g->hk, false);
	desc s = multiply(g, q, k, scores(g, f32));
	s = causal(g, apply(g, CUDNN_POINTWISE_MUL, s, scalar(g, SDPA_SCALE), scores(g, f32)));
	desc most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, rows(g, 0));
	desc e = apply(g, CUDNN_POINTWISE_SUB, s, most, scores(g, f32));
	e = apply(g, CUDNN_POINTWISE_EXP, e, NULL, scores(g, f32));
	desc sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, rows(g, 0));
	desc log = apply(g, CUDNN_POINTWISE_LOG, sum, NULL, rows(g, 0));
	(void)apply(g, CUDNN_POINTWISE_ADD, most, log, rows(g, SDPA_LSE));
	desc p = apply(g, CUDNN_POINTWISE_DIV, e, sum, scores(g, CUDNN_DATA_BFLOAT16));
	(void)multiply(g, p, v, output(g, SDPA_OUT, CUDNN_DATA_BFLOAT16));
}

/* Builds the gradient of k or v, of query heads; summed over those that share one. */
static void head_gradient(struct builder *g, desc weights_transposed, desc of, enum sdpa_tensor id) {
	desc out = packed(g, id, g->hk, false);
	if (g->h == g->hk)
		(void)multiply(g, weights_transposed, of, out);
	else
		(void)reduce(g, CUDNN_REDUCE_TENSOR_ADD, multiply(g, weights_transposed, of, dense(g, 0, CUDNN_DATA_BFLOAT16)),
					 out);
}

/* Builds p from lse; dv = p^T dout; ds = p (dout v^T - sum(dout out)) scale; dq = ds k; dk = ds^T
 * q. */
static void backward(struct builder *g) {
	const cudnnDataType_t f32 = CUDNN_DATA_FLOAT, bf16 = CUDNN_DATA_BFLOAT16;
	desc q = packed(g, SDPA_Q, g->h, false), k = packed(g, SDPA_K, g->hk, true), v = packed(g, SDPA_V, g->hk, true);
	desc out = output(g, SDPA_OUT, bf16), dout = output(g, SDPA_DOUT, bf16), lse = rows(g, SDPA_LSE);
	desc dot = apply(g, CUDNN_POINTWISE_MUL, dout, out, output(g, 0, f32));
	dot = reduce(g, CUDNN_REDUCE_TENSOR_ADD, dot, rows(g, 0));
	dot = apply(g, CUDNN_POINTWISE_MUL, dot, scalar(g, SDPA_ONE), rows(g, SDPA_ROW_SUM));
	desc scale = scalar(g, SDPA_SCALE);
	desc s = multiply(g, q, k, scores(g, f32));
	s = apply(g, CUDNN_POINTWISE_MUL, s, scale, scores(g, f32));
	s = causal(g, apply(g, CUDNN_POINTWISE_SUB, s, lse, scores(g, f32)));
	desc p = apply(g, CUDNN_POINTWISE_EXP, s, NULL, scores(g, f32));
	head_gradient(g, reshape(g, p, scores_transposed(g)), dout, SDPA_DV);
	desc dp = multiply(g, dout, v, scores(g, f32));
	dp = apply(g, CUDNN_POINTWISE_SUB, dp, dot, scores(g, f32));
	dp = apply(g, CUDNN_POINTWISE_MUL, dp, p, scores(g, f32));
	desc ds = apply(g, CUDNN_POINTWISE_MUL, dp, scale, scores(g, bf16));
	head_gradient(g, reshape(g, ds, scores_transposed(g)), q, SDPA_DK);
	desc sum = multiply(g, ds, reshape(g, k, packed(g, 0, g->hk, false)), dense(g, SDPA_DQ_SUM, f32));
	(void)apply(g, CUDNN_POINTWISE_IDENTITY, sum, NULL, packed(g, SDPA_DQ, g->h, false));
}

/* ---- plans ---- */

static desc graph_of(struct builder *g) {
	desc graph = new_desc(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->ops);
	if (g->handle)
		set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
	finalize(g, graph, "the graph");
	return graph;
}

static int engines_for(struct builder *g, desc graph, desc configs[CONFIGS_MAX]) {
	const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	int64_t found = 0;
	desc engines = new_desc(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	set_desc(g, engines, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	set(g, engines, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (g->device)
		set_desc(g, engines, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g->device);
	finalize(g, engines, "the choice of engines");
	for (int i = 0; i < CONFIGS_MAX; i++)
		configs[i] = new_desc(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (!g->failed)
		note(g,
			 g->api->cudnnBackendGetAttribute(engines, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
											  CONFIGS_MAX, &found, configs),
			 "the engines");
	return g->failed ? 0 : (int)(found < CONFIGS_MAX ? found : CONFIGS_MAX);
}

static bool plan_with(struct builder *g, desc config) {
	int64_t count;
	desc plan = new_desc(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set_desc(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	if (g->handle)
		set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
	if (g->device)
		set_desc(g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, g->device);
	if (g->failed || g->api->cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
		return false;
	g->p->plan = plan;
	return g->api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
											&g->p->workspace_bytes) == CUDNN_STATUS_SUCCESS;
}

static void describe_device(struct builder *g, const char *json) {
	g->device = new_desc(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	set(g, g->device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
	finalize(g, g->device, "the device's description");
}

bool sdpa_plan_make(const struct cudnn_api *api, cudnnHandle_t handle, const char *device_properties,
					struct attention_shape s, bool is_backward, struct sdpa_plan *out, const char **why) {
	struct builder g = {
		.api = api, .handle = handle, .p = out, .b = s.b, .h = s.heads, .hk = s.kv_heads, .t = s.t, .d = s.head_dim};
	desc configs[CONFIGS_MAX];
	bool made = false;
	*out = (struct sdpa_plan){.n = 0};
	if (!handle)
		describe_device(&g, device_properties);
	if (is_backward)
		backward(&g);
	else
		forward(&g);
	int n = engines_for(&g, graph_of(&g), configs);
	for (int i = 0; i < n && !made; i++)
		made = plan_with(&g, configs[i]);
	*why = g.failed ? g.failed : "every engine";
	if (!made)
		sdpa_plan_release(api, out);
	return made;
}

void sdpa_plan_release(const struct cudnn_api *api, struct sdpa_plan *p) {
	for (int i = p->n - 1; i >= 0; i--)
		(void)api->cudnnBackendDestroyDescriptor(p->descriptors[i]);
	*p = (struct sdpa_plan){.n = 0};
}
