/* The safetensors reader: what is well-formed comes out, everything else is refused with a
 * reason. */
#include "tests/train/find_tensor.h"
#include "tests/train/train_fixture.h"

#include "base/bytes.h"
#include "train/files/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAP = 4096 };

static char dir[256], path[400];

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

/* A file of this header and `data_bytes` bytes of data, values 1.0f. */
static void write_file(const char *header, size_t data_bytes) {
	uint8_t bytes[CAP];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	rv_write_u64(&w, strlen(header));
	rv_write_bytes(&w, header, strlen(header));
	for (size_t i = 0; i < data_bytes; i += 4)
		rv_write_u32(&w, 0x3f800000u);
	assert_false(w.failed);
	fixture_write(dir, "f.safetensors", bytes, rv_writer_len(&w) - (data_bytes % 4 ? 4 - data_bytes % 4 : 0), path,
				  sizeof path);
}

static void refused(const char *header, size_t data_bytes, const char *why) {
	struct safetensors *f;
	struct rv_errtext et = {0};
	write_file(header, data_bytes);
	assert_fault(safetensors_open(path, &f, &et), RV_E_CORRUPT, &et, why);
	assert_null(f);
}

#define TENSOR(name, dtype, shape, begin, end)                                                                         \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_reads(void **state) {
	(void)state;
	struct safetensors *f;
	float values[6] = {0};
	write_file("{\"__metadata__\":{\"k\":\"v\"}," TENSOR("b", "F32", "[2,3]", "8", "32") "," TENSOR(
				   "a", "F32", "[2]", "0", "8") "," TENSOR("s", "I16", "[]", "32", "34") "}  ",
			   34);
	struct rv_errtext et = {0};
	assert_int_equal(safetensors_open(path, &f, &et), RV_OK);
	assert_int_equal(safetensors_count(f), 3);
	assert_string_equal(safetensors_at(f, 0)->name, "a");
	assert_string_equal(safetensors_at(f, 1)->name, "b");
	assert_string_equal(safetensors_metadata(f, "k"), "v");
	assert_null(safetensors_metadata(f, "no"));
	assert_null(find_tensor(f, "c"));
	const struct safetensors_tensor *b = find_tensor(f, "b");
	assert_int_equal(b->n_dims, 2);
	assert_int_equal(b->dims[1], 3);
	assert_int_equal(safetensors_elems(b), 6);
	assert_int_equal(safetensors_read_f32(f, b, 0, 6, values, NULL), RV_OK);
	assert_true(values[0] == 1 && values[5] == 1);
	values[0] = values[1] = values[2] = 0;
	assert_int_equal(safetensors_read_f32(f, b, 4, 2, values, NULL), RV_OK);
	assert_true(values[0] == 1 && values[1] == 1 && values[2] == 0);
	const struct safetensors_tensor *s = find_tensor(f, "s");
	assert_fault(safetensors_read_f32(f, s, 0, 1, values, &et), RV_E_UNSUPPORTED, &et, "'s' is I16");
	safetensors_close(f);
}

static void test_refuses_headers(void **state) {
	(void)state;
	refused("", 0, "header");
	refused("[]", 0, "not an object");
	refused("{", 0, "header");
	refused("{\"a\":1}", 0, "no known dtype");
	refused("{" TENSOR("a", "F31", "[1]", "0", "4") "}", 4, "no known dtype");
	refused("{" TENSOR("a", "F32", "7", "0", "4") "}", 4, "no shape");
	refused("{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "no shape");
	refused("{" TENSOR("a", "F32", "[-1]", "0", "4") "}", 4, "not a size");
	refused("{" TENSOR("a", "F32", "[1.5]", "0", "4") "}", 4, "not a size");
	refused("{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("a", "F32", "[1]", "4", "8") "}", 8, "header");
}

static void test_refuses_ranges(void **state) {
	(void)state;
	refused("{" TENSOR("a", "F32", "[2]", "0", "8") "}", 4, "too short: 4 bytes of data, and tensor 'a' ends at 8");
	refused("{" TENSOR("a", "F32", "[1]", "-4", "0") "}", 4, "data_offsets");
	refused("{" TENSOR("a", "F32", "[1]", "4", "0") "}", 4, "data_offsets");
	refused("{" TENSOR("a", "F32", "[2]", "0", "4") "}", 4, "do not fit its shape");
	refused("{" TENSOR("a", "F32", "[4294967296,4294967296,4]", "0", "4") "}", 4, "do not fit its shape");
	refused("{" TENSOR("a", "F32", "[1]", "0", "4") "}", 8, "end at");
	refused("{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "8", "12") "}", 12, "begins at");
	refused("{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F32", "[1]", "4", "8") "}", 8, "begins at");
}

static void test_refuses_lengths(void **state) {
	(void)state;
	const uint8_t tiny[] = {1, 2, 3};
	const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
	const uint8_t past[] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
	struct safetensors *f;
	struct rv_errtext et = {0};
	fixture_write(dir, "f.safetensors", tiny, sizeof tiny, path, sizeof path);
	assert_fault(safetensors_open(path, &f, &et), RV_E_CORRUPT, &et, "not a safetensors file");
	fixture_write(dir, "f.safetensors", huge, sizeof huge, path, sizeof path);
	assert_fault(safetensors_open(path, &f, &et), RV_E_CORRUPT, &et, "not a safetensors file");
	fixture_write(dir, "f.safetensors", past, sizeof past, path, sizeof path);
	assert_fault(safetensors_open(path, &f, &et), RV_E_CORRUPT, &et, "not a safetensors file");
	assert_fault(safetensors_open(dir, &f, &et), RV_E_CORRUPT, &et, "not a safetensors file");
	fixture_write(dir, "f.gguf", (const uint8_t *)"GGUF\3\0\0\0\0", 9, path, sizeof path);
	assert_fault(safetensors_open(path, &f, &et), RV_E_UNSUPPORTED, &et, "writes and does not read: give what it was");
}

/* 2 x 3 numbers of any format, written and read back. */
static const float numbers[6] = {1, -2.5f, 0, 0x1.fcp-7f, 3e4f, -0x1p-14f};

static void fill_numbers(const void *ctx, int i, size_t first, size_t n, float *out) {
	assert_int_equal(i, 0);
	memcpy(out, (const float *)ctx + 3 * first, 3 * n * sizeof *out);
}

static enum rv_err write_numbers(const float *values, enum weights_format format, struct rv_errtext *et) {
	struct safetensors_tensor t = {.name = "a", .n_dims = 2, .dims = {2, 3}};
	const struct safetensors_source source = {
		.tensors = &t, .n_tensors = 1, .format = format, .rows = {fill_numbers, values}};
	snprintf(path, sizeof path, "%s/f.safetensors", dir);
	return safetensors_write(path, &source, et);
}

static void test_every_format_comes_back(void **state) {
	(void)state;
	for (int format = 0; format < WEIGHTS_FORMATS; format++) {
		struct safetensors *f;
		float values[6], tolerance = format == WEIGHTS_F32 ? 0 : format == WEIGHTS_BF16 ? 0x1p-8f : 0x1p-11f;
		assert_int_equal(write_numbers(numbers, (enum weights_format)format, NULL), RV_OK);
		assert_int_equal(safetensors_open(path, &f, NULL), RV_OK);
		const struct safetensors_tensor *t = safetensors_at(f, 0);
		assert_string_equal(t->dtype, weights_format_name((enum weights_format)format));
		assert_int_equal(t->begin % 8, 0);
		assert_int_equal(safetensors_read_f32(f, t, 0, 6, values, NULL), RV_OK);
		for (int i = 0; i < 6; i++)
			assert_true(fabsf(values[i] - numbers[i]) <= tolerance * fabsf(numbers[i]));
		safetensors_close(f);
	}
}

static void test_refuses_what_is_not_finite(void **state) {
	(void)state;
	const float too_large[6] = {1, 2, 3, 4, 65536}, nan[6] = {1, NAN};
	struct rv_errtext et = {0};
	assert_fault(write_numbers(nan, WEIGHTS_F32, &et), RV_E_RANGE, &et, "'a': value 1 is");
	assert_fault(write_numbers(too_large, WEIGHTS_F16, &et), RV_E_RANGE, &et, "value 4 is 65536: F16 cannot hold it");
	struct safetensors *f;
	float values[2];
	const uint8_t infinite[] = {0x80, 0x3f, 0x80, 0x7f}; /* bf16 1, infinity */
	const char *header = "{" TENSOR("a", "BF16", "[2]", "0", "4") "}";
	uint8_t bytes[CAP];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	rv_write_u64(&w, strlen(header));
	rv_write_bytes(&w, header, strlen(header));
	rv_write_bytes(&w, infinite, sizeof infinite);
	fixture_write(dir, "f.safetensors", bytes, rv_writer_len(&w), path, sizeof path);
	assert_int_equal(safetensors_open(path, &f, NULL), RV_OK);
	assert_fault(safetensors_read_f32(f, safetensors_at(f, 0), 0, 2, values, &et), RV_E_CORRUPT, &et,
				 "'a': value 1 is inf");
	safetensors_close(f);
}

static void test_refuses_what_would_take_much_memory(void **state) {
	(void)state;
	enum { ARRAYS = 4 * SAFETENSORS_TENSORS_MAX };
	char *header = malloc(3 * ARRAYS + 32), *at = header;
	at += sprintf(at, "{\"a\":[");
	for (int i = 0; i < ARRAYS; i++)
		at += sprintf(at, "[],");
	sprintf(at, "0]}");
	uint8_t *bytes = malloc(8 + strlen(header));
	struct rv_writer w = rv_writer_of(bytes, 8 + strlen(header));
	rv_write_u64(&w, strlen(header));
	rv_write_bytes(&w, header, strlen(header));
	fixture_write(dir, "f.safetensors", bytes, rv_writer_len(&w), path, sizeof path);
	free(header);
	free(bytes);
	struct safetensors *f;
	struct rv_errtext et = {0};
	assert_fault(safetensors_open(path, &f, &et), RV_E_CORRUPT, &et, "arrays and objects: the limit is");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses_headers),
		cmocka_unit_test(test_refuses_ranges),
		cmocka_unit_test(test_refuses_lengths),
		cmocka_unit_test(test_every_format_comes_back),
		cmocka_unit_test(test_refuses_what_is_not_finite),
		cmocka_unit_test(test_refuses_what_would_take_much_memory),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
