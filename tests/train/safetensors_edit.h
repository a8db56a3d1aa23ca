/* safetensors_edit.h: safetensors files as other tools would have written them: one is read,
 * changed, written. */
#ifndef RV_TESTS_TRAIN_SAFETENSORS_EDIT_H
#define RV_TESTS_TRAIN_SAFETENSORS_EDIT_H

#include "train/files/safetensors.h"

enum { EDIT_MAX_TENSORS = 64, EDIT_NAME_BYTES = 96 };

struct edited {
	struct safetensors_tensor tensors[EDIT_MAX_TENSORS];
	char names[EDIT_MAX_TENSORS][EDIT_NAME_BYTES];
	float *values[EDIT_MAX_TENSORS];
	int n;
};

void edit_open(struct edited *e, const char *path);
void edit_release(struct edited *e);
int edit_find(const struct edited *e, const char *name); /* asserts that it is there */
void edit_rename(struct edited *e, int i, const char *name);
/* A copy of tensor i under another name. Returns its number. */
int edit_copy(struct edited *e, int i, const char *name);
void edit_drop(struct edited *e, int i);
void edit_write(struct edited *e, const char *path);

#endif
