/* internal.h: the state behind service.h, shared by service.c (requests, records), stats.c (committed
 * rounds, news), waiting.c (who is missing), storage.c (whose disk fails), data_shards.c (who reads
 * the same text), outliers.c (who is unlike the others), status.c and metrics.c (what people see). Nobody else includes it. */
#ifndef RV_COORDINATOR_SERVICE_INTERNAL_H
#define RV_COORDINATOR_SERVICE_INTERNAL_H

#include "coordinator/service/contributions.h"
#include "coordinator/service/service.h"

#include <stdio.h>

/* Totals of a member's process at the last commit: what it did since is the difference. */
struct mark {
	uint64_t boot, tx_bytes, compute_us, reduce_us;
};

/* What a member's process reported of its time: the first of it that reached this coordinator, and the most recent. */
struct member_time {
	uint64_t boot;              /* report.boot */
	int64_t since_us, until_us; /* monotonic */
	uint64_t first_compute_us, first_reduce_us, last_compute_us, last_reduce_us;
};

/* What people were told of a member's disk. */
struct storage_told {
	uint8_t set;      /* report.storage: all that it said since it was told that all is well */
	int64_t clear_us; /* its reports say that all is well since then; 0: they do not */
};

/* What is odd about a member beside the others (outliers.c). */
enum service_oddity { SERVICE_ODD_LOSS, SERVICE_ODD_CLIPPED, SERVICE_ODD_COSINE, SERVICE_ODDITIES };
enum { SERVICE_ODD_ROUNDS = 3 };
struct oddity {
	uint8_t rounds; /* odd ones less usual ones, within 0..SERVICE_ODD_ROUNDS */
	bool named;
};

/* What is known of a member's contributions since this coordinator started. */
struct outlier {
	uint64_t round; /* of `last` */
	struct contribution last;
	struct oddity odd[SERVICE_ODDITIES];
};

/* One line for people. */
struct news {
	int64_t wall_us;
	enum rv_level level;
	char text[320];   /* for everybody: neither address nor host nor path */
	char detail[200]; /* for the operator; "": none */
};

enum { SERVICE_VERSIONS = CONTROL_VERSION - CONTROL_VERSION_MIN + 1 };

/* The latest document as it was last signed for members that speak one version. */
struct signed_document {
	bool made;
	uint64_t seq;
	size_t n;
	uint8_t bytes[IDENTITY_SIGNED_MAX_BYTES];
};

struct service {
	struct service_config cfg;
	struct run_config run;
	char config[NET_MAX_CONFIG_BYTES];
	struct rv_hash run_hash;
	struct core *core;
	int64_t started_us;

	uint8_t unsigned_doc[NET_MAX_DOCUMENT_BYTES];         /* while one is being signed */
	struct signed_document signed_docs[SERVICE_VERSIONS]; /* of version CONTROL_VERSION_MIN + i */

	bool store_full;
	enum rv_err fault; /* final */
	struct rv_errtext fault_text;

	struct commit_stats history[SERVICE_HISTORY]; /* oldest first */
	int n_history;
	uint64_t most_tokens; /* that one contribution can stand for */
	uint64_t total_tokens, rounds_here;
	int64_t last_commit_us;
	int64_t waiting_since_us; /* too few workers since; INT64_MAX: there are enough */
	bool waiting_told, shards_told;
	struct mark marks[NET_MAX_MEMBERS];
	struct member_time times[NET_MAX_MEMBERS];
	struct storage_told storage[NET_MAX_MEMBERS];
	struct outlier outliers[NET_MAX_MEMBERS];
	int64_t told_until_us[NET_MAX_MEMBERS];     /* what was said of a member is paid for until then (may_tell) */
	bool told_quiet[NET_MAX_MEMBERS];           /* and that events of it are left out */
	uint64_t replaced_told;                     /* set of members that state another host than they are seen at */
	uint64_t joins_refused, joins_refused_told; /* since the start; of these, those that were said */
	int64_t refused_told_us;
	FILE *rounds;

	struct news news[SERVICE_NEWS]; /* ring */
	uint64_t n_news;
};

/* ---- waiting.c ---- */

/* Once the run has waited for workers for long, says which ones are missing. After every change and now and then. */
void service_watch_waiting(struct service *s, int64_t now_us);
/* Seconds; < 0: it does not wait. */
double service_waiting_s(const struct service *s, int64_t now_us);
/* Members that neither take part nor are banned: a set of member numbers. */
uint64_t service_missing(const struct service *s);

/* ---- storage.c ---- */

/* Says which members begin to lack room for what they should store, and which have it again. After every report. */
void service_watch_storage(struct service *s, int64_t now_us);
/* "results of rounds, checkpoints": what a set of REPORT_STORAGE_* cannot store. */
enum { SERVICE_STORAGE_BYTES = 80 };
void service_storage_text(uint8_t set, char out[SERVICE_STORAGE_BYTES]);

/* ---- time.c ---- */

/* Takes a report's times over. After every report. */
void service_watch_time(struct service *s, uint32_t member, const struct report *rep, int64_t now_us);

/* ---- outliers.c ---- */

/* Takes a commit's figures over, and names those who are far from the others. Before the commit is durable: votes, with
 * what owners measured, are the members' latest reports then. */
void service_watch_outliers(struct service *s, const struct core_record *rec);

/* ---- data_shards.c ---- */

/* Says once that some workers read the same text. After every report. */
void service_watch_shards(struct service *s);

/* ---- stats.c ---- */

/* Lowers statistics of a store to what can be: an earlier release took reports at their word. */
void service_bound_stats(const struct service *s, struct commit_stats *c);
struct commit_stats service_commit_stats(const struct service *s, const struct core_record *rec, int64_t now_us);
/* After it is durable: into the history, the marks, the JSON lines. */
void service_note_commit(struct service *s, const struct commit_stats *c, int64_t now_us);
/* The same of a rollback: the rounds that it takes back leave the history and the totals. */
void service_note_rollback(struct service *s, const struct core_record *rec, int64_t now_us);
/* What a durable record means to people. */
void service_tell_record(struct service *s, const struct core_record *rec);
/* The core's events, as sentences. Of one member so many at once, then a few a minute: its reports cause them. */
void service_tell_events(struct service *s, int64_t now_us);
/* Counts a join that was refused for this reason, and says so now and then. */
void service_note_refused_join(struct service *s, int64_t now_us, const char *why);
void service_tell(struct service *s, enum rv_level level, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, with a `detail` that is not for everybody: an address, a path, a command with one. */
void service_tell_operator(struct service *s, enum rv_level level, const char *name, const char *detail,
						   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- not_held.c ---- */

/* All rounds are committed, and those who have the last state have merely gone: nothing is to be done. */
bool service_is_over(const struct service *s, const struct core_kept *kept);
/* "rivulet-coordinator rollback --dir DIR --to-round 7" (`dir` NULL: "DIR", for everybody); "" when no earlier round is known to be on anybody's disk, or
 * there is no reason to. */
void service_rollback_command(const struct service *s, const struct core_kept *kept, const char *dir, char *out,
							  size_t cap);
/* The core's event says `text`: that, and the next step. */
void service_tell_not_held(struct service *s, uint64_t round, const char *text);
struct service_rolled_back {
	uint64_t from_round, tokens;
	bool unproven; /* nobody who is here had proven the round that the run is back at */
};
void service_describe_rollback(const struct service *s, const struct service_rolled_back *r,
							   char text[SERVICE_ROLLBACK_BYTES]);

#endif
