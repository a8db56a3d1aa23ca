/* parquet_runs.h: decodes the two packings of integers in Parquet's pages (parquet-format,
 * Encodings.md), value by value: the run-length and bit-packed hybrid of levels and dictionary
 * indices, and delta binary packing of lengths. Malformed bytes fail the reader; every value is
 * then 0. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_PARQUET_RUNS_H
#define RV_TRAIN_TEXT_DOCUMENTS_PARQUET_RUNS_H

#include "base/bytes.h"

/* Bits of a packed sequence, the lowest first. */
struct packed_bits {
	uint64_t held;
	int n_held;
};

struct run_decoder {
	struct rv_reader r;
	int width;     /* bits of a value, 0..32 */
	uint64_t left; /* values of the run under way */
	bool is_packed;
	uint32_t value; /* of a run of equal ones */
	struct packed_bits bits;
};
/* Begins at bytes that `r` holds. */
struct run_decoder run_decoder_of(struct rv_reader r, int width);
uint32_t run_decoder_next(struct run_decoder *d);

struct delta_decoder {
	struct rv_reader r;
	uint64_t left;  /* values to come */
	uint64_t value; /* the next one, if is_first; else the last one */
	bool is_first;
	uint64_t block, minis; /* values of a block; parts of it with a width each */
	uint64_t min_delta;
	const uint8_t *widths;  /* of the parts of the present block */
	uint64_t part, in_part; /* number of the present part; values left in it */
	struct packed_bits bits;
};
/* Begins at bytes that `r` holds; d->left says how many values there are. */
struct delta_decoder delta_decoder_of(struct rv_reader r);
/* Returns the next value; fails the reader if there is none. */
int64_t delta_decoder_next(struct delta_decoder *d);
/* Returns what follows the values, of which none may have been read. */
struct rv_reader delta_decoder_rest(struct delta_decoder d);

#endif
