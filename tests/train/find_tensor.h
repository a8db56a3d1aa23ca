/* find_tensor.h: a tensor of a safetensors file by its name. */
#ifndef RV_TESTS_TRAIN_FIND_TENSOR_H
#define RV_TESTS_TRAIN_FIND_TENSOR_H

#include "train/files/safetensors.h"

#include <string.h>

/* Returns NULL if the file has none of that name. */
static inline const struct safetensors_tensor *find_tensor(const struct safetensors *s, const char *name) {
	for (int i = 0; i < safetensors_count(s); i++)
		if (strcmp(safetensors_at(s, i)->name, name) == 0)
			return safetensors_at(s, i);
	return NULL;
}

#endif
