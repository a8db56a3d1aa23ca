/* outer_device.h: the outer gradient and step computed where the replica's weights are: on a GPU
 * that holds them if the plugin can (codec int8 or int16; nesterov, sgd, average), else on the host
 * by outer/. Both give the same bytes and bits, so a run's workers may differ in it. */
#ifndef RV_TRAIN_OUTER_DEVICE_H
#define RV_TRAIN_OUTER_DEVICE_H

#include "outer/global.h"
#include "train/replica.h"

/* The shared vectors page-locked for a device. Zero-initialised by the caller. */
struct outer_device {
	struct backend *be;
	float *pinned[1 + GLOBAL_MAX_STATES];
};

/* Reserves, before the first step, the device memory of the functions below. If the device refuses,
 * or lacks this arithmetic, the host does it. */
void outer_device_reserve(struct replica *r, const struct global_state *g);
/* Encodes the replica's weights like global_encode_delta(), with its faults and texts. */
enum rv_err outer_device_encode(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
								struct rv_errtext *et);
/* Applies the means like global_apply(). The replica, unchanged, determines the device. */
enum rv_err outer_device_apply(struct outer_device *d, struct replica *r, struct global_state *g,
							   const uint8_t *reduced, const struct rv_hash *digest, struct rv_errtext *et);
/* Unlocks the vectors; called before the shared state's memory is freed or replaced, and before the
 * backend closes. */
void outer_device_unpin(struct outer_device *d);

#endif
