/* reach_test.c: POST /v1/reach-test, the probes in replies to reports, and the given addresses of
 * members (reach_tests.h decides). */
#include "coordinator/service/internal.h"

#include "base/assert.h"
#include "net/address_reach.h"
#include "net/control/reach_test.h"

#include <string.h>

static struct address host_of(const char *host) {
	struct address a = {.port = 1};
	memcpy(a.host, host, strnlen(host, sizeof a.host - 1));
	return a;
}

/* Returns true if a worker that asks has been in touch with this host: the coordinator, or a relay
 * with a numeric address. Its router lets those in. */
static bool is_contacted(const struct service *s, const struct member_sight *sight, const char *host) {
	const struct document *d = core_document(s->core);
	bool is = reach_same_site(host, sight->own) || (s->cfg.site[0] != '\0' && reach_same_site(host, s->cfg.site));
	for (int i = 0; i < d->n_relays; i++) {
		struct address relay;
		is = is || (address_parse(d->relays[i].addr, &relay, NULL) == RV_OK && reach_same_site(host, relay.host));
	}
	return is;
}

/* Lists the live members that may dial the holder of `key`. */
static int list_helpers(const struct service *s, const struct member_sight *sight, const uint8_t key[NET_KEY_BYTES],
						struct reach_helper out[NET_MAX_HERE]) {
	int n = 0;
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		const char *seen = s->members[v.slot].seen;
		if (!v.alive || v.banned || seen[0] == '\0' || memcmp(v.key, key, NET_KEY_BYTES) == 0 ||
			is_contacted(s, sight, seen))
			continue;
		out[n++] = (struct reach_helper){.member = v.slot, .host = seen};
	}
	return n;
}

/* ---- a given address ---- */

/* Writes the host as address_of_socket does: a host has one text. RV_E_INVALID: it is a name. */
static enum rv_err normalize(struct address *a, struct rv_errtext *et) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (!address_to_socket(a, &sa, &n))
		return rv_fail(et, RV_E_INVALID, "reach-test: '%s' is a name, must be a number", a->host);
	address_of_socket(&sa, a);
	return RV_OK;
}

/* Returns true if one of the operator's relays is listed at this numeric host. */
static bool is_operators_relay(const struct service *s, const char *host) {
	bool is = false;
	for (int i = 0; i < s->cfg.n_relays; i++) {
		struct address relay;
		is = is || (address_parse(s->cfg.relays[i].addr, &relay, NULL) == RV_OK && normalize(&relay, NULL) == RV_OK &&
					strcmp(relay.host, host) == 0);
	}
	return is;
}

/* Checks that members may be sent there: to no narrower network than the one in which the sender is
 * seen, and to no host of the operator's. */
static enum rv_err check_given(const struct service *s, const struct member_sight *sight, struct address *a,
							   struct rv_errtext *et) {
	struct address seen = host_of(sight->host);
	RV_TRY(normalize(a, et));
	if (!address_is_dialable(a, address_reach(&seen)))
		return rv_fail(et, RV_E_INVALID, "reach-test: %s is %s, and its sender is seen at a %s address", a->host,
					   address_reach_name(address_reach(a)), address_reach_name(address_reach(&seen)));
	if (strcmp(a->host, sight->own) == 0 || strcmp(a->host, s->cfg.site) == 0)
		return rv_fail(et, RV_E_INVALID, "reach-test: %s is the coordinator's own host", a->host);
	if (is_operators_relay(s, a->host))
		return rv_fail(et, RV_E_INVALID, "reach-test: %s is the host of one of the operator's relays", a->host);
	return RV_OK;
}

bool service_confirms_given(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
							const struct member_sight *sight, const char *addr, bool *waits) {
	struct reach_helper helpers[NET_MAX_HERE];
	struct reach_finding found;
	struct reach_question q = {.n = 1, .given = true, .of_report = true};
	struct address a;
	*waits = false;
	if (address_parse(addr, &a, NULL) != RV_OK || check_given(s, sight, &a, NULL) != RV_OK ||
		!address_format(&a, q.addrs[0].addr))
		return false;
	if (reach_tests_confirmed(&s->reach, now_us, key, q.addrs[0].addr))
		return true;
	memcpy(q.key, key, sizeof q.key);
	memcpy(q.host, sight->host, sizeof q.host);
	int n = list_helpers(s, sight, key, helpers);
	bool is_asked = reach_tests_ask(&s->reach, now_us, &q, helpers, n, &found, NULL) == RV_OK;
	*waits = !is_asked || !found.done || found.n_probers == 0; /* a later report asks again */
	return false;
}

bool service_probe_for(struct service *s, int64_t now_us, const struct member_sight *sight,
					   const struct reach_question *q, struct reach_finding *found) {
	struct reach_helper helpers[NET_MAX_HERE];
	int n = list_helpers(s, sight, q->key, helpers);
	return reach_tests_ask(&s->reach, now_us, q, helpers, n, found, NULL) == RV_OK;
}

/* ---- the request ---- */

/* Allows members and holders of a token that may still admit them. */
static enum rv_err admit(const struct service *s, const uint8_t key[NET_KEY_BYTES], const struct reach_test_request *rq,
						 struct rv_errtext *et) {
	bool valid = false;
	int slot = core_find_key(s->core, key);
	if (memcmp(rq->run_id, s->cfg.run_id, sizeof rq->run_id) != 0)
		return rv_fail(et, RV_E_INVALID, "reach-test: the coordinator has another run");
	if (slot >= 0 && core_view(s->core, (uint32_t)slot).banned)
		return rv_fail(et, RV_E_AUTH, "reach-test: this worker is banned from the run");
	if (slot >= 0)
		return RV_OK;
	if (rq->has_token)
		RV_TRY(service_holds_invite(s, key, rq->token, &valid, et));
	return valid ? RV_OK : rv_fail(et, RV_E_AUTH, "reach-test: neither a member nor the holder of a valid invite");
}

static enum rv_err question_of(const struct service *s, const struct member_sight *sight,
							   const struct reach_test_request *rq, struct reach_question *q, struct rv_errtext *et) {
	struct address seen = host_of(sight->host);
	if (address_reach(&seen) == ADDRESS_UNUSABLE)
		return rv_fail(et, RV_E_INVALID, "reach-test: its sender is seen at '%s', which cannot be dialed", sight->host);
	memcpy(q->host, sight->host, sizeof q->host);
	q->n = rq->n;
	for (int i = 0; i < rq->n; i++) {
		struct address a;
		RV_TRY(address_parse(rq->addrs[i].addr, &a, et));
		if (a.host[0] != '\0')
			RV_TRY(normalize(&a, et));
		q->given = a.host[0] != '\0' && strcmp(a.host, sight->host) != 0;
		if (q->given)
			RV_TRY(check_given(s, sight, &a, et));
		else
			memcpy(a.host, sight->host, sizeof a.host);
		if (!address_format(&a, q->addrs[i].addr))
			return rv_fail(et, RV_E_RANGE, "reach-test: the address of its sender, '%s', is too long", sight->host);
	}
	return RV_OK;
}

static void write_reply(const struct service *s, const struct reach_question *q, const struct reach_finding *found,
						uint32_t version, struct rv_writer *w) {
	const struct document *d = core_document(s->core); /* members' relays are listed there too */
	struct reach_test_reply r = {
		.n_probers = found->n_probers, .done = found->done, .n = q->n, .n_relays = d->n_relays};
	memcpy(r.seen, q->host, sizeof r.seen);
	memcpy(r.results, found->results, sizeof r.results);
	memcpy(r.relays, d->relays, d->n_relays * sizeof r.relays[0]);
	reach_test_reply_encode(&r, version, w);
}

enum rv_err service_reach_test(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
							   const struct member_sight *sight, const void *body, size_t n, struct rv_writer *reply,
							   struct rv_errtext *et) {
	struct reach_helper helpers[NET_MAX_HERE];
	struct reach_test_request rq;
	struct reach_question q = {.n = 0};
	struct reach_finding found;
	RV_TRY(reach_test_request_decode(body, n, &rq, et));
	RV_TRY(admit(s, key, &rq, et));
	memcpy(q.key, key, sizeof q.key);
	RV_TRY(question_of(s, sight, &rq, &q, et));
	int n_helpers = list_helpers(s, sight, key, helpers);
	RV_TRY(reach_tests_ask(&s->reach, now_us, &q, helpers, n_helpers, &found, et));
	write_reply(s, &q, &found, rq.version, reply);
	return RV_OK;
}

/* ---- probers ---- */

void service_take_probed(struct service *s, int64_t now_us, uint32_t slot, const struct member_sight *sight,
						 const struct probed_list *probed) {
	struct service_member *m = &s->members[slot];
	memcpy(m->seen, sight->host, sizeof m->seen);
	reach_tests_take(&s->reach, now_us, slot, probed);
}

bool service_probes(const struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
					struct rv_writer *reply) {
	struct probes p;
	int slot = service_find_member(s, key);
	if (slot < 0 || !reach_tests_next(&s->reach, now_us, (uint32_t)slot, &p))
		return false;
	probes_encode(&p, reply);
	RV_ASSERT(!reply->failed);
	return true;
}
