/* sdpa_faults.h: documented faults of cuDNN's versions with attention, as one table
 * (sdpa_faults.c). */
#ifndef RV_CUDA_SDPA_FAULTS_H
#define RV_CUDA_SDPA_FAULTS_H

#include "kernels/backend.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns cudnnGetVersion's number of a version. */
#define SDPA_VERSION(major, minor, patch) ((uint64_t)(major)*10000 + (minor)*100 + (patch))

/* The version, device and shape to look up. */
struct sdpa_question {
	uint64_t version; /* of cuDNN, as cudnnGetVersion returns it */
	int sm;           /* compute capability of the device, 10 major + minor: 90 of an H100 */
	bool backward;
	struct attention_shape shape;
};

/* Returns why cuDNN must not be used, one phrase in static memory, or NULL: no fault is known. */
const char *sdpa_fault(const struct sdpa_question *q);

/* Returns whether the caller must zero the fp32 sums of dq before each backward pass. cuDNN does it
 * itself from 9.6.0 on (cudnn-frontend 1.23, node/scaled_dot_product_flash_attention.h,
 * collect_tensors_in_workspace_node). */
bool sdpa_wants_zeroed_sums(uint64_t version);

#endif
