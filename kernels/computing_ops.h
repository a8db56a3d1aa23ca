/* computing_ops.h: for backends: the operations that compute, by name. Their types are declared
 * once, as the fields of struct backend_ops; a backend `x` declares its functions x_rope, ... and
 * fills its table from this list. */
#ifndef RV_KERNELS_COMPUTING_OPS_H
#define RV_KERNELS_COMPUTING_OPS_H

#include "kernels/backend.h"

#define COMPUTING_OPS(X, backend)                                                                                      \
	X(backend, embed_forward)                                                                                          \
	X(backend, embed_backward)                                                                                         \
	X(backend, layernorm_forward)                                                                                      \
	X(backend, residual_layernorm_forward)                                                                             \
	X(backend, layernorm_backward)                                                                                     \
	X(backend, rmsnorm_forward)                                                                                        \
	X(backend, residual_rmsnorm_forward)                                                                               \
	X(backend, rmsnorm_backward)                                                                                       \
	X(backend, rope)                                                                                                   \
	X(backend, swiglu_forward)                                                                                         \
	X(backend, swiglu_backward)                                                                                        \
	X(backend, gelu_forward)                                                                                           \
	X(backend, linear_forward)                                                                                         \
	X(backend, linear_backward_input)                                                                                  \
	X(backend, linear_backward_weight)                                                                                 \
	X(backend, attention_forward)                                                                                      \
	X(backend, attention_backward)                                                                                     \
	X(backend, attention_cached)                                                                                       \
	X(backend, classifier)                                                                                             \
	X(backend, logits)                                                                                                 \
	X(backend, sum_squares)                                                                                            \
	X(backend, adamw)                                                                                                  \
	X(backend, adamw8)                                                                                                 \
	X(backend, add_scaled)                                                                                             \
	X(backend, product)

/* Declares `void cpu_rope(struct backend *be, ...);` with the field's parameters. */
#define OP_PROTOTYPE(backend, op) __typeof__(*((struct backend_ops *)NULL)->op) backend##_##op;
/* Initializes a field of the table: `.rope = cpu_rope,` */
#define OP_ENTRY(backend, op) .op = backend##_##op,

#endif
