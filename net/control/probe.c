/* probe.c: see probe.h. */
#include "net/control/probe.h"

#include "net/address_reach.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

#include <string.h>

static const char WHAT[] = "probes";

static const struct layout address[] = {
	LAYOUT_FIELD(TEXT, struct probe_addr, addr),
	LAYOUT_LAST,
};

static const struct layout probe[] = {
	LAYOUT_FIELD(PLAIN, struct probe, id),
	LAYOUT_FIELD(PLAIN, struct probe, key),
	LAYOUT_COUNTED(struct probe, addrs, n, address),
	LAYOUT_LAST,
};

static const struct layout probes[] = {
	LAYOUT_COUNTED(struct probes, list, n, probe),
	LAYOUT_LAST,
};

static const struct layout result[] = {{.kind = LAYOUT_PLAIN, .bytes = 1}, LAYOUT_LAST};

static const struct layout probed[] = {
	LAYOUT_FIELD(PLAIN, struct probed, id),
	LAYOUT_COUNTED(struct probed, results, n, result),
	LAYOUT_LAST,
};

static const struct layout probed_all[] = {
	LAYOUT_COUNTED(struct probed_list, list, n, probed),
	LAYOUT_LAST,
};

void probes_encode(const struct probes *m, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_PROBES, PROBE_VERSION);
	layout_write(probes, m, w);
}

bool probes_are(const void *p, size_t n) {
	struct rv_reader r = rv_reader_of(p, n);
	return rv_read_u32(&r) == CONTROL_TAG_PROBES && rv_reader_ok(&r);
}

static bool is_numeric(const char *text) {
	struct address a;
	return address_parse(text, &a, NULL) == RV_OK && a.port != 0 && address_reach(&a) != ADDRESS_UNUSABLE;
}

static const char *invalid(const struct probe *m) {
	if (m->id == 0)
		return "its number is 0";
	if (m->n == 0)
		return "it names no address";
	for (int i = 0; i < m->n; i++)
		if (!is_numeric(m->addrs[i].addr))
			return "an address is not a numeric one with a port that can be dialed";
	return NULL;
}

enum rv_err probes_decode(const void *p, size_t n, struct probes *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct probes){0};
	RV_TRY(control_read_head(&r, CONTROL_TAG_PROBES, WHAT, &version, et));
	if (version != PROBE_VERSION)
		return rv_fail(et, RV_E_PROTOCOL, "%s: version %u, this program knows %d", WHAT, version, (int)PROBE_VERSION);
	RV_TRY(layout_read(probes, &r, out, WHAT, et));
	RV_TRY(control_read_end(&r, WHAT, et));
	if (out->n == 0)
		return rv_fail(et, RV_E_INVALID, "%s: there is none", WHAT);
	for (int i = 0; i < out->n; i++) {
		const char *why = invalid(&out->list[i]);
		if (why != NULL)
			return rv_fail(et, RV_E_INVALID, "%s[%d]: %s", WHAT, i, why);
	}
	return RV_OK;
}

void probed_write(const struct probed_list *m, struct rv_writer *w) {
	layout_write(probed_all, m, w);
}

static enum rv_err check_probed(const struct probed *m, struct rv_errtext *et) {
	if (m->id == 0 || m->n == 0)
		return rv_fail(et, RV_E_INVALID, "probed: %u results of probe %llu, neither may be 0", m->n,
					   (unsigned long long)m->id);
	for (int i = 0; i < m->n; i++)
		if (m->results[i] == PROBE_NOT_KNOWN || m->results[i] >= PROBE_RESULTS)
			return rv_fail(et, RV_E_INVALID, "probed: result %u is not known, must be 1..%d", m->results[i],
						   (int)PROBE_RESULTS - 1);
	return RV_OK;
}

enum rv_err probed_read(struct rv_reader *r, struct probed_list *out, struct rv_errtext *et) {
	*out = (struct probed_list){0};
	RV_TRY(layout_read(probed_all, r, out, "probed", et));
	if (!rv_reader_ok(r))
		return RV_OK; /* the end of the report's decoder refuses it */
	for (int i = 0; i < out->n; i++)
		RV_TRY(check_probed(&out->list[i], et));
	return RV_OK;
}

const char *reach_name(uint8_t reach) {
	static const char *const names[REACH_KINDS] = {"not known", "direct", "mapped", "punch", "relay"};
	return names[reach < REACH_KINDS ? reach : REACH_NOT_KNOWN];
}
