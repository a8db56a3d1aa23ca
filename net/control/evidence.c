/* evidence.c: see evidence.h.
 *
 * Order on the wire: head, term u64, round u64, attempt u32, has proof u8, the proof; n u16, the
 * seals; n u32, the leaves; has sums u8, the sums (shown_sums.h). */
#include "net/control/evidence.h"

#include "base/assert.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

static const char WHAT[] = "evidence";

static const struct layout head[] = {
	LAYOUT_FIELD(PLAIN, struct evidence, term),
	LAYOUT_FIELD(PLAIN, struct evidence, round),
	LAYOUT_FIELD(PLAIN, struct evidence, attempt),
	LAYOUT_FIELD(BOOL, struct evidence, has_proof),
	LAYOUT_LAST,
};

static const struct layout seal[] = {
	LAYOUT_FIELD(PLAIN, struct owner_seal, member),         LAYOUT_FIELD(PLAIN, struct owner_seal, kind),
	LAYOUT_FIELD(PLAIN, struct owner_seal, first),          LAYOUT_FIELD(PLAIN, struct owner_seal, seal.root),
	LAYOUT_FIELD(PLAIN, struct owner_seal, seal.signature), LAYOUT_LAST,
};

static const struct layout seals[] = {
	LAYOUT_COUNTED(struct evidence, seals, n_seals, seal),
	LAYOUT_LAST,
};

size_t evidence_max_bytes(uint32_t n_means) {
	return 8 + 8 + 8 + 4 + 1 + EQUIVOCATION_BYTES + 2 + NET_MAX_SEALS * (4 + 1 + 4 + SEAL_BYTES) + 4 +
		   (size_t)n_means * RV_HASH_BYTES + 1;
}

void evidence_encode(const struct evidence *m, uint32_t version, struct rv_writer *w) {
	RV_ASSERT(m->n_means <= NET_MAX_CHUNKS);
	control_write_head(w, CONTROL_TAG_EVIDENCE, version);
	layout_write(head, m, w);
	if (m->has_proof)
		equivocation_write(&m->proof, w);
	layout_write(seals, m, w);
	rv_write_u32(w, m->n_means);
	if (m->n_means > 0)
		rv_write_bytes(w, m->means, m->n_means * sizeof m->means[0]);
	rv_write_u8(w, m->has_sums);
	if (m->has_sums)
		shown_sums_write(&m->sums, w);
}

enum rv_err evidence_decode(const void *p, size_t n, const uint8_t run_id[NET_RUN_ID_BYTES], struct evidence *out,
							struct rv_errtext *et) {
	*out = (struct evidence){.version = 0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_EVIDENCE, WHAT, &out->version, et));
	RV_TRY(layout_read(head, &r, out, WHAT, et));
	if (out->has_proof)
		RV_TRY(equivocation_read(&r, run_id, &out->proof, et));
	RV_TRY(layout_read(seals, &r, out, WHAT, et));
	out->n_means = rv_read_u32(&r);
	if (out->n_means > NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "%s: %u means, at most %d", WHAT, out->n_means, (int)NET_MAX_CHUNKS);
	out->means = (const struct rv_hash *)(const void *)rv_read_span(&r, (size_t)out->n_means * RV_HASH_BYTES);
	const uint8_t has_sums = rv_read_u8(&r);
	if (has_sums > 1)
		return rv_fail(et, RV_E_INVALID, "%s: has_sums = %u, must be 0 or 1", WHAT, has_sums);
	out->has_sums = has_sums == 1;
	if (out->has_sums)
		RV_TRY(shown_sums_read(&r, &out->sums, et));
	return control_read_end(&r, WHAT, et);
}
