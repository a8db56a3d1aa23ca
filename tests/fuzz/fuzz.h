/* fuzz.h: the entry point that libFuzzer and replay.c call, and the only assertion fuzzers use. */
#ifndef RV_TESTS_FUZZ_FUZZ_H
#define RV_TESTS_FUZZ_FUZZ_H

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>

/* Parses `data` as the thing under test would see it from a stranger; returns 0. A bug is a crash,
 * a sanitizer's report, a hang, too much memory, or a failed RV_ASSERT on a property (what was
 * accepted encodes back to the same bytes, ...). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
