/* option_value.h: options in their table, and their values as text: one parser and one printer per
 * type. Internal to options.h. */
#ifndef RV_BASE_OPTION_VALUE_H
#define RV_BASE_OPTION_VALUE_H

#include "base/options.h"

/* Longest text of a value, its NUL included. */
enum { RV_OPTION_TEXT_BYTES = 4096 };
enum { RV_OPTIONS_MAX = 128, RV_OPTIONS_OTHERS_MAX = 8 };

/* Returns the index of `name`, or -1 with an error text that suggests the nearest name. `prefix`
 * ("--" or "") precedes options where this one was found; `others` (NULL-terminated, or NULL) are
 * allowed there too. */
int rv_options_find(const struct rv_option *table, const char *prefix, const char *name, const char *const *others,
					struct rv_errtext *et);

/* Stores `text` as the value of option `o` in `opts`. Numbers take `K`, `KB`, `KiB`, ... (BYTES)
 * and `us`, `ms`, `s`, `m`, `h`, `d` (DURATION_MS); a bare number is bytes or milliseconds. RATE
 * takes `kbit`, `mbit`, ... or `KB`, `MB`, ..., with or without `/s`; its only bare number is 0,
 * also written `unlimited` or `none`. RV_E_INVALID, RV_E_RANGE; on failure `opts` is unchanged. */
enum rv_err rv_option_value_parse(const struct rv_option *o, void *opts, const char *text, struct rv_errtext *et);

/* Writes the text that parses back to the stored value, byte for byte the same for equal values.
 * Not for an unset one. */
void rv_option_value_print(const struct rv_option *o, const void *opts, char out[static RV_OPTION_TEXT_BYTES]);

/* Returns true if both structs have the same value of the option, or none. */
bool rv_option_value_same(const struct rv_option *o, const void *a, const void *b);

/* Marks a required option as having no value: empty text, INT64_MIN, NaN, place -1. A BOOL cannot
 * be required. */
void rv_option_value_unset(const struct rv_option *o, void *opts);
bool rv_option_value_is_set(const struct rv_option *o, const void *opts);

/* Returns true if the value is a char array: STRING, ENUM, LIST. */
bool rv_option_is_text(const struct rv_option *o);
/* Returns true if `choices` lists the allowed values. */
bool rv_option_has_choices(const struct rv_option *o);

/* Writes the allowed range for people, "[1B, 64KiB]"; "" if unbounded. */
void rv_option_range_text(const struct rv_option *o, char *out, size_t cap);

/* Writes what --help and the manual add to the sentence: "(default: 4s; range: [1ms, 1h])", or
 * "(required)". */
void rv_option_facts_text(const struct rv_option *o, char *out, size_t cap);
/* Returns the option's heading: its group, or "Options". */
const char *rv_option_group(const struct rv_option *o);
/* Returns true if no option before `o` has the same heading. */
bool rv_option_begins_group(const struct rv_option *table, const struct rv_option *o);

/* Returns what the type takes, for people: "yes or no", "a whole number", ... */
const char *rv_option_type_text(const struct rv_option *o);
/* Returns the placeholder after `--name`, which shows what to write there: " N"; "" for bools. */
const char *rv_option_placeholder(const struct rv_option *o);

#endif
