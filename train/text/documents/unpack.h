/* unpack.h: decompresses a block of known size, as Parquet's pages are, by the libraries of the
 * formats. */
#ifndef RV_TRAIN_TEXT_DOCUMENTS_UNPACK_H
#define RV_TRAIN_TEXT_DOCUMENTS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes exactly n_out bytes. `codec` is an enum parquet_codec (parquet_footer.h) that the footer's
 * check lets pass. Returns false if the block is damaged or has another size, or if there is no
 * memory. */
bool unpack(uint8_t codec, const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out);

#endif
