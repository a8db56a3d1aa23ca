/* reach_test.c: see reach_test.h. */
#include "net/control/reach_test.h"

#include "net/address.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

#include <string.h>

static const char REQUEST[] = "reach-test", REPLY[] = "reply to reach-test";

static const struct layout address[] = {LAYOUT_FIELD(TEXT, struct probe_addr, addr), LAYOUT_LAST};
static const struct layout result[] = {{.kind = LAYOUT_PLAIN, .bytes = 1}, LAYOUT_LAST};
static const struct layout relay[] = {
	LAYOUT_FIELD(PLAIN, struct relay_ref, key),
	LAYOUT_FIELD(TEXT, struct relay_ref, addr),
	LAYOUT_LAST,
};

static const struct layout request[] = {
	LAYOUT_FIELD(PLAIN, struct reach_test_request, run_id),
	LAYOUT_FIELD(BOOL, struct reach_test_request, has_token),
	LAYOUT_FIELD(PLAIN, struct reach_test_request, token),
	LAYOUT_COUNTED(struct reach_test_request, addrs, n, address),
	LAYOUT_LAST,
};

static const struct layout reply[] = {
	LAYOUT_FIELD(TEXT, struct reach_test_reply, seen),
	LAYOUT_FIELD(PLAIN, struct reach_test_reply, n_probers),
	LAYOUT_FIELD(BOOL, struct reach_test_reply, done),
	LAYOUT_COUNTED(struct reach_test_reply, results, n, result),
	LAYOUT_COUNTED(struct reach_test_reply, relays, n_relays, relay),
	LAYOUT_LAST,
};

/* Checks ":port" or "host:port" with a numeric host; *has_host: which. */
static enum rv_err check_addr(const char *addr, bool *has_host, struct rv_errtext *et) {
	struct sockaddr_storage sa;
	struct address a;
	socklen_t n;
	RV_TRY(address_parse(addr, &a, et));
	*has_host = a.host[0] != '\0';
	if (a.port == 0)
		return rv_fail(et, RV_E_INVALID, "\"%s\": port 0, must be 1 to 65535", addr);
	if (*has_host && !address_to_socket(&a, &sa, &n))
		return rv_fail(et, RV_E_INVALID, "\"%s\": the host must be a number", addr);
	return RV_OK;
}

void reach_test_request_encode(const struct reach_test_request *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_REACH_REQUEST, version);
	layout_write(request, m, w);
}

enum rv_err reach_test_request_decode(const void *p, size_t n, struct reach_test_request *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	*out = (struct reach_test_request){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_REACH_REQUEST, REQUEST, &out->version, et));
	RV_TRY(layout_read(request, &r, out, REQUEST, et));
	RV_TRY(control_read_end(&r, REQUEST, et));
	for (int i = 0; i < out->n; i++) {
		bool has_host = false;
		enum rv_err e = check_addr(out->addrs[i].addr, &has_host, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "%s: address %d", REQUEST, i);
		if (has_host && out->n > 1)
			return rv_fail(et, RV_E_INVALID, "%s: %u addresses, one of them \"%s\": a given host must be the only one",
						   REQUEST, out->n, out->addrs[i].addr);
	}
	return RV_OK;
}

void reach_test_reply_encode(const struct reach_test_reply *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_REACH_REPLY, version);
	layout_write(reply, m, w);
}

static const char *reply_invalid(const struct reach_test_reply *m) {
	struct sockaddr_storage sa;
	struct address seen = {.port = 1};
	socklen_t n;
	memcpy(seen.host, m->seen, sizeof seen.host);
	if (seen.host[0] == '\0' || !address_to_socket(&seen, &sa, &n))
		return "the host that is seen is no number";
	for (int i = 0; i < m->n; i++)
		if (m->results[i] >= PROBE_RESULTS)
			return "a result is not known";
	return NULL;
}

enum rv_err reach_test_reply_decode(const void *p, size_t n, struct reach_test_reply *out, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(p, n);
	uint32_t version;
	*out = (struct reach_test_reply){0};
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_REACH_REPLY, REPLY, &version, et));
	RV_TRY(layout_read(reply, &r, out, REPLY, et));
	RV_TRY(control_read_end(&r, REPLY, et));
	const char *why = reply_invalid(out);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s", REPLY, why);
	for (int i = 0; i < out->n_relays; i++)
		RV_TRY(control_check_addr(out->relays[i].addr, et));
	return RV_OK;
}
