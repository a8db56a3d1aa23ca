/* json_budget.h: how much memory a JSON text would take, before it is parsed. Inner part of kind_huggingface.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_JSON_BUDGET_H
#define RV_TRAIN_TEXT_TOKENIZER_JSON_BUDGET_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Arrays and objects cost about a hundred bytes each, other values and keys some fifty: without these limits 64 MiB of
 * text could ask for gigabytes. */
enum { JSON_MAX_CONTAINERS = 3 << 20, JSON_MAX_VALUES = 12 << 20 };

/* RV_E_RANGE names the limit that is passed. The text need not be valid. */
enum rv_err json_budget_check(const uint8_t *text, size_t n, struct rv_errtext *et);

#endif
