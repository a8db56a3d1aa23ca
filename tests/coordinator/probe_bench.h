/* probe_bench.h: a coordinator's service, and members whose reports may bring probes and answer
 * them: for tests of reachability and of members' relays. */
#ifndef RV_TESTS_COORDINATOR_PROBE_BENCH_H
#define RV_TESTS_COORDINATOR_PROBE_BENCH_H

#include "coordinator/service/service.h"
#include "net/control/reach_test.h"
#include "tests/common/memory_store.h"

enum { S = 1000000 };

struct probe_bench {
	struct memory_store store;
	struct identity run;
	struct service *service; /* at 11.0.0.254 */
	int64_t now_us;
	uint64_t seq;
	struct document doc;
	uint8_t token[NET_TOKEN_BYTES]; /* for the test */
	const char *given;              /* for the test */
};

/* Opens a run with these relays, in which keys {1}, {2}, ... are `members` members. */
struct probe_bench *probe_bench_open(const struct relay_ref *relays, uint8_t n_relays, uint8_t members);
void probe_bench_close(struct probe_bench *b);
/* Makes an invite's token. */
void probe_bench_invite(struct probe_bench *b, uint8_t token[NET_TOKEN_BYTES]);
/* Joins with the key {who}, and this token. */
void probe_bench_join(struct probe_bench *b, uint8_t who, const uint8_t token[NET_TOKEN_BYTES]);
/* Returns the next report: of a worker without the run's state that listens on port 7434. */
struct report probe_bench_next_report(struct probe_bench *b);
/* Sends it as {who}, seen at `host`, with the answer to a probe, if there is one. Returns true if
 * the reply brings a probe. */
bool probe_bench_report(struct probe_bench *b, uint8_t who, const char *host, struct report *rep,
						const struct probed *probed, struct probe *out);
/* Returns the newest document of {2}, a member. */
const struct document *probe_bench_document(struct probe_bench *b);
/* Asks how others reach {who}; token and address may be NULL. What service_reach_test returns. */
enum rv_err probe_bench_ask(struct probe_bench *b, uint8_t who, const char *host, const uint8_t *token,
							const char *addr, struct reach_test_reply *out, struct rv_errtext *et);

#endif
