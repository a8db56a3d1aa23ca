/* record.c: see record.h. All fields of all types, in the order of the struct: records are few and
 * small, and one layout is one thing to get right. */
#include "coordinator/store/record.h"

enum { RECORD_VERSION = 1 };

_Static_assert(NET_MAX_MEMBERS *(4 + 8 + 8 + 8) + NET_NAME_BYTES + NET_ADDR_BYTES + NET_KEY_BYTES + 3 * RV_HASH_BYTES +
					   64 <=
				   RECORD_MAX_BYTES,
			   "the largest record fits");

void record_encode(const struct core_record *rec, struct rv_writer *w) {
	rv_write_u8(w, RECORD_VERSION);
	rv_write_u8(w, rec->type);
	rv_write_u64(w, rec->id);
	rv_write_u64(w, rec->doc_seq);
	rv_write_u32(w, rec->member);
	rv_write_bytes(w, rec->key, sizeof rec->key);
	rv_write_str(w, rec->name);
	rv_write_str(w, rec->addr);
	rv_write_u8(w, rec->banned);
	rv_write_bytes(w, rec->token_hash.b, RV_HASH_BYTES);
	rv_write_u64(w, rec->term);
	rv_write_u64(w, rec->round);
	rv_write_u32(w, rec->attempt);
	rv_write_bytes(w, rec->digest.b, RV_HASH_BYTES);
	rv_write_bytes(w, rec->chain.b, RV_HASH_BYTES);
	rv_write_u32(w, rec->n_chunks);
	rv_write_u16(w, rec->n_members);
	for (int i = 0; i < rec->n_members; i++) {
		rv_write_u32(w, rec->members[i]);
		rv_write_u64(w, rec->tokens[i]);
		rv_write_u64(w, rec->boots[i]);
		rv_write_u64(w, rec->rates[i]);
	}
	rv_write_u64(w, rec->owners);
	rv_write_u64(w, rec->blamed);
}

static void read_participants(struct rv_reader *r, struct core_record *out) {
	out->n_members = rv_read_u16(r);
	if (out->n_members > NET_MAX_MEMBERS) {
		r->failed = true;
		return;
	}
	for (int i = 0; i < out->n_members; i++) {
		out->members[i] = rv_read_u32(r);
		out->tokens[i] = rv_read_u64(r);
		out->boots[i] = rv_read_u64(r);
		out->rates[i] = rv_read_u64(r);
	}
}

enum rv_err record_decode(const void *p, size_t n, struct core_record *out, struct rv_errtext *et) {
	*out = (struct core_record){0};
	struct rv_reader r = rv_reader_of(p, n);
	uint8_t version = rv_read_u8(&r);
	if (rv_reader_ok(&r) && version != RECORD_VERSION)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"a record of version %u, this program reads version %d: use the release that wrote it, or a later one",
			version, (int)RECORD_VERSION);
	out->type = rv_read_u8(&r);
	out->id = rv_read_u64(&r);
	out->doc_seq = rv_read_u64(&r);
	out->member = rv_read_u32(&r);
	rv_read_copy(&r, out->key, sizeof out->key);
	rv_read_str(&r, out->name, sizeof out->name);
	rv_read_str(&r, out->addr, sizeof out->addr);
	out->banned = rv_read_u8(&r) != 0;
	rv_read_copy(&r, out->token_hash.b, RV_HASH_BYTES);
	out->term = rv_read_u64(&r);
	out->round = rv_read_u64(&r);
	out->attempt = rv_read_u32(&r);
	rv_read_copy(&r, out->digest.b, RV_HASH_BYTES);
	rv_read_copy(&r, out->chain.b, RV_HASH_BYTES);
	out->n_chunks = rv_read_u32(&r);
	read_participants(&r, out);
	out->owners = rv_read_u64(&r);
	out->blamed = rv_read_u64(&r);
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_CORRUPT, "a record of %zu bytes: cut short, too long, or with impossible values", n);
	return RV_OK;
}
