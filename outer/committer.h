/* committer.h: makes the commitment to a contribution (base/commitment.h), and the tree from which
 * its chunks are proven. */
#ifndef RV_OUTER_COMMITTER_H
#define RV_OUTER_COMMITTER_H

#include "base/commitment.h"
#include "outer/global.h"
#include "outer/slow_codecs.h"

struct committer {
	struct slow_codecs coarser; /* codecs by which the run may ask for it, besides its own */
	struct rv_hash *nodes;      /* merkle_nodes of the longest fragment: the tree of the last commitment */
	float *values;              /* (chunk_elems), and `bytes` for a chunk: to encode again; NULL: no coarser codecs */
	uint8_t *bytes;
};

/* Takes memory for commitments. RV_E_NOMEM; *c may be released then. */
enum rv_err committer_init(struct committer *c, const struct run_config *run, const struct global_config *g,
						   struct rv_errtext *et);
void committer_release(struct committer *c); /* a zero *c is fine */

/* Makes the tree over `encoded`, a contribution to `round` by global_sent, and the roots for each
 * codec: it is encoded again for each coarser one. */
void committer_make(struct committer *c, const struct global_config *g, uint64_t round, const uint8_t *encoded,
					struct commitment *out);
/* Makes the tree over a vector that is cut by `chunks` and encoded by `codec` in nodes[merkle_nodes
 * (n_chunks)]. */
void committer_tree(const struct chunking *chunks, const struct codec *codec, const uint8_t *encoded,
					struct rv_hash *nodes);

#endif
