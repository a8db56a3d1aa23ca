/* json_limits.h: limits of a JSON text, checked before it is parsed. A parser spends about a
 * hundred bytes on each array and object and fifty on each other value and key, so a megabyte of
 * brackets would take hundreds of megabytes. */
#ifndef RV_BASE_JSON_LIMITS_H
#define RV_BASE_JSON_LIMITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Returns RV_E_RANGE with the limit that is passed: on arrays and objects, or on keys and values in
 * them. The text need not be valid. */
enum rv_err rv_json_check_limits(const uint8_t *text, size_t n, size_t max_containers, size_t max_values,
								 struct rv_errtext *et);

#endif
