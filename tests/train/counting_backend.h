/* counting_backend.h: a backend that counts what is allocated from it; otherwise it is another
 * one. */
#ifndef RV_TESTS_TRAIN_COUNTING_BACKEND_H
#define RV_TESTS_TRAIN_COUNTING_BACKEND_H

#include "kernels/backend.h"

#include <stddef.h>

struct counting_backend {
	struct backend *be; /* of `name`; its table is this one's while it is counted */
	const struct backend_ops *inner;
	struct backend_ops ops;
	size_t calls, bytes; /* of alloc */
};

/* One at a time in a process: the table's functions find it through the backend. */
void counting_backend_open(struct counting_backend *c, const char *name, int threads);
void counting_backend_close(struct counting_backend *c);

#endif
