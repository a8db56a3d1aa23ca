/* device_set.h: the devices that one replica computes on, opened. One mostly; several are kept equal by the replica. */
#ifndef RV_TRAIN_DEVICE_SET_H
#define RV_TRAIN_DEVICE_SET_H

#include "kernels/device.h"

struct device_set {
	struct device_choice choice;
	struct backend *be[DEVICE_MAX]; /* choice.n of them */
	char description[256];          /* one line for people and records */
};

/* Opens what `device` says (kernels/device.h). What device_choose and backend_open refuse; *s is then empty. */
enum rv_err device_set_open(struct device_set *s, const char *device, const struct backend_options *options,
							struct rv_errtext *et);
/* The same for a choice that has been made. What backend_open refuses. */
enum rv_err device_set_open_choice(struct device_set *s, const struct device_choice *choice,
								   const struct backend_options *options, struct rv_errtext *et);
void device_set_close(struct device_set *s); /* an empty one is fine */

#endif
