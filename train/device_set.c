/* device_set.c: opens each device of a choice. */
#include "train/device_set.h"

#include <stdio.h>

enum rv_err device_set_open(struct device_set *s, const struct device_choice *choice,
							const struct backend_options *options, struct rv_errtext *et) {
	*s = (struct device_set){.choice = *choice};
	for (int i = 0; i < choice->n; i++) {
		enum rv_err e = device_open(choice, i, options, &s->be[i], et);
		if (e != RV_OK) {
			device_set_close(s);
			return e;
		}
	}
	const char *first = s->be[0]->ops->describe(s->be[0]);
	if (choice->n == 1)
		(void)snprintf(s->description, sizeof s->description, "%s", first);
	else
		(void)snprintf(s->description, sizeof s->description, "%d x %s", choice->n, first);
	return RV_OK;
}

void device_set_close(struct device_set *s) {
	for (int i = 0; i < s->choice.n; i++)
		backend_close(s->be[i]);
	*s = (struct device_set){.choice = {.n = 0}};
}
