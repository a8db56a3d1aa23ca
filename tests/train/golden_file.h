/* golden_file.h: reads the records of a golden file (format: tests/goldens/make_goldens.py). */
#ifndef RV_TESTS_TRAIN_GOLDEN_FILE_H
#define RV_TESTS_TRAIN_GOLDEN_FILE_H

#include <stddef.h>
#include <stdint.h>

struct golden;

/* Fails the test when the file is not there or malformed. */
struct golden *golden_open(const char *path);
void golden_close(struct golden *g);
/* The values of record `name`, `n` of them; fails the test when there is no such record of that
 * kind and count. */
const float *golden_f32(const struct golden *g, const char *name, size_t n);
const int32_t *golden_i32(const struct golden *g, const char *name, size_t n);

#endif
