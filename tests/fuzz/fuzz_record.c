/* fuzz_record.c: a coordinator's stored records, one after the other, each with a 16-bit length,
 * replayed into a core. A damaged store is refused with a text; it never brings the core down. */
#include "coordinator/store/record.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_again(const struct core_record *rec) {
	static const size_t cap = RECORD_MAX_BYTES;
	uint8_t first[RECORD_MAX_BYTES], second[RECORD_MAX_BYTES];
	struct core_record back;
	struct rv_writer a = rv_writer_of(first, cap), b = rv_writer_of(second, cap);
	record_encode(rec, &a);
	RV_ASSERT(!a.failed);
	RV_ASSERT(record_decode(first, rv_writer_len(&a), &back, NULL) == RV_OK);
	record_encode(&back, &b);
	RV_ASSERT(rv_writer_len(&a) == rv_writer_len(&b) && memcmp(first, second, rv_writer_len(&a)) == 0);
}

/* Replays the store into a core of a run that has leases, or has none. */
static void replay(const uint8_t *data, size_t size, uint64_t lease_round) {
	struct rv_reader r = rv_reader_of(data, size);
	struct core_config cfg = {.max_here = NET_MAX_ROW,
							  .max_roster = NET_MAX_ROW,
							  .min_workers = 2,
							  .final_round = 10,
							  .liveness_us = 1,
							  .silent_us = 1,
							  .withheld_us = 1,
							  .chunk_bytes = 1,
							  .n_chunks = {10},
							  .lease_round = lease_round,
							  .lease_tokens = 1,
							  .round_tokens = 1000};
	void *memory = aligned_alloc(64, (core_size(&cfg) + 63) / 64 * 64);
	RV_ASSERT(memory);
	struct core *core = core_init(memory, &cfg, 0);
	while (rv_reader_left(&r) > 0) {
		struct core_record rec;
		struct rv_errtext et = {0};
		size_t n = rv_read_u16(&r);
		const uint8_t *p = rv_read_span(&r, n);
		enum rv_err e = p ? record_decode(p, n, &rec, &et) : RV_E_CORRUPT;
		if (e == RV_OK) {
			check_again(&rec);
			e = core_replay(core, &rec, &et);
			if (e == RV_OK)
				core_replayed(core);
		}
		RV_ASSERT(e == RV_OK || !p || et.text[0]);
		if (e != RV_OK)
			break;
	}
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	replay(data, size, 0);
	replay(data, size, 4);
	return 0;
}
