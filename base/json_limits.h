/* json_limits.h: how much memory a JSON text would take, before it is parsed: arrays and objects cost a parser about a
 * hundred bytes each, other values and keys some fifty, so that a megabyte of brackets asks for hundreds of them. */
#ifndef RV_BASE_JSON_LIMITS_H
#define RV_BASE_JSON_LIMITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* RV_E_RANGE names the limit that is passed: arrays and objects; keys and values within them. The text need not be
 * valid. */
enum rv_err rv_json_check_limits(const uint8_t *text, size_t n, size_t max_containers, size_t max_values,
								 struct rv_errtext *et);

#endif
