/* pcp.c: MAP requests of PCP (RFC 6887 sections 7, 11 and 15), for one TCP port over IPv4. No
 * library in Debian speaks it. */
#include "net/portmap/protocol.h"

#include "base/bytes.h"
#include "base/os_sockets.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PORT = 5351,
	VERSION = 2,
	OPCODE_MAP = 1,
	ANSWER = 0x80, /* set in the opcode of an answer */
	TCP = 6,
	ADDRESS_BYTES = 16,
	MESSAGE_BYTES = 60, /* header of 24, MAP of 36 */
	MESSAGE_MOST = 1100,
	TRIES = 4,
	FIRST_WAIT_MS = 250 /* twice as long each time: the router is on the same LAN */
};

/* Result codes (RFC 6887 section 7.4). */
enum {
	SUCCESS = 0,
	UNSUPPORTED_VERSION = 1,
	NOT_AUTHORIZED = 2,
	UNSUPPORTED_OPCODE = 4,
	NO_RESOURCES = 8,
	USER_QUOTA = 10
};

static void write_mapped(struct rv_writer *w, struct in_addr a) {
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	rv_write_bytes(w, prefix, sizeof prefix);
	rv_write_bytes(w, &a.s_addr, sizeof a.s_addr);
}

/* PCP is big-endian; base/bytes.h writes little-endian. */
static void write_be(struct rv_writer *w, uint32_t v, int bytes) {
	for (int i = bytes - 1; i >= 0; i--)
		rv_write_u8(w, (uint8_t)(v >> 8 * i));
}

static uint32_t read_be(const uint8_t *p, int bytes) {
	uint32_t v = 0;
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static void encode(const struct portmap_lease *l, struct in_addr self, uint8_t out[MESSAGE_BYTES]) {
	struct rv_writer w = rv_writer_of(out, MESSAGE_BYTES);
	rv_write_u8(&w, VERSION);
	rv_write_u8(&w, OPCODE_MAP);
	write_be(&w, 0, 2);
	write_be(&w, l->seconds, 4);
	write_mapped(&w, self);
	rv_write_bytes(&w, l->nonce, sizeof l->nonce);
	rv_write_u8(&w, TCP);
	write_be(&w, 0, 3);
	write_be(&w, l->inside, 2);
	write_be(&w, l->outside, 2);
	write_mapped(&w, (struct in_addr){0}); /* any outside address */
}

static enum rv_err fail(uint8_t result, struct rv_errtext *et) {
	switch (result) {
	case UNSUPPORTED_VERSION:
	case UNSUPPORTED_OPCODE:
		return rv_fail(et, RV_E_UNSUPPORTED, "the router speaks another protocol");
	case NOT_AUTHORIZED:
		return rv_fail(et, RV_E_AUTH, "the router refuses it: port forwarding by programs is switched off there");
	case NO_RESOURCES:
	case USER_QUOTA:
		return rv_fail(et, RV_E_FULL, "the router has no port left");
	default:
		return rv_fail(et, RV_E_IO, "the router answers with code %u (RFC 6887 section 7.4)", result);
	}
}

/* Returns true if the message answers the request for this lease; *e then is what it says. */
static bool decode(const uint8_t *p, size_t n, struct portmap_lease *l, enum rv_err *e, struct rv_errtext *et) {
	enum { RESULT = 3, LIFETIME = 4, NONCE = 24, PROTOCOL = 36, INSIDE = 40, OUTSIDE = 42, ADDRESS = 44 };
	if (n < 4 || !(p[1] & ANSWER))
		return false;
	if (p[0] != VERSION) { /* a router that speaks NAT-PMP alone answers in its own form */
		*e = fail(UNSUPPORTED_VERSION, et);
		return true;
	}
	if (p[1] != (ANSWER | OPCODE_MAP))
		return false;
	bool ours = n >= MESSAGE_BYTES && memcmp(p + NONCE, l->nonce, sizeof l->nonce) == 0 && p[PROTOCOL] == TCP &&
				read_be(p + INSIDE, 2) == l->inside;
	if (!ours)
		return false;
	if (p[RESULT] != SUCCESS) {
		*e = fail(p[RESULT], et);
		return true;
	}
	l->seconds = read_be(p + LIFETIME, 4);
	l->outside = (uint16_t)read_be(p + OUTSIDE, 2);
	memcpy(&l->address.s_addr, p + ADDRESS + ADDRESS_BYTES - sizeof l->address.s_addr, sizeof l->address.s_addr);
	*e = RV_OK;
	return true;
}

static enum rv_err exchange(int fd, struct portmap_lease *l, struct in_addr self, struct rv_errtext *et) {
	uint8_t request[MESSAGE_BYTES], answer[MESSAGE_MOST];
	encode(l, self, request);
	for (int i = 0; i < TRIES; i++) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		if (os_socket_send(fd, request, sizeof request) < 0)
			return rv_fail(et, RV_E_UNSUPPORTED, "the router does not take PCP");
		while (poll(&wait, 1, FIRST_WAIT_MS << i) > 0) {
			enum rv_err e;
			ssize_t n = recv(fd, answer, sizeof answer, 0);
			if (n < 0) /* refused: nothing listens there */
				return rv_fail(et, RV_E_UNSUPPORTED, "the router does not take PCP");
			if (decode(answer, (size_t)n, l, &e, et))
				return e;
		}
	}
	return rv_fail(et, RV_E_UNSUPPORTED, "no answer from the router");
}

static enum rv_err map(struct portmap_lease *l, struct rv_errtext *et) {
	struct sockaddr_in router = {.sin_family = AF_INET, .sin_port = htons(PORT)}, self = {0};
	socklen_t n = sizeof self;
	RV_TRY(portmap_gateway(&router.sin_addr, et));
	int fd = os_socket_open(AF_INET, SOCK_DGRAM);
	if (fd < 0)
		return rv_fail(et, RV_E_IO, "no socket for PCP");
	enum rv_err e = RV_E_IO;
	if (connect(fd, (struct sockaddr *)&router, sizeof router) == 0 &&
		getsockname(fd, (struct sockaddr *)&self, &n) == 0)
		e = exchange(fd, l, self.sin_addr, et);
	else
		rv_fail(et, e, "the router cannot be reached");
	close(fd);
	return e;
}

static void unmap(const struct portmap_lease *l) {
	struct portmap_lease none = *l;
	none.seconds = 0;
	none.outside = 0;
	(void)map(&none, NULL);
}

const struct portmap_protocol portmap_pcp = {.name = "PCP", .map = map, .unmap = unmap};
