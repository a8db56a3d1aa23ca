/* unproven.c: a worker that commits to nothing, checks no leaves and seals no means, by the linker
 * (--wrap): what commitments and seals cost is the difference (bench/defences.py). All workers of a
 * run have to be such ones. */
#include "net/seal.h"
#include "outer/committer.h"

#include <string.h>

typedef struct seal_ops seal_fn(const struct identity *who);
typedef void tree_fn(const struct chunking *chunks, const struct codec *codec, const uint8_t *encoded,
					 struct rv_hash *nodes);
seal_fn __real_seal_ed25519, __wrap_seal_ed25519;
tree_fn __wrap_committer_tree;

/* Signs the roots of reports, which a coordinator demands, and checks nothing. */
struct seal_ops __wrap_seal_ed25519(const struct identity *who) {
	struct seal_ops ops = __real_seal_ed25519(who);
	ops.verify = NULL;
	return ops;
}

/* Fills in what nobody looks at. */
void __wrap_committer_tree(const struct chunking *chunks, const struct codec *codec, const uint8_t *encoded,
						   struct rv_hash *nodes) {
	(void)codec, (void)encoded;
	memset(nodes, 1, merkle_nodes(chunks->n_chunks) * sizeof *nodes);
}
