/* shown_sums.c: see shown_sums.h.
 *
 * Order on the wire: round u64, attempt u32, chunk u32, n_rows u8, n_path u8; of each row its leaf,
 * the root and the signature of its seal, and the path. */
#include "net/control/shown_sums.h"

#include "base/assert.h"

void shown_sums_write(const struct shown_sums *s, struct rv_writer *w) {
	RV_ASSERT(s->n_rows <= NET_MAX_ROWS && s->n_path <= SHOWN_PATH_MAX);
	rv_write_u64(w, s->round);
	rv_write_u32(w, s->attempt);
	rv_write_u32(w, s->chunk);
	rv_write_u8(w, s->n_rows);
	rv_write_u8(w, s->n_path);
	for (int i = 0; i < s->n_rows; i++) {
		const struct shown_sum *row = &s->rows[i];
		rv_write_bytes(w, row->leaf.b, RV_HASH_BYTES);
		rv_write_bytes(w, row->seal.root.b, RV_HASH_BYTES);
		rv_write_bytes(w, row->seal.signature, NET_SIG_BYTES);
		rv_write_bytes(w, row->path, s->n_path * sizeof row->path[0]);
	}
}

enum rv_err shown_sums_read(struct rv_reader *r, struct shown_sums *out, struct rv_errtext *et) {
	out->round = rv_read_u64(r);
	out->attempt = rv_read_u32(r);
	out->chunk = rv_read_u32(r);
	out->n_rows = rv_read_u8(r);
	out->n_path = rv_read_u8(r);
	if (out->n_rows > NET_MAX_ROWS || out->n_path > SHOWN_PATH_MAX || out->chunk >= NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "sums: of %u rows, with paths of %u, of chunk %u: at most %d, %d, below %d",
					   out->n_rows, out->n_path, out->chunk, (int)NET_MAX_ROWS, (int)SHOWN_PATH_MAX,
					   (int)NET_MAX_CHUNKS);
	for (int i = 0; i < out->n_rows; i++) {
		struct shown_sum *row = &out->rows[i];
		rv_read_copy(r, row->leaf.b, RV_HASH_BYTES);
		rv_read_copy(r, row->seal.root.b, RV_HASH_BYTES);
		rv_read_copy(r, row->seal.signature, NET_SIG_BYTES);
		rv_read_copy(r, row->path, out->n_path * sizeof row->path[0]);
	}
	return RV_OK;
}

bool shown_sum_holds(const struct shown_sums *s, int row, const struct sums_place *place,
					 const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct seal_ops *ops) {
	const struct shown_sum *of = &s->rows[row];
	const struct merkle_range range = {place->n, place->at, 1};
	RV_ASSERT(row < s->n_rows && scope->kind == SEAL_SUMS);
	return merkle_check(&of->seal.root, &range, &of->leaf, of->path, s->n_path) &&
		   ops->verify(ops->ctx, key, scope, &of->seal);
}

struct rv_hash shown_sums_hash(const struct rv_hash *leaves, int n_rows) {
	struct rv_hasher h = rv_hasher_of("rivulet sums");
	for (int i = 0; i < n_rows; i++)
		rv_hash_update(&h, leaves[i].b, RV_HASH_BYTES);
	return rv_hash_final(&h);
}
