/* least_room.c: see least_room.h. */
#include "train/text/published/least_room.h"

uint64_t least_room_bytes(const struct manifest *m) {
	const uint64_t window = (uint64_t)ORDER_WINDOW_BLOCKS * MANIFEST_BLOCK_TOKENS, tokens = (uint64_t)m->shard_tokens;
	const uint64_t shards = (window + tokens - 1) / tokens + 1;
	const bool is_short = m->n_tokens / MANIFEST_BLOCK_TOKENS < ORDER_LEAST_BLOCKS;
	if (is_short || shards >= (uint64_t)m->n_shards)
		return manifest_text_bytes(m);
	return shards * manifest_shard_bytes(m, 0);
}
