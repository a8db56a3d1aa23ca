/* service.h: the coordinator behind its web server: the core, its store, the run key, and figures
 * for people.
 *
 * Takes bodies of requests with the sender's key, returns bodies of replies. No sockets: server.h
 * has those, and tests call it directly. Every function may write to the store (blocks for an
 * fsync). Single-threaded. Times are monotonic.
 *
 * If the store is full the service continues with all that needs no record and tries again at every
 * service_tick(); requests that must be durable before the answer (joins, invites, bans) are
 * refused with RV_E_BUSY meanwhile. Any other fault of the store is final: service_fault() returns
 * it, the server stops. */
#ifndef RV_COORDINATOR_SERVICE_H
#define RV_COORDINATOR_SERVICE_H

#include "base/bytes.h"
#include "base/event.h"
#include "base/loss_curve.h"
#include "base/run_about.h"
#include "base/run_config.h"
#include "coordinator/core/core.h"
#include "coordinator/service/delivery.h"
#include "coordinator/service/member_address.h"
#include "coordinator/store/store.h"
#include "net/address.h"
#include "net/identity.h"
#include "net/invite.h"
#include "net/relay/relay_core.h"

#include <jansson.h>

enum { SERVICE_HISTORY = 1024, SERVICE_NEWS = 100, SERVICE_INVITES_MAX = 256, SERVICE_ROLLBACK_BYTES = 512 };
/* Bounds of invites: their uses, how long they last, computers beyond the uses left that may wait
 * for approval by one, digits of a key that name one. */
enum { SERVICE_USES_MAX = 65536, SERVICE_LASTS_MAX_DAYS = 3650, SERVICE_ASKERS_SPARE = 8, SERVICE_PREFIX_LEAST = 6 };
enum { SERVICE_DECISION_BYTES = 256 };

struct service_config {
	const struct identity *serving; /* signs documents and tickets; borrowed */
	const uint8_t *root;            /* the run's root key, for links: NET_KEY_BYTES, borrowed */
	uint8_t run_id[NET_RUN_ID_BYTES];
	const char *config;       /* the run's canonical text; copied */
	struct store *store;      /* borrowed */
	uint32_t max_here;        /* members in memory; 0: NET_MAX_HERE */
	struct rv_events *events; /* borrowed; NULL: no log */
	const char *dir;          /* the run's, in commands that the log suggests; NULL: unknown */
	const char *rounds_path;  /* appended to: a JSON line per committed round; NULL: none */
	struct address advertise; /* in invite links */
	/* The advertised host as a number (member_address.h); "": unknown. */
	char site[NET_ADDR_BYTES];
	/* For documents. */
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
};

struct service; /* opaque */
/* Makes a service; the caller frees it. RV_E_NOMEM; RV_E_RANGE: the configuration or a path is too
 * long. */
enum rv_err service_new(const struct service_config *cfg, int64_t now_us, struct service **out, struct rv_errtext *et);
void service_free(struct service *s); /* NULL is fine */
/* Replays a record of the store, before service_load, which ends the replay. RV_E_CORRUPT: it
 * cannot follow the earlier ones. */
enum rv_err service_replay(struct service *s, const struct core_record *rec, struct rv_errtext *et);
/* Replays all records of the store and reads the figures of its commits; also its faults. */
enum rv_err service_load(struct service *s, struct rv_errtext *et);

/* Handles POST /v1/join: writes the reply to `reply`, once the membership is durable. The faults of
 * core_join, RV_E_INVALID, RV_E_BUSY (disk full); RV_E_WAITING: the operator has to approve this
 * computer. A use of its invite is spent by the record that makes it a member. */
enum rv_err service_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
						 size_t n, struct rv_writer *reply, struct rv_errtext *et);
/* Handles POST /v1/invite: says whether a join with this body would be refused for its invite, and
 * spends nothing. RV_E_AUTH, RV_E_INVALID; faults of the store. */
enum rv_err service_check_invite(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
								 size_t n, struct rv_errtext *et);
/* Takes a join, so that those that come together are one transaction. *waits: its record gathers
 * with others until service_write_joins, which is due as soon as no more requests are at hand, or
 * any call that writes to the store; service_join with the same body then answers. Not so:
 * service_join may answer now. Faults as above. */
enum rv_err service_begin_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
							   size_t n, bool *waits, struct rv_errtext *et);
/* Returns true while records of joins wait for service_write_joins or service_tick. */
bool service_joins_gather(const struct service *s);
/* Makes them durable, all in one transaction (32 at most in each). A full disk is tried again as
 * ever; service_fault() has other faults. */
void service_write_joins(struct service *s, int64_t now_us);
/* Handles POST /v1/report. `sight`: where the sender is seen, which determines its address
 * (member_address.h). RV_E_INVALID, RV_E_RANGE, RV_E_PROTOCOL; RV_E_AUTH: not a member. */
enum rv_err service_report(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						   const struct member_sight *sight, const void *body, size_t n, struct rv_errtext *et);
/* Writes the reply to a report of the holder of `key`: the probes that it shall make, or
 * core_notice(); returns false if there is neither. */
enum { SERVICE_REPORT_REPLY_BYTES = PROBES_MAX_BYTES };
bool service_report_reply(const struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
						  struct rv_writer *reply);
/* Records whether the member with `key` has a long poll open: core_listens(). */
void service_listens(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens);
/* Answers the holder of `key` with its document: whole, or as a patch; n = 0: it has it already, or
 * another one that says the same, or (is_away) it has given up its slot since service_recall.
 * RV_E_AUTH: it is no member, or banned; RV_E_NOMEM; faults of the store. */
enum rv_err service_document(struct service *s, const uint8_t key[NET_KEY_BYTES], const struct document_wish *wish,
							 struct document_reply *out, struct rv_errtext *et);
/* Returns the number of the latest documents: no member has news while it stays. */
uint64_t service_document_seq(const struct service *s);
/* Returns the configuration that members agree on, as `key = value` lines: not secret, so that a
 * worker can check it before it spends its invite. */
const char *service_run_config(const struct service *s);
/* The name of what is kept in the store: the lines of run_about_print. */
#define SERVICE_ABOUT "about"
/* Returns what the operator says of the run, with the time that its latest rounds took. */
struct run_about service_about(const struct service *s);
/* Returns the address in invite links. */
const struct address *service_advertised(const struct service *s);
/* Keeps where the model will be given away. RV_E_INVALID: not a plain line; faults of the store. */
enum rv_err service_set_model_at(struct service *s, const char *place, struct rv_errtext *et);
/* RV_E_OVER, with where the weights can be had: the run has ended, and admits no new member. */
enum rv_err service_check_open(const struct service *s, struct rv_errtext *et);
/* Returns the slot (core.h) of a member of the run that is not banned; -1: the key is not one's, as
 * far as the coordinator has it in memory (service_recall). */
int service_find_member(const struct service *s, const uint8_t key[NET_KEY_BYTES]);

/* Takes a member back into memory that is away, before a request of its is handled; does nothing
 * for any other key. RV_E_AUTH: it is banned; RV_E_FULL: max_here members are here; RV_E_BUSY (disk
 * full); faults of the store. */
enum rv_err service_recall(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et);

/* Handles POST /v1/evidence of the holder of `key` (core_testify). RV_E_INVALID, RV_E_AUTH; the
 * faults of the store. */
enum rv_err service_evidence(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
							 size_t n, struct rv_errtext *et);
/* Returns the bytes of evidence at most, by the run's configuration. */
size_t service_evidence_max_bytes(const struct service *s);

/* Handles POST /v1/pair-tickets: writes pair tickets for the holder of `key` and those of the
 * requested peers that are live and not banned to `reply` (PAIR_REPLY_MAX_BYTES); none if the
 * sender is not live. RV_E_INVALID, RV_E_PROTOCOL; RV_E_AUTH: not a member. */
enum rv_err service_pair_tickets(const struct service *s, const uint8_t key[NET_KEY_BYTES], const void *body, size_t n,
								 struct rv_writer *reply, struct rv_errtext *et);
/* Handles POST /v1/reach-test (net/control/reach_test.h) of a member, or of the holder of a token
 * that may still admit it: begins the test, or reports on it. RV_E_INVALID, RV_E_RANGE,
 * RV_E_PROTOCOL; RV_E_AUTH: neither; RV_E_BUSY: too many tests. */
enum rv_err service_reach_test(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES],
							   const struct member_sight *sight, const void *body, size_t n, struct rv_writer *reply,
							   struct rv_errtext *et);
/* Shows these figures of the coordinator's own relay to people; borrowed, NULL: it has none. */
void service_show_relay(struct service *s, const struct relay_totals *totals);
/* Counts of what a coordinator has sent of the run's text since its start. */
struct text_totals {
	uint64_t bytes, files; /* files: answers, whole files or ranges of them */
	uint64_t refused;      /* 503: too many at once */
	uint32_t damaged;      /* shards that are not served */
	uint32_t now;          /* requests under way */
};
/* Shows these figures to people; borrowed, NULL: it has no text. */
void service_show_text(struct service *s, const struct text_totals *totals);
/* Returns the set of banned members, as in the document. */
const struct banned *service_banned(const struct service *s);

/* Terms of an invite. */
struct invite_terms {
	int64_t uses;     /* members */
	int64_t lasts_ms; /* from now on; 0: without end */
	bool approve;     /* each with the operator's approval */
};
/* Makes `count` tokens durable and writes one link each. `terms` NULL: one use, without end.
 * RV_E_RANGE: `count` is not 1..SERVICE_INVITES_MAX, or the terms are out of bounds. */
enum rv_err service_invite(struct service *s, const struct invite_terms *terms, int count,
						   char (*links)[INVITE_MAX_BYTES], struct rv_errtext *et);
/* Lists the latest invites as JSON (the caller decrefs it): what is left, when they end, who came
 * by them. Faults of the store, RV_E_NOMEM. */
enum rv_err service_list_invites(const struct service *s, json_t **out, struct rv_errtext *et);
/* Revokes the invite with this ID, in digits, or of this link: it admits nobody from then on;
 * members stay. `text`: the result, for people. RV_E_INVALID: neither, or a link of another run;
 * RV_E_NOTFOUND. */
enum rv_err service_revoke(struct service *s, int64_t now_us, const char *name, char text[SERVICE_DECISION_BYTES],
						   struct rv_errtext *et);
/* Lists the computers that ask for approval, as JSON (the caller decrefs it). Faults as above. */
enum rv_err service_list_askers(const struct service *s, json_t **out, struct rv_errtext *et);
/* Approves or refuses the computer whose key begins with these hex digits; `text`: the result, for
 * people. Approval keeps a use of its invite for it. RV_E_INVALID: no hex digits, too few, several
 * keys begin so, or no use of its invite is left to keep; RV_E_NOTFOUND; RV_E_BUSY (disk full). */
enum rv_err service_decide(struct service *s, int64_t now_us, const char *prefix, bool approve,
						   char text[SERVICE_DECISION_BYTES], struct rv_errtext *et);
/* Writes a copy of the store as it is now into the empty file `path`: store_ops.copy. */
enum rv_err service_copy_store(struct service *s, const char *path, struct rv_errtext *et);
/* Does core_rollback and makes it durable; `text`: the result, for people. Its faults; RV_E_BUSY
 * (disk full). */
enum rv_err service_rollback(struct service *s, int64_t now_us, uint64_t to_round, bool force,
							 char text[SERVICE_ROLLBACK_BYTES], struct rv_errtext *et);
/* Does core_ban and makes it durable. RV_E_NOTFOUND, RV_E_BUSY (disk full). */
enum rv_err service_ban(struct service *s, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et);

void service_tick(struct service *s, int64_t now_us);
int64_t service_deadline_us(const struct service *s);
/* Returns RV_OK, or the fault for which the coordinator must stop. */
enum rv_err service_fault(const struct service *s, struct rv_errtext *et);

/* Returns the number of members in memory, here or not. Beyond the few, the status for everybody
 * has counts of how a member meets others in place of lists. */
enum { SERVICE_MEMBERS_FEW = NET_MAX_ROW };
int service_members_here(const struct service *s);
/* Returns the status as a new JSON object (the caller decrefs it), NULL without memory. `details`:
 * with addresses, whole keys and lists, for the operator. */
json_t *service_status(const struct service *s, int64_t now_us, bool details);
/* Returns a page of it, with details, as a new JSON object, NULL without memory: what is of the run
 * if `from` is 0; the members from that number on, SERVICE_PAGE_MEMBERS at most; and
 * "members_next", the first that is left, or null. All members, with all that reports may hold, are
 * tens of megabytes. */
enum { SERVICE_PAGE_MEMBERS = 128 };
json_t *service_status_page(const struct service *s, int64_t now_us, uint32_t from);
/* Returns metrics in Prometheus text format 0.0.4, NUL-terminated (the caller frees it); NULL
 * without memory. */
char *service_metrics(const struct service *s, int64_t now_us);
/* Returns the training loss by round as SVG, `width` pixels wide, NUL-terminated (the caller frees
 * it); NULL without memory. */
char *service_loss_chart(const struct service *s, int width);
/* Writes the held-out loss by round, as members claim it (base/loss_curve.h). */
void service_heldout_text(const struct service *s, char out[LOSS_CURVE_TEXT_BYTES]);

#endif
