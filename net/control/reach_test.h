/* reach_test.h: POST /v1/reach-test: how others reach the sender, member or not yet, tested by
 * members (docs/protocol.md; coordinator/service/reach_tests.h). */
#ifndef RV_NET_CONTROL_REACH_TEST_H
#define RV_NET_CONTROL_REACH_TEST_H

#include "net/control/control.h"
#include "net/control/probe.h"

/* Asks for a test of these addresses, or, repeated, for its results so far. The sender's key is
 * that of its TLS client certificate: the program that answers there must hold it. */
struct reach_test_request {
	uint32_t version; /* decoded: that of its encoding */
	uint8_t run_id[NET_RUN_ID_BYTES];
	bool has_token;                 /* a member needs none */
	uint8_t token[NET_TOKEN_BYTES]; /* of the invite link: it is not spent by this */
	uint8_t n;                      /* 0: only who could test, and which relays there are */
	/* ":port" at the host at which the coordinator sees the sender; or one "host:port", numeric,
	 * and no other. */
	struct probe_addr addrs[PROBE_MAX_ADDRS];
};

struct reach_test_reply {
	char seen[NET_ADDR_BYTES]; /* numeric host of the sender */
	uint8_t n_probers;         /* members that dial, or could; 0: no present member could */
	bool done;
	uint8_t n;
	uint8_t results[PROBE_MAX_ADDRS]; /* enum probe_result, in the order of the request */
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS]; /* as in the document */
};

enum { REACH_TEST_REPLY_MAX_BYTES = 64 + NET_ADDR_BYTES + NET_MAX_RELAYS * (2 + NET_ADDR_BYTES + NET_KEY_BYTES) };

void reach_test_request_encode(const struct reach_test_request *m, uint32_t version, struct rv_writer *w);
enum rv_err reach_test_request_decode(const void *p, size_t n, struct reach_test_request *out, struct rv_errtext *et);
void reach_test_reply_encode(const struct reach_test_reply *m, uint32_t version, struct rv_writer *w);
enum rv_err reach_test_reply_decode(const void *p, size_t n, struct reach_test_reply *out, struct rv_errtext *et);

#endif
