/* sums_image.h: what a final owner keeps of a round for auditors: of each chunk of which it made
 * the mean, what it can show (net/control/shown_sums.h), and the sums of all rows, in fp32.
 *
 *     head 32    "rvsums" 0 1 | round u64 | attempt u32 | chunks u32 | rows u32 | zero u32
 *     index      of each chunk 24: chunk u32, bytes of what is shown u32, where that begins u64,
 *                bytes of a sum u32, zero u32
 *     chunks     what is shown, then the sums in the order of rows
 *
 * Little-endian, as all that is on disk. */
#ifndef RV_WORKER_AUDIT_SUMS_IMAGE_H
#define RV_WORKER_AUDIT_SUMS_IMAGE_H

#include "net/control/shown_sums.h"
#include "net/reduce/grid.h"
#include "worker/state/blob.h"

enum { SUMS_HEAD_BYTES = 32, SUMS_ENTRY_BYTES = 24 };

struct sums_head {
	uint64_t round;
	uint32_t attempt, n, n_rows;
};
struct sums_entry {
	uint32_t chunk, shown_bytes, sum_bytes;
	uint64_t at;
};

/* Makes the image of an all-reduce that is done; NULL: this participant is the final owner of
 * nothing, or there is no memory. */
struct blob *sums_image_new(const struct grid *g, uint64_t round, uint32_t attempt);
/* Reads a head. RV_E_CORRUPT: it is none. */
enum rv_err sums_head_read(const uint8_t in[SUMS_HEAD_BYTES], struct sums_head *out);
/* Finds a chunk in an index of n entries; returns false if it is not there. */
bool sums_index_find(const uint8_t *index, uint32_t n, uint32_t chunk, struct sums_entry *out);
/* Reads what can be shown of a chunk from a whole image; returns false if it is not there. */
bool sums_image_shown(const struct blob *image, uint32_t chunk, struct shown_sums *out);

#endif
