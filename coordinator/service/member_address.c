/* member_address.c: see member_address.h. */
#include "coordinator/service/member_address.h"

#include "base/assert.h"
#include "base/planted.h"
#include "net/address_reach.h"
#include "net/identity.h"

#include <stdio.h>
#include <string.h>

/* ---- hosts ---- */

static struct address at_host(const char *host) {
	struct address a = {0};
	memcpy(a.host, host, strlen(host) + 1);
	return a;
}

/* Brings a numeric host into the form of address_of_socket. Returns false for a name. */
static bool normalize(struct address *a) {
	struct sockaddr_storage sa;
	socklen_t n;
	if (a->host[0] == '\0' || !address_to_socket(a, &sa, &n))
		return false;
	address_of_socket(&sa, a);
	return true;
}

static bool same_host(const char *a, const char *b) {
	struct address x = at_host(a), y = at_host(b);
	return normalize(&x) && normalize(&y) && strcmp(x.host, y.host) == 0;
}

static enum address_reach reach_of(const char *host) {
	const struct address a = at_host(host);
	return address_reach(&a);
}

static bool is_at_the_coordinator(const struct member_facts *f, const struct address *a) {
	return same_host(a->host, f->site) || same_host(a->host, f->sight->own);
}

/* Returns the host to announce for a member seen at a host of a narrow range, which others reach
 * only at the coordinator's site. */
static const char *host_at_site(const struct member_facts *f, enum address_reach reach) {
	const struct member_sight *sight = f->sight;
	enum address_reach at_site = reach_of(f->site), own = reach_of(sight->own);
	if (reach == ADDRESS_LOOPBACK)
		return at_site <= ADDRESS_PRIVATE ? f->site : sight->host;
	/* A member behind the coordinator's router, with a forwarded port, is the operator's own
	 * machine. */
	if (at_site == ADDRESS_PUBLIC && own != reach)
		return f->site;
	return own == ADDRESS_PUBLIC ? sight->own : sight->host;
}

enum rv_err member_address_seen(const struct member_facts *f, const char *port, char out[NET_ADDR_BYTES],
								struct rv_errtext *et) {
	const char *host = f->sight->host;
	enum address_reach reach = reach_of(host);
	struct address a;
	RV_TRY(address_parse(port, &a, et));
	RV_ASSERT(a.host[0] == '\0' && a.port != 0); /* report_decode */
	if (reach == ADDRESS_UNUSABLE)
		return rv_fail(et, RV_E_INVALID, "report: its sender is seen at '%s', an address that cannot be dialed", host);
	if (reach != ADDRESS_PUBLIC)
		host = host_at_site(f, reach);
	memcpy(a.host, host, strlen(host) + 1);
	if (a.port == f->port && is_at_the_coordinator(f, &a))
		return rv_fail(et, RV_E_INVALID,
					   "report: port %u of this host is the coordinator's: start the worker with --listen :PORT, or "
					   "--advertise :PORT if the router forwards another one to it",
					   a.port);
	return address_format(&a, out)
			   ? RV_OK
			   : rv_fail(et, RV_E_RANGE, "report: the address of its sender, '%s', is too long", host);
}

/* ---- the other candidates: each returns its verdict, and the reason ---- */

static enum member_verdict refuse(struct rv_errtext *why, const char *text) {
	(void)rv_fail(why, RV_E_INVALID, "%s", text);
	return MEMBER_REFUSED;
}

static enum member_verdict judge_reflected(const struct member_facts *f, const struct candidate *c,
										   const struct address *a, struct rv_errtext *why) {
	if (c->relay > f->n_relays) { /* honest members have their home at volunteers' relays, too */
		(void)rv_fail(why, RV_E_AUTH, "it was proven by a relay that is not the operator's");
		return MEMBER_UNPROVEN;
	}
	const enum address_reach reach = address_reach(a);
	const bool in_its_range = reach == reach_of(f->sight->host); /* a relay beside it sees it as we do */
	if (reach != ADDRESS_PUBLIC && reach != ADDRESS_UNUSABLE && in_its_range) {
		(void)rv_fail(why, RV_E_AUTH, "a relay in its own network saw it");
		return MEMBER_UNPROVEN;
	}
	if (reach != ADDRESS_PUBLIC)
		return refuse(why, "a relay saw it, but it is not public");
	if (c->unix_s > f->unix_s + MEMBER_PROOF_AHEAD_S)
		return refuse(why, "its proof is of a time to come: a clock is wrong there or here");
	if (c->unix_s < f->unix_s && f->unix_s - c->unix_s > MEMBER_PROOF_AGE_S)
		return refuse(why, "its proof is older than a day");
	return MEMBER_NEEDS_PROOF;
}

/* Returns true for addresses whose last byte is that of a network or a broadcast in the usual
 * subnets. */
static bool ends_like_a_broadcast(const struct address *a) {
	const char *last = strrchr(a->host, '.');
	return last != NULL && (strcmp(last, ".255") == 0 || strcmp(last, ".0") == 0);
}

static enum member_verdict judge_private(const struct member_facts *f, const struct address *a,
										 struct rv_errtext *why) {
	if (address_reach(a) != ADDRESS_PRIVATE || ends_like_a_broadcast(a))
		return refuse(why, "it is not the address of a machine in a private range");
	if (a->port < MEMBER_PRIVATE_PORT_LEAST)
		return refuse(why, "it has a port below 1024, as services have");
	if (is_at_the_coordinator(f, a) && !same_host(a->host, f->sight->host))
		return refuse(why, "it is the coordinator's host");
	return MEMBER_CONFIRMED;
}

/* Returns true for the public host of the coordinator's site, stated by a member inside it: the
 * operator's own machine, to which the router forwards a port. */
static bool is_at_own_site(const struct member_facts *f, const struct address *a) {
	enum address_reach reach = reach_of(f->sight->host);
	return reach != ADDRESS_PUBLIC && reach_of(f->sight->own) == reach && reach_of(f->site) == ADDRESS_PUBLIC &&
		   same_host(a->host, f->site);
}

static enum member_verdict judge_given(const struct member_facts *f, const char *seen, const struct address *a,
									   struct rv_errtext *why) {
	struct address at;
	if (address_parse(seen, &at, NULL) == RV_OK && same_host(a->host, at.host))
		return MEMBER_CONFIRMED;
	if (is_at_own_site(f, a))
		return MEMBER_CONFIRMED;
	if (!address_is_dialable(a, reach_of(f->sight->own)))
		return refuse(why, "nobody outside that machine or network could dial it");
	(void)rv_fail(why, RV_E_INVALID,
				  "it is another host than the one seen, and no other member has got through to it so far");
	return MEMBER_NEEDS_PROBE;
}

enum member_verdict member_address_judge(const struct member_facts *f, const char *seen, const struct candidate *c,
										 char out[NET_ADDR_BYTES], struct rv_errtext *why) {
	struct address a;
	if (address_parse(c->addr, &a, why) != RV_OK)
		return MEMBER_REFUSED;
	if (!normalize(&a) || !address_format(&a, out))
		return refuse(why, "its host is not a number");
	if (a.port == f->port && is_at_the_coordinator(f, &a))
		return refuse(why, "it is the coordinator itself");
	if (c->kind == CANDIDATE_REFLECTED)
		return judge_reflected(f, c, &a, why);
	RV_ASSERT(c->kind == CANDIDATE_PRIVATE || c->kind == CANDIDATE_GIVEN);
	return c->kind == CANDIDATE_PRIVATE ? judge_private(f, &a, why) : judge_given(f, seen, &a, why);
}

bool member_proof_check(const struct member_facts *f, const struct candidate *c) {
	RV_ASSERT(c->relay >= 1 && c->relay <= f->n_relays);
	return RV_BUG("trust-any-proof") ||
		   seen_verify(f->relays[c->relay - 1].key, f->run_id, f->key, c->addr, c->unix_s, c->signature);
}
