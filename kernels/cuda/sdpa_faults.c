/* sdpa_faults.c: the table; see sdpa_faults.h.
 *
 * Sources, all NVIDIA's: [F] cudnn-frontend 1.23, node/scaled_dot_product_flash_attention.h
 * (backward) and node/sdpa_support_surface.h (forward); [T] TransformerEngine, fused_attn.cpp,
 * nvte_get_fused_attn_backend; [R] cuDNN's release notes, known issues of 9.18.1; [N]
 * cudnn-frontend's release notes of 1.16.0; [P] PyTorch, sdp_utils.cpp, check_cudnn_tensor_shapes.
 *
 * Not in the table, for our graphs (bf16, causal from the top left, no padding, bias, dropout or
 * sliding window, at most 128 channels a head) do not meet them: 9.14.0 with a sliding window; 9.11
 * to 9.13 with dropout; ragged sequences; fp8; more than 128 channels a head; sm_90's NaN in dq for
 * T % 128 == 64 without a causal mask (PyTorch issue 196678 finds the causal one clean;
 * cudnn-frontend pull request 628 says why: only columns beyond T are not masked, and the causal
 * mask covers those). */
#include "kernels/cuda/sdpa_faults.h"

#include <stddef.h>

enum { FORWARD = 1, BACKWARD = 2, BOTH = FORWARD | BACKWARD };
enum { BLACKWELL_SM = 100, TILE_ROWS = 128, GRID_MAX = 65535 };

static bool any(struct attention_shape s) {
	(void)s;
	return true;
}

static bool one_token(struct attention_shape s) {
	return s.t < 2;
}

static bool partial_tile(struct attention_shape s) {
	return s.t % TILE_ROWS != 0;
}

static bool many_sequences(struct attention_shape s) {
	return s.b > GRID_MAX || s.heads > GRID_MAX;
}

#define VERSION(major, minor, patch) SDPA_VERSION(major, minor, patch)
#define EVERY_VERSION                0, UINT64_MAX
#define EVERY_DEVICE                 0

static const struct fault {
	uint64_t first, last; /* versions, both included */
	int directions, least_sm;
	bool (*meets)(struct attention_shape s);
	const char *what;
} faults[] = {
	/* [R] of backward; [F] refuses s_q = s_kv = 1 backward in every version, and forward with a
	 * mask up to 9.9. */
	{EVERY_VERSION, BOTH, EVERY_DEVICE, one_token, "it does not support a single token"},
	/* [F] and [T]: "not supported on cuDNN 9.10.0/9.10.1 due to known bugs", in both directions. */
	{VERSION(9, 10, 0), VERSION(9, 10, 1), BOTH, EVERY_DEVICE, any,
	 "9.10.0 and 9.10.1 are broken; use 9.10.2 or newer"},
	/* [N]: invalid memory accesses, mended in 9.15.1; [F] adds a padding mask up to 9.15.0; NaN:
	 * its issue 160. */
	{0, VERSION(9, 15, 0), BACKWARD, EVERY_DEVICE, partial_tile,
	 "before 9.15.1 it accesses invalid memory unless T is a multiple of 128"},
	/* [T]: sm_100 and newer from 9.7 on. */
	{0, VERSION(9, 6, 99), BOTH, BLACKWELL_SM, any, "before 9.7 it does not support this GPU"},
	/* [P] */
	{EVERY_VERSION, BOTH, EVERY_DEVICE, many_sequences, "it takes at most 65535 sequences and heads"},
};

const char *sdpa_fault(const struct sdpa_question *q) {
	int direction = q->backward ? BACKWARD : FORWARD;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		const struct fault *f = &faults[i];
		if (q->version >= f->first && q->version <= f->last && q->sm >= f->least_sm && (f->directions & direction) &&
			f->meets(q->shape))
			return f->what;
	}
	return NULL;
}

bool sdpa_wants_zeroed_sums(uint64_t version) {
	return version < VERSION(9, 6, 0);
}
