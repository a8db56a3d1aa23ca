/* text_reading.c: see text_reading.h. */
#include "worker/text/text_reading.h"

enum { SEQUENCES_MAX = 1 << 16 };

static int add(uint64_t *shards, int n, int most, uint64_t shard) {
	for (int i = 0; i < n; i++)
		if (shards[i] == shard)
			return n;
	if (n < most)
		shards[n++] = shard;
	return n;
}

int text_reading_shards(const struct reading *r, const struct sequence_order *o, const struct manifest *m,
						uint64_t *shards, int most) {
	int n = 0, looked = 0;
	for (int i = 0; i < r->n; i++)
		for (uint64_t k = 0; k < r->pieces[i].count && n < most && looked < SEQUENCES_MAX; k++, looked++)
			n = add(shards, n, most, manifest_place(m, sequence_order_at(o, r->pieces[i].begin + k).token).shard);
	return n;
}

int text_heldout_shards(const struct heldout *h, const struct manifest *m, uint64_t max_tokens, uint64_t *shards,
						int most) {
	const uint64_t used = heldout_used(h, max_tokens);
	int n = 0;
	for (uint64_t i = 0; i < used; i++) {
		const uint64_t shard = manifest_place(m, heldout_token(h, heldout_choice(h, i, used))).shard;
		if (n > 0 && shards[n - 1] == shard)
			continue;
		if (n == most)
			return 0;
		shards[n++] = shard;
	}
	return n;
}
