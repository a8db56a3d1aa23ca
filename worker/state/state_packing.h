/* state_packing.h: one piece of state as it is stored and sent: zstd where that is smaller, as it is otherwise. Pure,
 * but for zstd's own memory (a constant, whatever the input).
 *
 * The size of a piece follows from the run's configuration. A frame that claims another is refused before anything is
 * decompressed, and decompression goes straight into the caller's `bytes`: a bomb has nowhere to go.
 */
#ifndef RV_WORKER_STATE_STATE_PACKING_H
#define RV_WORKER_STATE_STATE_PACKING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum state_encoding { STATE_RAW, STATE_ZSTD };

/* How a piece is stored, and in how many bytes: RAW: those of the piece; ZSTD: fewer, one frame. */
struct state_stored {
	enum state_encoding encoding;
	uint32_t bytes;
};

/* RV_E_CORRUPT unless a piece of `piece_bytes` can be stored so. `encoding` may be any number from outside. */
enum rv_err state_stored_check(uint32_t encoding, uint32_t bytes, size_t piece_bytes, struct rv_errtext *et);

struct state_packer;                         /* zstd's contexts, used again for every piece; one thread at a time */
struct state_packer *state_packer_new(void); /* NULL: no memory */
void state_packer_free(struct state_packer *p);

/* piece (bytes) -> out (bytes), when that is smaller; else RAW, and `out` is unspecified: the piece is what is
 * stored. */
struct state_stored state_pack(struct state_packer *p, const void *piece, size_t bytes, void *out);
/* stored (what->bytes) -> piece (bytes). RV_E_CORRUPT: not what state_pack makes of a piece of `bytes`; RV_E_NOMEM:
 * nothing is known of it. */
enum rv_err state_unpack(struct state_packer *p, const struct state_stored *what, const void *stored, void *piece,
						 size_t bytes, struct rv_errtext *et);

#endif
