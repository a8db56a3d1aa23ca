/* evil_seals.c: a member that lies under its own signature: what its hook of the all-reduce
 * (evil_links.c) changes in contributions, means and seals. What it does: evil.h. */
#include "tests/attack/evil_seals.h"

#include "base/merkle.h"
#include "net/reduce/state.h"
#include "tests/attack/evil.h"

#include <string.h>

/* Returns the first chunk that this participant owns; NET_MAX_CHUNKS: it owns none. */
static uint32_t first_own(const struct reduce *r) {
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		if (r->owner[c] == r->self)
			return c;
	return NET_MAX_CHUNKS;
}

/* Returns the bytes of an own mean with another last value for each peer. */
static const uint8_t *another_mean(const struct reduce *r, uint32_t chunk, int to) {
	enum { VALUES = 100 };
	static uint8_t changed[NET_MAX_CHUNK_BYTES];
	const size_t n = reduce_mean_bytes(r, chunk);
	memcpy(changed, r->mem.reduced + reduce_mean_offset(r, chunk), n);
	changed[n - 1] = (uint8_t)((changed[n - 1] + 1 + to) % VALUES);
	return changed;
}

/* Signs the list that `to` gets. */
static void seal_again(struct reduce *r, int to, struct reduce_msg *m) {
	static uint8_t bytes[SEAL_BYTES];
	const uint32_t first = first_own(r);
	struct merkle_sum sum = {.n = 0};
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		if (r->owner[c] != r->self)
			continue;
		const struct rv_hash leaf =
			c != first ? r->mem.means[c]
					   : merkle_leaf(r->cfg.first_chunk + c, another_mean(r, c, to), reduce_mean_bytes(r, c));
		merkle_add(&sum, &leaf);
	}
	const struct rv_hash root = merkle_sum_root(&sum);
	struct seal seal;
	r->cfg.seals.sign(r->cfg.seals.ctx, &r->scope, &root, &seal);
	memcpy(bytes, seal.root.b, RV_HASH_BYTES);
	memcpy(bytes + RV_HASH_BYTES, seal.signature, NET_SIG_BYTES);
	m->data = bytes;
}

static void spoil(struct reduce_msg *m, size_t at) {
	static uint8_t changed[NET_MAX_CHUNK_BYTES];
	memcpy(changed, m->data, m->data_bytes);
	changed[at] ^= 1;
	m->data = changed;
}

void evil_seals(struct reduce *r, int to, struct reduce_msg *m) {
	double value;
	const bool equivocates = evil_lies("equivocates", m->round, &value);
	if (m->type == REDUCE_GATHER && equivocates && m->chunk == first_own(r))
		m->data = another_mean(r, m->chunk, to);
	if (m->type == REDUCE_SEAL && equivocates)
		seal_again(r, to, m);
	if (m->type == REDUCE_SEAL && evil_lies("false_seal", m->round, &value))
		spoil(m, RV_HASH_BYTES);
	if (m->type == REDUCE_SCATTER && evil_lies("changes", m->round, &value) && evil_at(to))
		spoil(m, m->data_bytes - 1);
}
