/* candidate.c: the lists of addresses in reports and documents (net/control/candidate.h). */
#include "net/control/candidate.h"

#include "net/address.h"

#include <string.h>

const char *candidate_kind_name(uint8_t kind) {
	static const char *const names[CANDIDATE_KINDS] = {"seen", "reflected", "private", "given"};
	return kind < CANDIDATE_KINDS ? names[kind] : "unknown";
}

bool candidates_equal(const struct candidate_ref *a, int n_a, const struct candidate_ref *b, int n_b) {
	if (n_a != n_b)
		return false;
	for (int i = 0; i < n_a; i++)
		if (a[i].kind != b[i].kind || strcmp(a[i].addr, b[i].addr) != 0)
			return false;
	return true;
}

const char *candidates_seen(const struct candidate_ref *list, int n) {
	for (int i = 0; i < n; i++)
		if (list[i].kind == CANDIDATE_SEEN)
			return list[i].addr;
	return "";
}

static bool was_seen(const struct candidate_ref *c) {
	return c->kind == CANDIDATE_SEEN || c->kind == CANDIDATE_REFLECTED;
}

/* Compares the hosts of two texts "host:port". */
static bool same_host(const char *a, const char *b) {
	const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');
	return end_a != NULL && end_b != NULL && end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

bool candidates_share_host(const struct candidate_ref *a, int n_a, const struct candidate_ref *b, int n_b) {
	for (int i = 0; i < n_a; i++)
		for (int k = 0; k < n_b; k++)
			if (was_seen(&a[i]) && was_seen(&b[k]) && same_host(a[i].addr, b[k].addr))
				return true;
	return false;
}

void candidates_write(const struct candidate *list, uint8_t n, struct rv_writer *w) {
	rv_write_u8(w, n);
	for (int i = 0; i < n; i++) {
		rv_write_u8(w, list[i].kind);
		rv_write_str(w, list[i].addr);
		if (list[i].kind != CANDIDATE_REFLECTED)
			continue;
		rv_write_u8(w, list[i].relay);
		rv_write_u64(w, list[i].unix_s);
		rv_write_bytes(w, list[i].signature, NET_SIG_BYTES);
	}
}

enum rv_err candidates_read(struct rv_reader *r, struct candidate *list, uint8_t *n, const char *what,
							struct rv_errtext *et) {
	*n = rv_read_u8(r);
	if (*n > NET_MAX_CANDIDATES)
		return rv_fail(et, RV_E_INVALID, "%s: %u candidates, at most %d", what, *n, (int)NET_MAX_CANDIDATES);
	for (int i = 0; i < *n; i++) {
		list[i].kind = rv_read_u8(r);
		rv_read_str(r, list[i].addr, sizeof list[i].addr);
		if (list[i].kind != CANDIDATE_REFLECTED)
			continue;
		list[i].relay = rv_read_u8(r);
		list[i].unix_s = rv_read_u64(r);
		rv_read_copy(r, list[i].signature, NET_SIG_BYTES);
	}
	return RV_OK;
}

/* Checks the text of an address: "host:port" with a numeric host, or ":port" without one. */
static enum rv_err check_addr(const char *addr, bool has_host, struct rv_errtext *et) {
	struct sockaddr_storage sa;
	struct address a;
	socklen_t n;
	RV_TRY(address_parse(addr, &a, et));
	if (a.port == 0)
		return rv_fail(et, RV_E_INVALID, "address \"%s\": port 0, must be 1 to 65535", addr);
	if (!has_host && a.host[0] != '\0')
		return rv_fail(et, RV_E_INVALID, "address \"%s\": must be \":port\", the coordinator fills in the host", addr);
	if (has_host && (a.host[0] == '\0' || !address_to_socket(&a, &sa, &n)))
		return rv_fail(et, RV_E_INVALID, "address \"%s\": the host must be a number", addr);
	return RV_OK;
}

enum rv_err candidates_check(const struct candidate *list, int n, struct rv_errtext *et) {
	if (n == 0)
		return rv_fail(et, RV_E_INVALID, "no candidate: the first must be the port on which it listens");
	for (int i = 0; i < n; i++) {
		const struct candidate *c = &list[i];
		if (c->kind >= CANDIDATE_KINDS || (c->kind == CANDIDATE_SEEN) != (i == 0))
			return rv_fail(et, RV_E_INVALID, "candidates[%d].kind = %u: the first must be %d, the others 1..%d", i,
						   c->kind, (int)CANDIDATE_SEEN, (int)CANDIDATE_KINDS - 1);
		if (c->kind == CANDIDATE_REFLECTED && (c->relay == 0 || c->relay > NET_MAX_RELAYS))
			return rv_fail(et, RV_E_INVALID, "candidates[%d].relay = %u, must be 1..%d", i, c->relay,
						   (int)NET_MAX_RELAYS);
		enum rv_err e = check_addr(c->addr, c->kind != CANDIDATE_SEEN, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "candidates[%d]", i);
	}
	return RV_OK;
}

enum rv_err candidate_refs_check(const struct candidate_ref *list, int n, struct rv_errtext *et) {
	if (n == 0)
		return rv_fail(et, RV_E_INVALID, "no candidate");
	for (int i = 0; i < n; i++) {
		if (list[i].kind >= CANDIDATE_KINDS)
			return rv_fail(et, RV_E_INVALID, "candidates[%d].kind = %u, must be below %d", i, list[i].kind,
						   (int)CANDIDATE_KINDS);
		enum rv_err e = check_addr(list[i].addr, true, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "candidates[%d]", i);
	}
	return RV_OK;
}
