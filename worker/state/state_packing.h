/* state_packing.h: one piece of state as stored and sent: compressed with zstd if that is smaller,
 * else raw. Pure, except for zstd's own memory, a constant.
 *
 * The size of a piece follows from the run's configuration. A frame that claims another size is
 * refused before it is decompressed, and decompression writes at most the caller's `bytes`, so a
 * decompression bomb does no harm. */
#ifndef RV_WORKER_STATE_STATE_PACKING_H
#define RV_WORKER_STATE_STATE_PACKING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum state_encoding { STATE_RAW, STATE_ZSTD };

/* The encoding of a stored piece and its bytes. RAW: the bytes of the piece; ZSTD: fewer, one
 * frame. */
struct state_stored {
	enum state_encoding encoding;
	uint32_t bytes;
};

/* Checks that a piece of `piece_bytes` can be stored so, else RV_E_CORRUPT. `encoding` may be any
 * number from outside. */
enum rv_err state_stored_check(uint32_t encoding, uint32_t bytes, size_t piece_bytes, struct rv_errtext *et);

struct state_packer;                         /* zstd's contexts, reused for every piece; one thread at a time */
struct state_packer *state_packer_new(void); /* NULL: no memory */
void state_packer_free(struct state_packer *p);

/* Compresses `piece` into `out` (both `bytes`) if that is smaller; else returns RAW, `out` is
 * unspecified, and the piece itself is to be stored. */
struct state_stored state_pack(struct state_packer *p, const void *piece, size_t bytes, void *out);
/* Unpacks `stored` (what->bytes) into `piece` (bytes). RV_E_CORRUPT: state_pack cannot have made it
 * of a piece of `bytes`; RV_E_NOMEM: not decided. */
enum rv_err state_unpack(struct state_packer *p, const struct state_stored *what, const void *stored, void *piece,
						 size_t bytes, struct rv_errtext *et);

#endif
