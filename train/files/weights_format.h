/* weights_format.h: numbers in files of weights: fp32, bf16 or fp16, little-endian. */
#ifndef RV_TRAIN_FILES_WEIGHTS_FORMAT_H
#define RV_TRAIN_FILES_WEIGHTS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

enum weights_format { WEIGHTS_F32, WEIGHTS_BF16, WEIGHTS_F16, WEIGHTS_FORMATS };

const char *weights_format_name(enum weights_format f); /* "F32", as in safetensors */
bool weights_format_find(const char *name, enum weights_format *out);
size_t weights_format_bytes(enum weights_format f);

/* Converts n numbers of any alignment, exactly. */
void weights_decode(enum weights_format f, const void *in, size_t n, float *out);
/* Rounds to nearest, ties to even. Returns how many numbers it wrote before the first that is not
 * finite or too large, n if all. `out` is aligned for the format. */
size_t weights_encode(enum weights_format f, const float *in, size_t n, void *out);

#endif
