/* hostile_message.h: what fuzz_reduce.c and fuzz_grid.c share: messages of an all-reduce as the
 * input says, and an arithmetic that refuses some bytes. */
#ifndef RV_TESTS_FUZZ_HOSTILE_MESSAGE_H
#define RV_TESTS_FUZZ_HOSTILE_MESSAGE_H

#include "base/bytes.h"
#include "net/reduce/reduce.h"

#include <string.h>

enum { HOSTILE_DATA_MAX = 64, HOSTILE_UNDECODABLE = 0xff /* first byte of what is no encoding */ };

/* Fills all of *m but its type and to which round, attempt and section it belongs; `data` holds its
 * bytes. */
static inline void hostile_message(struct rv_reader *r, uint32_t n_chunks, uint8_t data[HOSTILE_DATA_MAX],
								   struct reduce_msg *m) {
	m->chunk = rv_read_u8(r) % (n_chunks + 2);
	m->waiting = m->chunk;
	m->flags = m->type == REDUCE_RESUME ? rv_read_u8(r) & (REDUCE_RESUME_ACK | REDUCE_RESUME_ASK) : 0;
	m->data_bytes = rv_read_u8(r) % HOSTILE_DATA_MAX;
	rv_read_copy(r, data, m->data_bytes);
	m->data = data;
	if (m->type == REDUCE_PING)
		m->data_bytes = 0;
}

/* Makes `out` of n_in inputs of in_bytes each: an encoding, if these are. */
static inline enum rv_err hostile_fold(const uint8_t *const *in, size_t in_bytes, int n_in, uint8_t *out,
									   size_t out_bytes, int *bad, struct rv_errtext *et) {
	memset(out, 0, out_bytes);
	*bad = -1;
	for (int i = 0; i < n_in; i++) {
		if (in[i][0] == HOSTILE_UNDECODABLE) {
			*bad = i;
			return rv_fail(et, RV_E_CORRUPT, "not an encoding");
		}
		for (size_t k = 0; k < out_bytes; k++)
			out[k] = (uint8_t)((out[k] + in[i][k % in_bytes]) % HOSTILE_UNDECODABLE);
	}
	return RV_OK;
}

/* reduce_codec.check. */
static inline enum rv_err hostile_check(void *ctx, uint32_t chunk, const uint8_t *data, struct rv_errtext *et) {
	(void)ctx;
	return data[0] != HOSTILE_UNDECODABLE ? RV_OK : rv_fail(et, RV_E_CORRUPT, "the mean of chunk %u", chunk);
}

#endif
