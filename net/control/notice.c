/* notice.c: the encoding of the notice in a reply to a report. */
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

static const char WHAT[] = "notice";

static const struct layout other[] = {{.kind = LAYOUT_PLAIN, .bytes = sizeof(uint32_t)}, LAYOUT_LAST};

static const struct layout fields[] = {
	LAYOUT_FIELD(PLAIN, struct notice, kind),        LAYOUT_FIELD(PLAIN, struct notice, reason),
	LAYOUT_FIELD(BOOL, struct notice, left_out),     LAYOUT_FIELD(PLAIN, struct notice, round),
	LAYOUT_FIELD(PLAIN, struct notice, until_round), LAYOUT_COUNTED(struct notice, others, n_others, other),
	LAYOUT_FIELD(PLAIN, struct notice, rate),        LAYOUT_FIELD(PLAIN, struct notice, needs_ms),
	LAYOUT_FIELD(PLAIN, struct notice, deadline_ms), LAYOUT_LAST,
};

/* Behind them, and only if it is true: so builds without it read all other notices. */
static const struct layout last_field[] = {LAYOUT_FIELD(BOOL, struct notice, final), LAYOUT_LAST};

void notice_encode(const struct notice *m, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_NOTICE, NOTICE_VERSION);
	layout_write(fields, m, w);
	if (m->final)
		layout_write(last_field, m, w);
}

static const char *invalid(const struct notice *m) {
	if ((m->kind == NOTICE_APART) != (m->n_others > 0))
		return "members are named where there are none, or none where there are some";
	if (m->kind != NOTICE_RESTS && (m->rate != 0 || m->needs_ms != 0 || m->deadline_ms != 0))
		return "it describes a line where the member does not rest";
	if (m->final && m->kind != NOTICE_STRUCK)
		return "a look at a strike is over where there is none";
	for (int i = 0; i < m->n_others; i++)
		if (m->others[i] == NET_NO_MEMBER)
			return "a member's number is that of none";
	return NULL;
}

static bool is_known(const struct notice *m) {
	if (m->kind == NOTICE_APART || m->kind == NOTICE_RESTS)
		return m->reason == 0;
	if (m->kind == NOTICE_STRUCK)
		return m->reason >= NOTICE_STRUCK_WITHHELD && m->reason <= NOTICE_STRUCK_EVADED;
	return m->kind == NOTICE_NOT_COUNTED && m->reason >= NOTICE_UNREACHED && m->reason <= NOTICE_WRONG_SIZE;
}

enum rv_err notice_decode(const void *p, size_t n, struct notice *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct notice){0};
	RV_TRY(control_read_head(&r, CONTROL_TAG_NOTICE, WHAT, &version, et));
	if (version != NOTICE_VERSION)
		return rv_fail(et, RV_E_PROTOCOL, "%s: version %u, this program knows %d", WHAT, version, (int)NOTICE_VERSION);
	RV_TRY(layout_read(fields, &r, out, WHAT, et));
	if (rv_reader_ok(&r) && !rv_reader_done(&r)) {
		RV_TRY(layout_read(last_field, &r, out, WHAT, et));
		if (rv_reader_ok(&r) && !out->final)
			return rv_fail(et, RV_E_INVALID, "%s: a last byte of 0, which is left out", WHAT);
	}
	const char *why = invalid(out);
	if (why != NULL && rv_reader_ok(&r))
		return rv_fail(et, RV_E_INVALID, "%s: %s", WHAT, why);
	RV_TRY(control_read_end(&r, WHAT, et));
	if (!is_known(out))
		return rv_fail(et, RV_E_PROTOCOL, "%s: kind %u with reason %u is not known", WHAT, out->kind, out->reason);
	return RV_OK;
}
