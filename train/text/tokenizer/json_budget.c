/* json_budget.c: applies the limits to a tokenizer.json. */
#include "train/text/tokenizer/json_budget.h"

#include "base/json_limits.h"

enum rv_err json_budget_check(const uint8_t *text, size_t n, struct rv_errtext *et) {
	return rv_json_check_limits(text, n, JSON_MAX_CONTAINERS, JSON_MAX_VALUES, et);
}
