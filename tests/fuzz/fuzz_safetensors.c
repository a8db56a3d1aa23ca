/* fuzz_safetensors.c: a weights file from anywhere. The tensors that are accepted lie in the file
 * and can be read. */
#include "train/files/safetensors.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <stdlib.h>
#include <unistd.h>

static void read_all(const struct safetensors *s, size_t file_bytes) {
	for (int i = 0; i < safetensors_count(s); i++) {
		const struct safetensors_tensor *t = safetensors_at(s, i);
		RV_ASSERT(t->begin <= t->end && t->end <= file_bytes);
		RV_ASSERT(safetensors_has(s, t->name));
		size_t n = safetensors_elems(t), half = n / 2;
		float *values = malloc(n * sizeof *values + 1);
		RV_ASSERT(values);
		enum rv_err whole = safetensors_read_f32(s, t, 0, n, values, NULL);
		if (whole == RV_OK) /* what is readable is readable in parts */
			RV_ASSERT(safetensors_read_f32(s, t, half, n - half, values, NULL) == RV_OK);
		free(values);
	}
	(void)safetensors_metadata(s, "config");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char path[64];
	struct rv_errtext et = {0};
	struct safetensors *s;
	int fd = memory_file(data, size, path);
	if (safetensors_open(path, &s, &et) == RV_OK) {
		read_all(s, size);
		safetensors_close(s);
	} else {
		RV_ASSERT(et.text[0]);
	}
	(void)close(fd);
	return 0;
}
