/* weights_names.c: adds and removes prefixes of tensor names. */
#include "train/files/weights_names.h"

#include <stdio.h>
#include <string.h>

static const char *prefix_of(const struct model_ops *family) {
	return family->hf_prefix ? family->hf_prefix : "";
}

void weights_name_in_file(const struct model_ops *family, const struct model_tensor *t,
						  char out[static WEIGHTS_NAME_BYTES]) {
	bool bare = strcmp(t->name, WEIGHTS_CLASSIFIER) == 0;
	snprintf(out, WEIGHTS_NAME_BYTES, "%s%s", bare ? "" : prefix_of(family), t->name);
}

struct safetensors_tensor weights_shape_in_file(const struct model_tensor *t, const char *name) {
	const bool swap = t->hf_transposed;
	return (struct safetensors_tensor){
		.name = name,
		.n_dims = t->cols == 1 ? 1 : 2,
		.dims = {(uint64_t)(swap ? t->cols : t->rows), (uint64_t)(swap ? t->rows : t->cols)}};
}

const char *weights_name_in_model(const struct model_ops *family, const char *name) {
	const char *prefix = prefix_of(family);
	size_t n = strlen(prefix);
	return strncmp(name, prefix, n) == 0 ? name + n : name;
}

const struct model_tensor *weights_find_tensor(const struct model_ops *family, const struct model_layout *layout,
											   const char *name) {
	const char *ours = weights_name_in_model(family, name);
	const struct model_tensor *t = model_find_tensor(layout, ours);
	char whole[WEIGHTS_NAME_BYTES];
	if (t || !family->hf_body || snprintf(whole, sizeof whole, "%s%s", family->hf_body, ours) >= (int)sizeof whole)
		return t;
	return model_find_tensor(layout, whole);
}
