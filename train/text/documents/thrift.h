/* thrift.h: reads the compact protocol of Apache Thrift (doc/specs/thrift-compact-protocol.md of
 * its sources), in which Parquet's headers are written.
 *
 * A struct is read field by field: thrift_next() until it returns false; each field is read by the
 * function of its type, or skipped. Malformed bytes mark the reader failed, after which every
 * read returns zero: the caller checks once, at the end. Nesting is bounded. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_THRIFT_H
#define RV_TRAIN_TEXT_DOCUMENTS_THRIFT_H

#include "base/bytes.h"

enum { THRIFT_MAX_DEPTH = 16 };

enum thrift_type {
	THRIFT_STOP,
	THRIFT_TRUE, /* a boolean field has its value in its type */
	THRIFT_FALSE,
	THRIFT_I8,
	THRIFT_I16,
	THRIFT_I32,
	THRIFT_I64,
	THRIFT_DOUBLE,
	THRIFT_BINARY,
	THRIFT_LIST,
	THRIFT_SET,
	THRIFT_MAP,
	THRIFT_STRUCT
};

struct thrift_field {
	uint8_t type; /* enum thrift_type */
	int16_t id;   /* 0 before the first field of a struct */
};

/* Reads the head of the next field of a struct; `f` is that of the field before, {0} at first.
 * Returns false at the end of the struct, or when the reader has failed. */
bool thrift_next(struct rv_reader *r, struct thrift_field *f);
/* Reads the value of a field of any integer type. */
int64_t thrift_integer(struct rv_reader *r, const struct thrift_field *f);
/* Returns the value of a boolean field; fails the reader for another type. */
bool thrift_boolean(struct rv_reader *r, const struct thrift_field *f);
/* Returns the bytes of a string field (valid as long as the buffer), and their number. */
const uint8_t *thrift_binary(struct rv_reader *r, const struct thrift_field *f, size_t *n);
/* Reads the head of a list field whose elements have the type `element`; returns their number, 0
 * if the reader fails. Elements are no fields: read each as if it had `*each`. */
uint32_t thrift_list(struct rv_reader *r, const struct thrift_field *f, enum thrift_type element,
					 struct thrift_field *each);
/* Returns true, and the struct's fields follow; fails the reader for another type. */
bool thrift_is_struct(struct rv_reader *r, const struct thrift_field *f);
/* Reads past the value of a field. */
void thrift_skip(struct rv_reader *r, const struct thrift_field *f);
/* Reads an unsigned LEB128 integer, as Parquet's levels have them too. */
uint64_t thrift_varint(struct rv_reader *r);

#endif
