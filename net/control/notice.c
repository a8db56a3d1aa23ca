/* notice.c: the encoding of the notice in a reply to a report. */
#include "net/control/control.h"
#include "net/control/fields.h"

static const char WHAT[] = "notice";

void notice_encode(const struct notice *m, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_NOTICE, NOTICE_VERSION);
	rv_write_u8(w, m->kind);
	rv_write_u8(w, m->reason);
	rv_write_u8(w, m->left_out);
	rv_write_u64(w, m->round);
	rv_write_u64(w, m->until_round);
	rv_write_u8(w, m->n_others);
	for (int i = 0; i < m->n_others; i++)
		rv_write_u32(w, m->others[i]);
}

static void read_others(struct rv_reader *r, struct notice *out) {
	out->n_others = rv_read_u8(r);
	for (int i = 0; i < out->n_others && i < NOTICE_MAX_OTHERS; i++)
		out->others[i] = rv_read_u32(r);
}

static const char *invalid(const struct notice *m) {
	if (m->n_others > NOTICE_MAX_OTHERS)
		return "more members than a notice names";
	if ((m->kind == NOTICE_APART) != (m->n_others > 0))
		return "members are named where there are none, or none where there are some";
	for (int i = 0; i < m->n_others; i++)
		if (m->others[i] >= NET_MAX_MEMBERS)
			return "a member's number is too large";
	return NULL;
}

static bool is_known(const struct notice *m) {
	if (m->kind == NOTICE_APART)
		return m->reason == 0;
	return m->kind == NOTICE_NOT_COUNTED && m->reason >= NOTICE_UNREACHED && m->reason <= NOTICE_WRONG_SIZE;
}

enum rv_err notice_decode(const void *p, size_t n, struct notice *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct notice){0};
	RV_TRY(control_read_head(&r, CONTROL_TAG_NOTICE, WHAT, &version, et));
	if (version != NOTICE_VERSION)
		return rv_fail(et, RV_E_PROTOCOL, "%s: version %u, this program knows %d", WHAT, version, (int)NOTICE_VERSION);
	out->kind = rv_read_u8(&r);
	out->reason = rv_read_u8(&r);
	out->left_out = control_read_bool(&r);
	out->round = rv_read_u64(&r);
	out->until_round = rv_read_u64(&r);
	read_others(&r, out);
	const char *why = invalid(out);
	if (why != NULL && rv_reader_ok(&r))
		return rv_fail(et, RV_E_INVALID, "%s: %s", WHAT, why);
	RV_TRY(control_read_end(&r, WHAT, et));
	if (!is_known(out))
		return rv_fail(et, RV_E_PROTOCOL, "%s: kind %u with reason %u is not known", WHAT, out->kind, out->reason);
	return RV_OK;
}
