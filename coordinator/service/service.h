/* service.h: the coordinator behind its web server: the core, its store, the run key, and what people want to see.
 *
 * Takes bodies of requests with the sender's key, gives bodies of replies. No sockets: server.h has those, and tests
 * call it directly. Every function may write to the store (blocks for an fsync). Single-threaded. Times are monotonic.
 *
 * When the store is full the service goes on with what needs no record and tries again at every service_tick(); what
 * must be durable to be answered (joins, invites, bans) is refused with RV_E_BUSY meanwhile. Any other fault of the
 * store is final: service_fault() tells, the server stops.
 */
#ifndef RV_COORDINATOR_SERVICE_H
#define RV_COORDINATOR_SERVICE_H

#include "base/bytes.h"
#include "base/event.h"
#include "base/run_config.h"
#include "coordinator/core/core.h"
#include "coordinator/service/member_address.h"
#include "coordinator/store/store.h"
#include "net/address.h"
#include "net/identity.h"
#include "net/invite.h"

#include <jansson.h>

enum { SERVICE_HISTORY = 1024, SERVICE_NEWS = 100, SERVICE_INVITES_MAX = 256, SERVICE_ROLLBACK_BYTES = 512 };

struct service_config {
	const struct identity *run; /* borrowed */
	uint8_t run_id[NET_RUN_ID_BYTES];
	const char *config; /* the run's canonical text; copied */
	const struct store_ops *ops;
	void *store;
	struct rv_events *events; /* borrowed; NULL: nobody listens */
	const char *dir;          /* the run's, in commands that people are told; NULL: not known */
	const char *rounds_path;  /* a JSON line per committed round is appended there; NULL: none */
	struct address advertise; /* what invite links name */
	/* The advertised host as a number (member_address.h); "": none is known. */
	char site[NET_ADDR_BYTES];
};

struct service; /* opaque */
/* RV_E_NOMEM; RV_E_RANGE: the configuration or a path is too long. */
enum rv_err service_new(const struct service_config *cfg, int64_t now_us, struct service **out, struct rv_errtext *et);
void service_free(struct service *s); /* NULL is fine */
/* Before anything else: what the store holds. RV_E_CORRUPT: the record cannot follow those before it. */
enum rv_err service_replay(struct service *s, const struct core_record *rec, struct rv_errtext *et);
void service_load_history(struct service *s, const struct commit_stats *commits, int n, uint64_t total_tokens);
/* Both from a store; its faults too. */
enum rv_err service_load(struct service *s, struct store *store, struct rv_errtext *et);

/* POST /v1/join: the reply is written to `reply`. Faults as core_join, RV_E_INVALID, RV_E_BUSY (disk full). */
enum rv_err service_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
						 size_t n, struct rv_writer *reply, struct rv_errtext *et);
/* POST /v1/report. `sight`: where the sender is seen, which says what address it has (member_address.h). RV_E_INVALID,
 * RV_E_RANGE, RV_E_PROTOCOL; RV_E_AUTH: not a member. */
enum rv_err service_report(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						   const struct member_sight *sight, const void *body, size_t n, struct rv_errtext *et);
/* The reply to a report of the holder of `key`: writes core_notice(); false: there is nothing to say. */
bool service_notice(const struct service *s, const uint8_t key[NET_KEY_BYTES], struct rv_writer *reply);
/* See core_listens(). */
void service_listens(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens);
/* The latest document in this version of the protocol, signed; borrowed until the next call of anything. RV_E_PROTOCOL:
 * the version cannot say what it must say; RV_E_NOMEM. */
enum rv_err service_document(struct service *s, uint32_t version, const uint8_t **bytes, size_t *n,
							 struct rv_errtext *et);
uint64_t service_document_seq(const struct service *s);
/* What members agree on, `key = value` lines: no secret, so that a worker can look at it before it spends its invite. */
const char *service_run_config(const struct service *s);
/* Member of the run, and not banned; *member (may be NULL): its number. */
bool service_find_member(const struct service *s, const uint8_t key[NET_KEY_BYTES], uint32_t *member);
bool service_is_member(const struct service *s, const uint8_t key[NET_KEY_BYTES]);

/* Makes `count` tokens durable and writes one link each. RV_E_RANGE: not 1..SERVICE_INVITES_MAX. */
enum rv_err service_invite(struct service *s, int count, char (*links)[INVITE_MAX_BYTES], struct rv_errtext *et);
/* Writes a copy of the store as it is now into the empty file `path`: store_ops.copy. */
enum rv_err service_copy_store(struct service *s, const char *path, struct rv_errtext *et);
/* core_rollback, made durable; `text`: what it did, for people. Its faults; RV_E_BUSY (disk full). */
enum rv_err service_rollback(struct service *s, int64_t now_us, uint64_t to_round, bool force,
							 char text[SERVICE_ROLLBACK_BYTES], struct rv_errtext *et);
/* core_ban, made durable. RV_E_NOTFOUND, RV_E_BUSY (disk full). */
enum rv_err service_ban(struct service *s, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et);

void service_tick(struct service *s, int64_t now_us);
int64_t service_deadline_us(const struct service *s);
/* RV_OK, or the fault for which the coordinator must stop. */
enum rv_err service_fault(const struct service *s, struct rv_errtext *et);

/* What people see: a new JSON object (the caller's), NULL when there is no memory. `details`: with addresses and whole
 * keys, for the operator. */
json_t *service_status(const struct service *s, int64_t now_us, bool details);
/* Prometheus text format 0.0.4, malloc()ed, NUL-terminated; NULL when there is no memory. */
char *service_metrics(const struct service *s, int64_t now_us);
/* The training loss by round, as SVG `width` pixels wide, malloc()ed, NUL-terminated; NULL when there is no memory. */
char *service_loss_chart(const struct service *s, int width);

#endif
