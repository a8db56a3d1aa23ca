/* layout.h: messages as tables of fields: one table writes a struct and reads it. Internal to net/
 * and coordinator/store.
 *
 * Fields lie one behind the other in the order of the table. Readers stay within the struct
 * whatever comes: a text has its room, a count its limit. Other conditions are for the decoder of a
 * message to check. */
#ifndef RV_NET_CONTROL_LAYOUT_H
#define RV_NET_CONTROL_LAYOUT_H

#include "base/bytes.h"
#include "base/err.h"

#include <stddef.h>

enum layout_kind {
	LAYOUT_END,
	LAYOUT_PLAIN, /* a number (little-endian; floats IEEE 754) or an array of bytes, as it lies in memory */
	LAYOUT_BOOL,  /* a byte, 0 or 1: anything else fails the reader */
	LAYOUT_TEXT,  /* the bytes of a char array, behind their number as 2 bytes (rv_write_str) */
	LAYOUT_COUNT, /* a number of 1 or 2 bytes that is at most `most`: the elements of a LIST */
	LAYOUT_LIST,  /* as many elements of an array as the count at `count_at` says */
	LAYOUT_ZEROS  /* bytes that are zero, and no member of the struct */
};

struct layout {
	enum layout_kind kind;
	const char *name; /* for errors */
	size_t at, bytes; /* in the struct; of a LIST: of one element */
	uint32_t most;
	size_t count_at, count_bytes;
	const struct layout *each; /* of one element */
};

#define LAYOUT_OF(KIND, type, field)                                                                                   \
	.kind = LAYOUT_##KIND, .name = #field, .at = offsetof(type, field), .bytes = sizeof(((type *)0)->field)
#define LAYOUT_FIELD(KIND, type, field)                                                                                \
	{ LAYOUT_OF(KIND, type, field) }
/* The limit is the length of `array`. */
#define LAYOUT_COUNT_OF(type, array, count)                                                                            \
	{ LAYOUT_OF(COUNT, type, count), .most = sizeof(((type *)0)->array) / sizeof(((type *)0)->array[0]) }
#define LAYOUT_LIST_OF(type, array, count, of)                                                                         \
	{                                                                                                                  \
		LAYOUT_OF(LIST, type, array[0]), .count_at = offsetof(type, count), .count_bytes = sizeof(((type *)0)->count), \
										 .each = (of)                                                                  \
	}
/* A count, and at once its list. */
#define LAYOUT_COUNTED(type, array, count, of)                                                                         \
	LAYOUT_COUNT_OF(type, array, count), LAYOUT_LIST_OF(type, array, count, of)
#define LAYOUT_PADDING(n)                                                                                              \
	{ .kind = LAYOUT_ZEROS, .bytes = (n) }
#define LAYOUT_LAST                                                                                                    \
	{ .kind = LAYOUT_END }

/* Writes the fields of the struct at `from`. Asserts that counts keep their limits. */
void layout_write(const struct layout *fields, const void *from, struct rv_writer *w);
/* Reads them into the struct at `to`. RV_E_INVALID: a count above its limit, or padding that is not
 * zero; `what` is the message's name, for the text. Too few bytes fail the reader. */
enum rv_err layout_read(const struct layout *fields, struct rv_reader *r, void *to, const char *what,
						struct rv_errtext *et);

#endif
