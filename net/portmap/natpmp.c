/* natpmp.c: NAT-PMP (RFC 6886), by libnatpmp. */
#include "net/portmap/protocol.h"

#include <natpmp.h>
#include <poll.h>

enum { TRIES = 4, MS_PER_S = 1000, US_PER_MS = 1000 };

enum rv_err portmap_gateway(struct in_addr *out, struct rv_errtext *et) {
	natpmp_t n;
	if (initnatpmp(&n, 0, 0) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "no default gateway: this machine has no router to ask");
	out->s_addr = n.gateway;
	closenatpmp(&n);
	return RV_OK;
}

static enum rv_err fail(int code, struct rv_errtext *et) {
	switch (code) {
	case NATPMP_ERR_NOTAUTHORIZED:
		return rv_fail(et, RV_E_AUTH, "the router refuses it: port forwarding by programs is switched off there");
	case NATPMP_ERR_OUTOFRESOURCES:
		return rv_fail(et, RV_E_FULL, "the router has no port left");
	case NATPMP_ERR_NETWORKFAILURE:
		return rv_fail(et, RV_E_IO, "the router has no address of its own yet");
	default:
		return rv_fail(et, RV_E_UNSUPPORTED, "no answer from the router (libnatpmp: %d)", code);
	}
}

/* Waits for the answer to the request under way. The library sends it again after 250 ms, 500 ms, 1
 * s and so on, for two minutes in all: this gives up before. */
static int wait_for(natpmp_t *n, natpmpresp_t *answer) {
	int result = NATPMP_TRYAGAIN;
	for (int i = 0; i < TRIES && result == NATPMP_TRYAGAIN; i++) {
		struct timeval wait;
		struct pollfd fd = {.fd = n->s, .events = POLLIN};
		if (getnatpmprequesttimeout(n, &wait) != 0)
			return NATPMP_ERR_GETTIMEOFDAYERR;
		(void)poll(&fd, 1, (int)(wait.tv_sec * MS_PER_S + wait.tv_usec / US_PER_MS) + 1);
		result = readnatpmpresponseorretry(n, answer);
	}
	return result;
}

/* Asks by a socket of its own: where the router was slow and a question was sent again, its second
 * answer must not be taken for that to the next question. */
static enum rv_err ask(int (*send)(natpmp_t *, const struct portmap_lease *), const struct portmap_lease *l,
					   natpmpresp_t *answer, struct rv_errtext *et) {
	natpmp_t n;
	if (initnatpmp(&n, 0, 0) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "no default gateway: this machine has no router to ask");
	const int result = send(&n, l) < 0 ? NATPMP_ERR_SENDERR : wait_for(&n, answer);
	closenatpmp(&n);
	return result == 0 ? RV_OK : fail(result, et);
}

static int send_address_request(natpmp_t *n, const struct portmap_lease *l) {
	(void)l;
	return sendpublicaddressrequest(n);
}

static int send_mapping_request(natpmp_t *n, const struct portmap_lease *l) {
	return sendnewportmappingrequest(n, NATPMP_PROTOCOL_TCP, l->inside, l->outside, l->seconds);
}

static enum rv_err map(struct portmap_lease *l, struct rv_errtext *et) {
	natpmpresp_t answer;
	RV_TRY(ask(send_address_request, l, &answer, et));
	l->address = answer.pnu.publicaddress.addr;
	RV_TRY(ask(send_mapping_request, l, &answer, et));
	l->outside = answer.pnu.newportmapping.mappedpublicport;
	l->seconds = answer.pnu.newportmapping.lifetime;
	return RV_OK;
}

static void unmap(const struct portmap_lease *l) {
	natpmp_t n;
	natpmpresp_t answer;
	if (initnatpmp(&n, 0, 0) != 0)
		return;
	if (sendnewportmappingrequest(&n, NATPMP_PROTOCOL_TCP, l->inside, 0, 0) >= 0)
		(void)wait_for(&n, &answer);
	closenatpmp(&n);
}

const struct portmap_protocol portmap_natpmp = {.name = "NAT-PMP", .map = map, .unmap = unmap};
