/* golden_file.c: see golden_file.h. */
#include "tests/train/golden_file.h"

#include "base/bytes.h"
#include "base/file.h"
#include "tests/train/train_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RECORDS = 256, MAX_BYTES = 1 << 20, KIND_F32 = 0, KIND_I32 = 1 };

struct record {
	char name[64];
	int kind;
	size_t n;
	void *values; /* float or int32_t: malloc'd, so aligned */
};

struct golden {
	struct record records[MAX_RECORDS];
	size_t n_records;
};

static void read_record(struct rv_reader *r, struct record *out) {
	rv_read_str(r, out->name, sizeof out->name);
	out->kind = rv_read_u8(r);
	out->n = rv_read_u32(r);
	assert_true(out->kind == KIND_F32 || out->kind == KIND_I32);
	const uint8_t *data = rv_read_span(r, out->n * 4);
	assert_non_null(data);
	out->values = malloc(out->n * 4);
	assert_non_null(out->values);
	memcpy(out->values, data, out->n * 4);
}

struct golden *golden_open(const char *path) {
	uint8_t *bytes;
	size_t n;
	assert_ok(rv_file_read(path, MAX_BYTES, &bytes, &n, &et));
	struct golden *g = calloc(1, sizeof *g);
	assert_non_null(g);
	struct rv_reader r = rv_reader_of(bytes, n);
	char magic[8];
	rv_read_copy(&r, magic, sizeof magic);
	assert_memory_equal(magic, "RVGOLDEN", sizeof magic);
	g->n_records = rv_read_u32(&r);
	assert_in_range(g->n_records, 1, MAX_RECORDS);
	for (size_t i = 0; i < g->n_records; i++)
		read_record(&r, &g->records[i]);
	assert_true(rv_reader_done(&r));
	free(bytes);
	return g;
}

void golden_close(struct golden *g) {
	for (size_t i = 0; i < g->n_records; i++)
		free(g->records[i].values);
	free(g);
}

static const void *find(const struct golden *g, const char *name, int kind, size_t n) {
	for (size_t i = 0; i < g->n_records; i++) {
		const struct record *r = &g->records[i];
		if (strcmp(r->name, name) == 0) {
			assert_int_equal(r->kind, kind);
			assert_int_equal(r->n, n);
			return r->values;
		}
	}
	fail_msg("no golden record '%s'", name);
	return NULL;
}

const float *golden_f32(const struct golden *g, const char *name, size_t n) {
	return find(g, name, KIND_F32, n);
}

const int32_t *golden_i32(const struct golden *g, const char *name, size_t n) {
	return find(g, name, KIND_I32, n);
}
