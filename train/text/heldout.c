/* heldout.c: see heldout.h. */
#include "train/text/heldout.h"

#include "base/assert.h"
#include "train/text/data.h"

struct heldout heldout_of(uint64_t n_tokens, uint32_t holdout_every, uint32_t context, bool in_places) {
	RV_ASSERT(holdout_every >= 1 && context >= 1 && context < DATA_BLOCK);
	return (struct heldout){.n_blocks = n_tokens / DATA_BLOCK / holdout_every,
							.holdout_every = holdout_every,
							.context = context,
							.per_block = (DATA_BLOCK - 1) / context,
							.in_places = in_places};
}

uint64_t heldout_sequences(const struct heldout *h) {
	return h->n_blocks * h->per_block;
}

uint64_t heldout_token(const struct heldout *h, uint64_t sequence) {
	RV_ASSERT(sequence < heldout_sequences(h));
	const uint64_t block = (sequence / h->per_block + 1) * h->holdout_every - 1;
	return block * DATA_BLOCK + sequence % h->per_block * h->context;
}

uint64_t heldout_used(const struct heldout *h, uint64_t max_tokens) {
	const uint64_t have = heldout_sequences(h), most = max_tokens / h->context;
	if (max_tokens == 0 || most >= have)
		return have;
	return most > 0 ? most : 1;
}

static uint64_t least(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

static uint64_t quotient_up(uint64_t a, uint64_t b) {
	return (a + b - 1) / b;
}

uint64_t heldout_choice(const struct heldout *h, uint64_t i, uint64_t used) {
	const uint64_t have = heldout_sequences(h);
	RV_ASSERT(i < used && used <= have);
	const uint64_t places = least(least(HELDOUT_PLACES, h->n_blocks), used);
	const uint64_t of_place = quotient_up(used, places), blocks = quotient_up(of_place, h->per_block);
	if (!h->in_places || blocks * places > h->n_blocks)
		return i * have / used;
	const uint64_t place = i * places / used, k = i - quotient_up(place * used, places);
	return place * h->n_blocks / places * h->per_block + k * (blocks * h->per_block) / of_place;
}
