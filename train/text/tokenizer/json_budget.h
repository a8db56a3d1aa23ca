/* json_budget.h: bounds the memory that parsing a JSON text takes; part of kind_huggingface.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_JSON_BUDGET_H
#define RV_TRAIN_TEXT_TOKENIZER_JSON_BUDGET_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Limits: an array or object takes about 100 bytes of memory, another value or key about 50, so
 * that 64 MiB of text could otherwise take gigabytes. */
enum { JSON_MAX_CONTAINERS = 3 << 20, JSON_MAX_VALUES = 12 << 20 };

/* Returns RV_E_RANGE, naming the limit, if text[0, n), valid JSON or not, exceeds one. */
enum rv_err json_budget_check(const uint8_t *text, size_t n, struct rv_errtext *et);

#endif
