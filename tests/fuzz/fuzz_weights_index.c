/* fuzz_weights_index.c: model.safetensors.index.json from anywhere. What is accepted names plain
 * files only, each once, and counts every tensor. */
#include "train/files/weights_set.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct weights_set s;
	struct rv_errtext et = {0};
	char dir[] = "/tmp/fuzz-index-XXXXXX", index[64], path[64];
	RV_ASSERT(mkdtemp(dir));
	snprintf(index, sizeof index, "%s/index.json", dir);
	int fd = memory_file(data, size, path);
	RV_ASSERT(symlink(path, index) == 0);
	enum rv_err e = weights_set_open(index, &s, &et);
	RV_ASSERT(unlink(index) == 0 && rmdir(dir) == 0 && close(fd) == 0);
	if (e != RV_OK) {
		RV_ASSERT(et.text[0] && !s.files);
		return 0;
	}
	size_t tensors = 0;
	RV_ASSERT(s.n_files >= 1 && s.n_files <= WEIGHTS_SET_MAX_FILES && strcmp(s.dir, dir) == 0);
	for (int i = 0; i < s.n_files; i++) {
		RV_ASSERT(s.files[i][0] && s.files[i][0] != '.' && !strchr(s.files[i], '/'));
		tensors += (size_t)s.n_tensors[i];
		for (int k = 0; k < i; k++)
			RV_ASSERT(strcmp(s.files[i], s.files[k]) != 0);
	}
	RV_ASSERT(tensors == json_object_size(json_object_get(s.index, "weight_map")));
	weights_set_release(&s);
	return 0;
}
