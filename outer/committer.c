/* committer.c: see committer.h. */
#include "outer/committer.h"

#include "base/assert.h"
#include "outer/recode.h"

#include <stdlib.h>

static size_t longest_chunk(const struct committer *c, size_t elems) {
	size_t most = 0;
	for (int i = 0; i < c->coarser.n; i++) {
		const size_t bytes = c->coarser.step[i]->encoded_bytes(c->coarser.step[i], elems);
		most = bytes > most ? bytes : most;
	}
	return most;
}

enum rv_err committer_init(struct committer *c, const struct run_config *run, const struct global_config *g,
						   struct rv_errtext *et) {
	*c = (struct committer){.nodes = calloc(merkle_nodes(g->chunks.n_chunks), sizeof *c->nodes)};
	if (run->slow_members == SLOW_COARSER)
		c->coarser = slow_codecs_of(run);
	if (c->coarser.n > 0) {
		c->values = calloc(g->chunks.chunk_elems, sizeof *c->values);
		c->bytes = calloc(1, longest_chunk(c, g->chunks.chunk_elems));
	}
	if (c->nodes && (c->coarser.n == 0 || (c->values && c->bytes)))
		return RV_OK;
	committer_release(c);
	return rv_fail(et, RV_E_NOMEM, "no memory for the hashes of a contribution's %u chunks", g->chunks.n_chunks);
}

void committer_release(struct committer *c) {
	free(c->nodes);
	free(c->values);
	free(c->bytes);
	*c = (struct committer){.nodes = NULL};
}

void committer_tree(const struct chunking *chunks, const struct codec *codec, const uint8_t *encoded,
					struct rv_hash *nodes) {
	size_t at = 0;
	for (uint32_t i = 0; i < chunks->n_chunks; i++) {
		const size_t bytes = codec->encoded_bytes(codec, chunking_len(chunks, i));
		nodes[i] = merkle_leaf(i, encoded + at, bytes);
		at += bytes;
	}
	merkle_build(nodes, chunks->n_chunks);
}

/* Returns the root of the contribution as it would be sent by `as`. */
static struct rv_hash root_by(struct committer *c, const struct chunking *chunks, const struct codec *sent,
							  const struct codec *as, const uint8_t *encoded) {
	struct merkle_sum sum = {.n = 0};
	for (uint32_t i = 0; i < chunks->n_chunks; i++) {
		const size_t n = chunking_len(chunks, i);
		const enum rv_err e =
			recode_chunk(sent, as, encoded + chunking_offset_bytes(chunks, sent, i), n, c->bytes, c->values, NULL);
		RV_ASSERT(e == RV_OK); /* this participant encoded it */
		const struct rv_hash leaf = merkle_leaf(i, c->bytes, as->encoded_bytes(as, n));
		merkle_add(&sum, &leaf);
	}
	return merkle_sum_root(&sum);
}

void committer_make(struct committer *c, const struct global_config *g, uint64_t round, const uint8_t *encoded,
					struct commitment *out) {
	const struct chunking chunks = global_round_chunks(g, round);
	const struct codec *sent = global_sent(g);
	committer_tree(&chunks, sent, encoded, c->nodes);
	*out = (struct commitment){.n = 1, .roots = {{0, merkle_root(c->nodes, chunks.n_chunks)}}};
	for (int i = 0; i < c->coarser.n; i++) {
		const struct codec *as = c->coarser.step[i];
		out->roots[out->n++] = (struct commitment_root){as->id, root_by(c, &chunks, sent, as, encoded)};
	}
}
