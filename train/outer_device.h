/* outer_device.h: the outer gradient and the outer step where the replica's weights are: on a GPU when they lie there
 * and the plugin can (codec int8 or int16; nesterov, sgd, average), else on the host by outer/. The bytes and bits are the same
 * either way, so a run's workers may differ in it. */
#ifndef RV_TRAIN_OUTER_DEVICE_H
#define RV_TRAIN_OUTER_DEVICE_H

#include "outer/global.h"
#include "train/replica.h"

/* The shared vectors that are page-locked for a device. Zero at the start. */
struct outer_device {
	struct backend *be;
	float *pinned[1 + GLOBAL_MAX_STATES];
};

/* Takes the device memory that the two below need, before the first step, so that no later one lacks it. Where the
 * device refuses it, or does not do this arithmetic, the host does. */
void outer_device_reserve(struct replica *r, const struct global_state *g);
/* As global_encode_delta() of the replica's weights: its faults, its text. */
enum rv_err outer_device_encode(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
								struct rv_errtext *et);
/* As global_apply(). The replica's weights stay as they are: it says which device works. */
enum rv_err outer_device_apply(struct outer_device *d, struct replica *r, struct global_state *g,
							   const uint8_t *reduced, const struct rv_hash *digest, struct rv_errtext *et);
/* Before the shared state's memory is freed or replaced, and before the backend closes. */
void outer_device_unpin(struct outer_device *d);

#endif
