/* stand_in.c: descriptors and their attributes, plans and execution; see stand_in.h. */
#include "tests/kernels/cudnn/stand_in.h"

#include "kernels/cuda/sdpa_graph.h"
#include "kernels/cuda/vendor/vendor.h"
#include "tests/kernels/cudnn/stand_in_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_DIM_MULTIPLE = 8, FIRST_VERSION_THAT_ZEROES = 90600 };

struct stand_in stand_in = {.version = 91900};

static struct {
	cudaStream_t stream;
	char last_error[160];
	int calls; /* of the kind that fails */
} state;

void stand_in_reset(size_t version) {
	int descriptors = stand_in.descriptors;
	stand_in = (struct stand_in){.version = version, .workspace_bytes = 1 << 10, .descriptors = descriptors};
	state.calls = 0;
	state.last_error[0] = '\0';
}

/* A call that the documentation forbids. */
static cudnnStatus_t misuse(const char *what, int name) {
	(void)snprintf(state.last_error, sizeof state.last_error, "Error: %s (%d)\n", what, name);
	if (!*stand_in.misuse)
		memcpy(stand_in.misuse, state.last_error, sizeof stand_in.misuse);
	return CUDNN_STATUS_BAD_PARAM;
}

static bool fails(enum stand_in_failure kind) {
	if (stand_in.fails != kind || state.calls++ < stand_in.fails_after)
		return false;
	stand_in.failures++;
	(void)snprintf(state.last_error, sizeof state.last_error, "Error: the stand-in was asked to fail here\n");
	return true;
}

/* ---- attributes ---- */

/* Attribute `name` of descriptors of type `of`: the type and number of its values, where they go,
 * and where their number. */
static const struct attribute {
	int name, of, type;
	size_t value_bytes;
	int64_t most;
	size_t at, count_at;
} attributes[] = {
#define ONE(attr, of_, type_, field)                                                                                   \
	{                                                                                                                  \
		CUDNN_ATTR_##attr, CUDNN_BACKEND_##of_, CUDNN_TYPE_##type_, sizeof(((struct desc *)0)->field), 1,              \
			offsetof(struct desc, field), 0                                                                            \
	}
#define MANY(attr, of_, type_, field, count)                                                                           \
	{                                                                                                                  \
		CUDNN_ATTR_##attr, CUDNN_BACKEND_##of_, CUDNN_TYPE_##type_, sizeof(((struct desc *)0)->field[0]),              \
			sizeof(((struct desc *)0)->field) / sizeof(((struct desc *)0)->field[0]), offsetof(struct desc, field),    \
			count                                                                                                      \
	}
#define COUNT_IN(field) offsetof(struct desc, field)
	ONE(TENSOR_DATA_TYPE, TENSOR_DESCRIPTOR, DATA_TYPE, data_type),
	MANY(TENSOR_DIMENSIONS, TENSOR_DESCRIPTOR, INT64, dims, 0),
	MANY(TENSOR_STRIDES, TENSOR_DESCRIPTOR, INT64, strides, 0),
	ONE(TENSOR_UNIQUE_ID, TENSOR_DESCRIPTOR, INT64, id),
	ONE(TENSOR_BYTE_ALIGNMENT, TENSOR_DESCRIPTOR, INT64, align),
	ONE(TENSOR_IS_VIRTUAL, TENSOR_DESCRIPTOR, BOOLEAN, is_virtual),
	ONE(TENSOR_IS_BY_VALUE, TENSOR_DESCRIPTOR, BOOLEAN, by_value),
	ONE(POINTWISE_MODE, POINTWISE_DESCRIPTOR, POINTWISE_MODE, mode),
	ONE(POINTWISE_MATH_PREC, POINTWISE_DESCRIPTOR, DATA_TYPE, precision),
	ONE(POINTWISE_AXIS, POINTWISE_DESCRIPTOR, INT64, axis),
	ONE(OPERATION_POINTWISE_PW_DESCRIPTOR, OPERATION_POINTWISE_DESCRIPTOR, BACKEND_DESCRIPTOR, how),
	ONE(OPERATION_POINTWISE_XDESC, OPERATION_POINTWISE_DESCRIPTOR, BACKEND_DESCRIPTOR, x),
	ONE(OPERATION_POINTWISE_BDESC, OPERATION_POINTWISE_DESCRIPTOR, BACKEND_DESCRIPTOR, b),
	ONE(OPERATION_POINTWISE_TDESC, OPERATION_POINTWISE_DESCRIPTOR, BACKEND_DESCRIPTOR, t),
	ONE(OPERATION_POINTWISE_YDESC, OPERATION_POINTWISE_DESCRIPTOR, BACKEND_DESCRIPTOR, y),
	ONE(MATMUL_COMP_TYPE, MATMUL_DESCRIPTOR, DATA_TYPE, precision),
	ONE(OPERATION_MATMUL_DESC, OPERATION_MATMUL_DESCRIPTOR, BACKEND_DESCRIPTOR, how),
	ONE(OPERATION_MATMUL_ADESC, OPERATION_MATMUL_DESCRIPTOR, BACKEND_DESCRIPTOR, x),
	ONE(OPERATION_MATMUL_BDESC, OPERATION_MATMUL_DESCRIPTOR, BACKEND_DESCRIPTOR, b),
	ONE(OPERATION_MATMUL_CDESC, OPERATION_MATMUL_DESCRIPTOR, BACKEND_DESCRIPTOR, y),
	ONE(REDUCTION_COMP_TYPE, REDUCTION_DESCRIPTOR, DATA_TYPE, precision),
	ONE(REDUCTION_OPERATOR, REDUCTION_DESCRIPTOR, REDUCTION_OPERATOR_TYPE, reduction),
	ONE(OPERATION_REDUCTION_DESC, OPERATION_REDUCTION_DESCRIPTOR, BACKEND_DESCRIPTOR, how),
	ONE(OPERATION_REDUCTION_XDESC, OPERATION_REDUCTION_DESCRIPTOR, BACKEND_DESCRIPTOR, x),
	ONE(OPERATION_REDUCTION_YDESC, OPERATION_REDUCTION_DESCRIPTOR, BACKEND_DESCRIPTOR, y),
	ONE(OPERATION_RESHAPE_XDESC, OPERATION_RESHAPE_DESCRIPTOR, BACKEND_DESCRIPTOR, x),
	ONE(OPERATION_RESHAPE_YDESC, OPERATION_RESHAPE_DESCRIPTOR, BACKEND_DESCRIPTOR, y),
	MANY(OPERATIONGRAPH_OPS, OPERATIONGRAPH_DESCRIPTOR, BACKEND_DESCRIPTOR, ops, COUNT_IN(n_ops)),
	ONE(OPERATIONGRAPH_HANDLE, OPERATIONGRAPH_DESCRIPTOR, HANDLE, handle),
	ONE(ENGINEHEUR_OPERATION_GRAPH, ENGINEHEUR_DESCRIPTOR, BACKEND_DESCRIPTOR, graph),
	ONE(ENGINEHEUR_MODE, ENGINEHEUR_DESCRIPTOR, HEUR_MODE, heuristic),
	ONE(EXECUTION_PLAN_ENGINE_CONFIG, EXECUTION_PLAN_DESCRIPTOR, BACKEND_DESCRIPTOR, config),
	ONE(EXECUTION_PLAN_HANDLE, EXECUTION_PLAN_DESCRIPTOR, HANDLE, handle),
	MANY(VARIANT_PACK_UNIQUE_IDS, VARIANT_PACK_DESCRIPTOR, INT64, ids, COUNT_IN(n_ids)),
	MANY(VARIANT_PACK_DATA_POINTERS, VARIANT_PACK_DESCRIPTOR, VOID_PTR, pointers, COUNT_IN(n_pointers)),
	ONE(VARIANT_PACK_WORKSPACE, VARIANT_PACK_DESCRIPTOR, VOID_PTR, workspace),
};

static const struct attribute *find_attribute(const struct desc *d, int name) {
	for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
		if (attributes[i].name == name && attributes[i].of == d->type)
			return &attributes[i];
	return NULL;
}

static cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
								   cudnnBackendAttributeType_t type, int64_t n, const void *values) {
	struct desc *d = descriptor;
	const struct attribute *a = find_attribute(d, name);
	if (!a)
		return misuse("the descriptor has no such attribute", name);
	if (d->finalized)
		return misuse("the descriptor is finalized", name);
	if (type != a->type || n < 1 || n > a->most || !values)
		return misuse("wrong type or number of values", name);
	if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS && fails(STAND_IN_POINTERS))
		return CUDNN_STATUS_BAD_PARAM;
	memcpy((char *)d + a->at, values, (size_t)n * a->value_bytes);
	if (a->count_at)
		memcpy((char *)d + a->count_at, &n, sizeof n);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
								   cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *values) {
	struct desc *d = descriptor, **configs = values;
	if (!d->finalized)
		return misuse("the descriptor is not finalized", name);
	*n = 1;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && room >= 1) {
		configs[0]->graph = d->graph;
		configs[0]->finalized = true;
		return CUDNN_STATUS_SUCCESS;
	}
	if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && room == 1) {
		memcpy(values, &stand_in.workspace_bytes, sizeof stand_in.workspace_bytes);
		return CUDNN_STATUS_SUCCESS;
	}
	return misuse("there is no such attribute to ask for", name);
}

/* ---- descriptors ---- */

static cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
	if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && fails(STAND_IN_PACK))
		return CUDNN_STATUS_EXECUTION_FAILED;
	struct desc *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->type = type;
	*out = d;
	stand_in.descriptors++;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t d) {
	free(d);
	stand_in.descriptors--;
	return CUDNN_STATUS_SUCCESS;
}

static const char *tensor_is_wrong(const struct desc *d) {
	for (int i = 0; i < DIMS; i++)
		if (d->dims[i] < 1 || d->strides[i] < 1)
			return "a tensor's dims and strides are positive";
	if (d->id < 1 || d->align < 1)
		return "a tensor has an id and an alignment";
	return NULL;
}

static const char *is_wrong(const struct desc *d) {
	switch (d->type) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
		return tensor_is_wrong(d);
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		return d->how && d->x && d->b && d->y ? NULL : "a product has a descriptor and three tensors";
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
		return d->how && d->x && d->y ? NULL : "an operation has a descriptor, x and y";
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return d->n_ops > 0 && d->handle ? NULL : "a graph has operations and a handle";
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		return d->graph && d->heuristic == CUDNN_HEUR_MODE_A ? NULL : "heuristics have a graph and a mode";
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
		return d->config && d->config->graph && d->handle ? NULL : "a plan has a configuration and a handle";
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		return d->n_ids == d->n_pointers && d->n_ids > 0 ? NULL : "as many ids as pointers";
	default:
		return NULL;
	}
}

/* Whether an engine takes the graph: the head size is the last dim of q. */
static bool has_engine(const struct desc *graph) {
	return graph->ops[0]->x && stand_in.fails != STAND_IN_NO_PLAN &&
		   graph->ops[0]->x->dims[DIMS - 1] % HEAD_DIM_MULTIPLE == 0;
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
	struct desc *d = descriptor;
	const char *wrong = is_wrong(d);
	if (wrong)
		return misuse(wrong, d->type);
	if (d->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && fails(STAND_IN_FINALIZE))
		return CUDNN_STATUS_BAD_PARAM;
	if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
		if (!has_engine(d->config->graph)) {
			(void)snprintf(state.last_error, sizeof state.last_error, "Error: no engine supports this\n");
			return CUDNN_STATUS_NOT_SUPPORTED;
		}
		stand_in.plans++;
	}
	d->finalized = true;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---- */

static const struct desc *tensor_of(const struct desc *graph, int64_t id) {
	for (int64_t i = 0; i < graph->n_ops; i++) {
		const struct desc *op = graph->ops[i], *all[] = {op->x, op->b, op->t, op->y};
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			if (all[k] && all[k]->id == id)
				return all[k];
	}
	return NULL;
}

/* Copies the pack: pointers of device memory, and the values that by-value tensors have now. */
static cudnnStatus_t bind_pack(struct execution *e, const struct desc *pack) {
	for (int64_t i = 0; i < pack->n_ids; i++) {
		const struct desc *t = tensor_of(e->graph, pack->ids[i]);
		if (!t || t->is_virtual)
			return misuse("no tensor of the graph has this id", (int)pack->ids[i]);
		e->ids[i] = pack->ids[i];
		e->pointers[i] = pack->pointers[i];
		if (t->by_value)
			memcpy(&e->scalars[i], pack->pointers[i], sizeof(float));
		else if ((uintptr_t)pack->pointers[i] % (uintptr_t)t->align != 0)
			return misuse("a pointer is not aligned as its tensor says", (int)t->id);
	}
	e->n = pack->n_ids;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_, cudnnBackendDescriptor_t pack_) {
	const struct desc *plan = plan_, *pack = pack_;
	struct execution e = {.graph = plan->config->graph,
						  .adds_to_sums = stand_in.version < FIRST_VERSION_THAT_ZEROES,
						  .spoiled = stand_in.spoiled,
						  .spoiled_from = stand_in.spoiled_from,
						  .spoiled_by = stand_in.spoiled_by};
	(void)handle;
	if (!plan->finalized || !pack->finalized)
		return misuse("a plan or a pack is not finalized", 0);
	if (stand_in.workspace_bytes > 0 && !pack->workspace)
		return misuse("the plan needs workspace", 0);
	cudnnStatus_t status = bind_pack(&e, pack);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (fails(STAND_IN_EXECUTE))
		return CUDNN_STATUS_EXECUTION_FAILED;
	stand_in.executions++;
	emu_enqueue(state.stream, stand_in_compute, &e, sizeof e);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the library ---- */

static size_t get_version(void) {
	return stand_in.version;
}

static size_t get_cudart_version(void) {
	return 13000;
}

static const char *error_string(cudnnStatus_t status) {
	return status == CUDNN_STATUS_SUCCESS            ? "CUDNN_STATUS_SUCCESS"
		   : status == CUDNN_STATUS_BAD_PARAM        ? "CUDNN_STATUS_BAD_PARAM"
		   : status == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
													 : "CUDNN_STATUS_NOT_SUPPORTED";
}

static void last_error_string(char *text, size_t bytes) {
	(void)snprintf(text, bytes, "%s", state.last_error);
	state.last_error[0] = '\0';
}

static int handle_of_all;

static cudnnStatus_t create(cudnnHandle_t *handle) {
	*handle = (cudnnHandle_t)(void *)&handle_of_all;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnHandle_t handle) {
	(void)handle;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
	(void)handle;
	if (fails(STAND_IN_STREAM))
		return CUDNN_STATUS_BAD_PARAM;
	state.stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

static const struct cudnn_api api = {
	.cudnnGetVersion = get_version,
	.cudnnGetCudartVersion = get_cudart_version,
	.cudnnGetErrorString = error_string,
	.cudnnGetLastErrorString = last_error_string,
	.cudnnCreate = create,
	.cudnnDestroy = destroy,
	.cudnnSetStream = set_stream,
	.cudnnBackendCreateDescriptor = create_descriptor,
	.cudnnBackendDestroyDescriptor = destroy_descriptor,
	.cudnnBackendSetAttribute = set_attribute,
	.cudnnBackendGetAttribute = get_attribute,
	.cudnnBackendFinalize = finalize,
	.cudnnBackendExecute = execute,
};

const struct cudnn_api *vendor_cudnn(struct rv_errtext *et) {
	if (!stand_in.missing)
		return &api;
	(void)rv_fail(et, RV_E_NOTFOUND, "the stand-in is missing");
	return NULL;
}

const struct cublaslt_api *vendor_cublaslt(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "there is only a stand-in for cuDNN");
	return NULL;
}

const struct nccl_api *vendor_nccl(struct rv_errtext *et) {
	(void)rv_fail(et, RV_E_NOTFOUND, "there is only a stand-in for cuDNN");
	return NULL;
}
