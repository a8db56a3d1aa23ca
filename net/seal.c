/* seal.c: see seal.h. */
#include "net/seal.h"

#include "base/assert.h"

#include <string.h>

static const char means_domain[] = "rivulet means", contribution_domain[] = "rivulet contribution";
enum {
	SCOPE_BYTES = NET_RUN_ID_BYTES + RV_HASH_BYTES + 8 + 8 + 4 + 1 + 4,
	SIGNED_MAX_BYTES = sizeof contribution_domain + SCOPE_BYTES + RV_HASH_BYTES
};

static void write_scope(const struct seal_scope *s, struct rv_writer *w) {
	rv_write_bytes(w, s->roster.b, RV_HASH_BYTES);
	rv_write_u64(w, s->term);
	rv_write_u64(w, s->round);
	rv_write_u32(w, s->attempt);
	rv_write_u8(w, s->kind);
	rv_write_u32(w, s->first);
}

struct seal_scope seal_scope_of_contribution(const uint8_t run_id[NET_RUN_ID_BYTES], const struct contribution_of *of) {
	struct seal_scope s = {.term = of->term, .round = of->round, .kind = SEAL_CONTRIBUTION, .first = of->codec};
	struct rv_hasher h = rv_hasher_of("rivulet process");
	rv_hash_u64(&h, of->term);
	rv_hash_u64(&h, of->round);
	rv_hash_u64(&h, of->boot);
	s.roster = rv_hash_final(&h);
	memcpy(s.run_id, run_id, sizeof s.run_id);
	return s;
}

/* Writes what is signed, and returns its bytes. */
static size_t signed_bytes(const struct seal_scope *scope, const struct rv_hash *root, uint8_t out[SIGNED_MAX_BYTES]) {
	struct rv_writer w = rv_writer_of(out, SIGNED_MAX_BYTES);
	if (scope->kind == SEAL_CONTRIBUTION)
		rv_write_bytes(&w, contribution_domain, sizeof contribution_domain);
	else
		rv_write_bytes(&w, means_domain, sizeof means_domain);
	rv_write_bytes(&w, scope->run_id, NET_RUN_ID_BYTES);
	write_scope(scope, &w);
	rv_write_bytes(&w, root->b, RV_HASH_BYTES);
	RV_ASSERT(!w.failed);
	return rv_writer_len(&w);
}

void seal_sign(const struct identity *owner, const struct seal_scope *scope, const struct rv_hash *root,
			   struct seal *out) {
	uint8_t bytes[SIGNED_MAX_BYTES];
	const size_t n = signed_bytes(scope, root, bytes);
	out->root = *root;
	identity_sign(owner, bytes, n, out->signature);
}

bool seal_verify(const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct seal *seal) {
	uint8_t bytes[SIGNED_MAX_BYTES];
	const size_t n = signed_bytes(scope, &seal->root, bytes);
	return identity_verify(key, bytes, n, seal->signature);
}

bool seal_scope_equal(const struct seal_scope *a, const struct seal_scope *b) {
	return memcmp(a->run_id, b->run_id, sizeof a->run_id) == 0 && rv_hash_equal(&a->roster, &b->roster) &&
		   a->term == b->term && a->round == b->round && a->attempt == b->attempt && a->kind == b->kind &&
		   a->first == b->first;
}

static void sign(void *ctx, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out) {
	seal_sign(ctx, scope, root, out);
}

static bool verify(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal) {
	(void)ctx;
	return seal_verify(key, scope, seal);
}

struct seal_ops seal_ed25519(const struct identity *identity) {
	return (struct seal_ops){.ctx = (void *)(uintptr_t)identity, .sign = identity ? sign : NULL, .verify = verify};
}

bool equivocation_proves(const struct equivocation *e, const struct seal_ops *ops) {
	return !rv_hash_equal(&e->seals[0].root, &e->seals[1].root) &&
		   ops->verify(ops->ctx, e->key, &e->scope, &e->seals[0]) &&
		   ops->verify(ops->ctx, e->key, &e->scope, &e->seals[1]);
}

void equivocation_write(const struct equivocation *e, struct rv_writer *w) {
	rv_write_u32(w, e->member);
	rv_write_bytes(w, e->key, NET_KEY_BYTES);
	write_scope(&e->scope, w);
	rv_write_u32(w, e->chunk);
	for (int i = 0; i < 2; i++) {
		rv_write_bytes(w, e->seals[i].root.b, RV_HASH_BYTES);
		rv_write_bytes(w, e->seals[i].signature, NET_SIG_BYTES);
	}
}

enum rv_err equivocation_read(struct rv_reader *r, const uint8_t run_id[NET_RUN_ID_BYTES], struct equivocation *out,
							  struct rv_errtext *et) {
	struct seal_scope *s = &out->scope;
	out->member = rv_read_u32(r);
	rv_read_copy(r, out->key, NET_KEY_BYTES);
	memcpy(s->run_id, run_id, NET_RUN_ID_BYTES);
	rv_read_copy(r, s->roster.b, RV_HASH_BYTES);
	s->term = rv_read_u64(r);
	s->round = rv_read_u64(r);
	s->attempt = rv_read_u32(r);
	s->kind = rv_read_u8(r);
	s->first = rv_read_u32(r);
	out->chunk = rv_read_u32(r);
	for (int i = 0; i < 2; i++) {
		rv_read_copy(r, out->seals[i].root.b, RV_HASH_BYTES);
		rv_read_copy(r, out->seals[i].signature, NET_SIG_BYTES);
	}
	if (rv_reader_ok(r) && (s->kind > SEAL_CONTRIBUTION || out->chunk > NET_MAX_CHUNKS || out->member == NET_NO_MEMBER))
		return rv_fail(et, RV_E_INVALID, "a proof against member %u: kind = %u, chunk = %u", out->member, s->kind,
					   out->chunk);
	return RV_OK;
}
