/* record.c: see record.h. All fields of all types, in the order of the struct: one layout is one
 * thing to get right, and only a roster or a commit has lists. */
#include "coordinator/store/record.h"

#include "net/control/layout.h"

/* Version 1 had no core_record.overran. */
enum { RECORD_VERSION = 2, RECORD_WITHOUT_OVERRAN = 1 };

_Static_assert(NET_MAX_ROSTER *(4 + 8 + 8 + 8 + 8 + 12 + 2 + 4 + SEAL_BYTES) + 2 * NET_MAX_ROSTER / 8 + NET_NAME_BYTES +
					   NET_MAX_CANDIDATES * (3 + NET_ADDR_BYTES) + NET_KEY_BYTES + 3 * RV_HASH_BYTES + 98 <=
				   RECORD_MAX_BYTES,
			   "the largest record fits");

static const struct layout candidate[] = {
	LAYOUT_FIELD(PLAIN, struct candidate_ref, kind),
	LAYOUT_FIELD(TEXT, struct candidate_ref, addr),
	LAYOUT_LAST,
};

static const struct layout fields[] = {
	LAYOUT_FIELD(PLAIN, struct core_record, type),
	LAYOUT_FIELD(PLAIN, struct core_record, id),
	LAYOUT_FIELD(PLAIN, struct core_record, doc_seq),
	LAYOUT_FIELD(PLAIN, struct core_record, member),
	LAYOUT_FIELD(PLAIN, struct core_record, key),
	LAYOUT_FIELD(TEXT, struct core_record, name),
	LAYOUT_COUNTED(struct core_record, candidates, n_candidates, candidate),
	LAYOUT_FIELD(BOOL, struct core_record, banned),
	LAYOUT_FIELD(PLAIN, struct core_record, token_hash),
	LAYOUT_FIELD(PLAIN, struct core_record, blame_level),
	LAYOUT_FIELD(PLAIN, struct core_record, blame_until),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.rounds),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.audited),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.strikes),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.reason),
	LAYOUT_FIELD(BOOL, struct core_record, reputation.appealed),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.struck_round),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.quarantined_until),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.until_before),
	LAYOUT_FIELD(PLAIN, struct core_record, reputation.evaded),
	LAYOUT_FIELD(BOOL, struct core_record, reputation.spent),
	LAYOUT_FIELD(PLAIN, struct core_record, term),
	LAYOUT_FIELD(PLAIN, struct core_record, round),
	LAYOUT_FIELD(PLAIN, struct core_record, attempt),
	LAYOUT_FIELD(PLAIN, struct core_record, digest),
	LAYOUT_FIELD(PLAIN, struct core_record, chain),
	LAYOUT_FIELD(PLAIN, struct core_record, n_chunks),
	LAYOUT_FIELD(PLAIN, struct core_record, slow_deadline_ms),
	LAYOUT_COUNT_OF(struct core_record, members, n_members),
	LAYOUT_COUNT_OF(struct core_record, blamed, n_blamed),
	LAYOUT_LAST,
};

void record_encode(const struct core_record *rec, struct rv_writer *w) {
	rv_write_u8(w, RECORD_VERSION);
	layout_write(fields, rec, w);
	rv_write_u8(w, rec->overran);
	for (int i = 0; i < rec->n_members; i++) {
		rv_write_u32(w, rec->members[i]);
		rv_write_u64(w, rec->tokens[i]);
		rv_write_u64(w, rec->boots[i]);
		rv_write_u64(w, rec->rates[i]);
		rv_write_u64(w, rec->lease_first[i]);
		rv_write_u32(w, rec->lease_count[i]);
		rv_write_u64(w, rec->downs[i]);
		rv_write_u8(w, rec->codecs[i]);
		rv_write_u8(w, rec->parts[i]);
		rv_write_bytes(w, rec->roots[i].root.b, RV_HASH_BYTES);
		rv_write_bytes(w, rec->roots[i].signature, NET_SIG_BYTES);
	}
	for (int k = 0; k < SET_WORDS(rec->n_members); k++) {
		rv_write_u64(w, rec->owners[k]);
		rv_write_u64(w, rec->relayed[k]);
	}
	for (int i = 0; i < rec->n_blamed; i++)
		rv_write_u32(w, rec->blamed[i]);
	if (rec->type == CORE_PROOF) {
		rv_write_bytes(w, rec->proof.scope.run_id, NET_RUN_ID_BYTES);
		equivocation_write(&rec->proof, w);
	}
}

static enum rv_err read_proof(struct rv_reader *r, struct core_record *out, struct rv_errtext *et) {
	uint8_t run_id[NET_RUN_ID_BYTES] = {0};
	if (out->type != CORE_PROOF)
		return RV_OK;
	rv_read_copy(r, run_id, sizeof run_id);
	return equivocation_read(r, run_id, &out->proof, et) == RV_OK ? RV_OK : RV_E_CORRUPT;
}

static void read_lists(struct rv_reader *r, struct core_record *out) {
	for (int i = 0; i < out->n_members; i++) {
		out->members[i] = rv_read_u32(r);
		out->tokens[i] = rv_read_u64(r);
		out->boots[i] = rv_read_u64(r);
		out->rates[i] = rv_read_u64(r);
		out->lease_first[i] = rv_read_u64(r);
		out->lease_count[i] = rv_read_u32(r);
		out->downs[i] = rv_read_u64(r);
		out->codecs[i] = rv_read_u8(r);
		out->parts[i] = rv_read_u8(r);
		rv_read_copy(r, out->roots[i].root.b, RV_HASH_BYTES);
		rv_read_copy(r, out->roots[i].signature, NET_SIG_BYTES);
	}
	for (int k = 0; k < SET_WORDS(out->n_members); k++) {
		out->owners[k] = rv_read_u64(r);
		out->relayed[k] = rv_read_u64(r);
	}
	for (int i = 0; i < out->n_blamed; i++)
		out->blamed[i] = rv_read_u32(r);
}

enum rv_err record_decode(const void *p, size_t n, struct core_record *out, struct rv_errtext *et) {
	*out = (struct core_record){0};
	struct rv_reader r = rv_reader_of(p, n);
	uint8_t version = rv_read_u8(&r);
	if (rv_reader_ok(&r) && version != RECORD_VERSION && version != RECORD_WITHOUT_OVERRAN)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "a record of version %u, this program reads versions up to %d: use the release that wrote it, "
					   "or a later one",
					   version, (int)RECORD_VERSION);
	if (layout_read(fields, &r, out, "a record", et) != RV_OK)
		return RV_E_CORRUPT;
	out->overran = version == RECORD_WITHOUT_OVERRAN ? CORE_OVERRAN_UNKNOWN : rv_read_u8(&r);
	read_lists(&r, out);
	RV_TRY(read_proof(&r, out, et));
	if (!rv_reader_done(&r))
		return rv_fail(et, RV_E_CORRUPT, "a record of %zu bytes: cut short, too long, or with impossible values", n);
	return RV_OK;
}
