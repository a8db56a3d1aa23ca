/* device_set.h: the open devices of one replica. Mostly one; the replica keeps several equal. */
#ifndef RV_TRAIN_DEVICE_SET_H
#define RV_TRAIN_DEVICE_SET_H

#include "kernels/device.h"

struct device_set {
	struct device_choice choice;
	struct backend *be[DEVICE_MAX]; /* (choice.n) */
	char description[256];          /* one line for people and records */
};

/* Opens the devices of a choice. Returns what backend_open returns; *s is then empty. */
enum rv_err device_set_open(struct device_set *s, const struct device_choice *choice,
							const struct backend_options *options, struct rv_errtext *et);
void device_set_close(struct device_set *s); /* an empty one is fine */

#endif
