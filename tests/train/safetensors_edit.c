/* safetensors_edit.c: see safetensors_edit.h. */
#include "tests/train/safetensors_edit.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t elems(const struct safetensors_tensor *t) {
	size_t n = 1;
	for (int i = 0; i < t->n_dims; i++)
		n *= t->dims[i];
	return n;
}

static int append(struct edited *e, const struct safetensors_tensor *t, const char *name) {
	RV_ASSERT(e->n < EDIT_MAX_TENSORS);
	int i = e->n++;
	e->tensors[i] = *t;
	e->values[i] = malloc(elems(t) * sizeof(float));
	RV_ASSERT(e->values[i]);
	edit_rename(e, i, name);
	return i;
}

void edit_open(struct edited *e, const char *path) {
	struct safetensors *s;
	*e = (struct edited){.n = 0};
	RV_ASSERT(safetensors_open(path, &s, NULL) == RV_OK);
	for (int i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_tensor *t = safetensors_at(s, i);
		int k = append(e, t, t->name);
		RV_ASSERT(safetensors_read_f32(s, t, 0, elems(t), e->values[k], NULL) == RV_OK);
	}
	safetensors_close(s);
}

void edit_release(struct edited *e) {
	for (int i = 0; i < e->n; i++)
		free(e->values[i]);
	*e = (struct edited){.n = 0};
}

int edit_find(const struct edited *e, const char *name) {
	for (int i = 0; i < e->n; i++)
		if (strcmp(e->names[i], name) == 0)
			return i;
	RV_ASSERT(!"no such tensor");
	return -1;
}

void edit_rename(struct edited *e, int i, const char *name) {
	char copy[EDIT_NAME_BYTES]; /* `name` may be a part of the old one */
	snprintf(copy, sizeof copy, "%s", name);
	memcpy(e->names[i], copy, sizeof copy);
}

int edit_copy(struct edited *e, int i, const char *name) {
	int k = append(e, &e->tensors[i], name);
	memcpy(e->values[k], e->values[i], elems(&e->tensors[i]) * sizeof(float));
	return k;
}

void edit_drop(struct edited *e, int i) {
	free(e->values[i]);
	e->n--;
	for (; i < e->n; i++) {
		e->tensors[i] = e->tensors[i + 1];
		e->values[i] = e->values[i + 1];
		memcpy(e->names[i], e->names[i + 1], sizeof e->names[i]);
	}
}

static void fill(const void *ctx, int i, size_t first, size_t n, float *out) {
	const struct edited *e = ctx;
	size_t row = elems(&e->tensors[i]) / (e->tensors[i].n_dims > 0 ? e->tensors[i].dims[0] : 1);
	memcpy(out, e->values[i] + first * row, n * row * sizeof *out);
}

void edit_write(struct edited *e, const char *path) {
	for (int i = 0; i < e->n; i++)
		e->tensors[i].name = e->names[i];
	const struct safetensors_source source = {
		.tensors = e->tensors, .n_tensors = e->n, .format = WEIGHTS_F32, .rows = {fill, e}};
	RV_ASSERT(safetensors_write(path, &source, NULL) == RV_OK);
}
