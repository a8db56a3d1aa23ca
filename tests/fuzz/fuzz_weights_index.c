/* fuzz_weights_index.c: model.safetensors.index.json from anywhere. What is accepted names plain
 * files only, each once, and counts every tensor. */
#include "train/files/weights_set.h"

#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct weights_set s;
	struct rv_errtext et = {0};
	if (weights_set_of_index("/dir/model.safetensors.index.json", data, size, &s, &et) != RV_OK) {
		RV_ASSERT(et.text[0] && !s.files);
		return 0;
	}
	size_t tensors = 0;
	RV_ASSERT(s.n_files >= 1 && s.n_files <= WEIGHTS_SET_MAX_FILES && strcmp(s.dir, "/dir") == 0);
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
