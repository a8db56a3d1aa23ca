/* text_thread_state.h: the state behind text_thread.h, shared by text_thread.c (its calls and its
 * loop), text_plan.c (the planner's platform), text_sources.c (requests and answers), text_hear.c
 * (members) and text_open.c (what comes first). Internal to them. */
#ifndef RV_WORKER_TEXT_TEXT_THREAD_STATE_H
#define RV_WORKER_TEXT_TEXT_THREAD_STATE_H

#include "base/run_about.h"
#include "train/text/published/mirror_hosts.h"
#include "worker/text/text_cache.h"
#include "worker/text/text_http.h"
#include "worker/text/text_members.h"
#include "worker/text/text_planner.h"
#include "worker/text/text_thread.h"

#include <pthread.h>

enum { TEXT_WAITERS = 8, TEXT_NOTICES = 16, TEXT_TRANSFERS_CAPPED = 2 };

/* A file that somebody waits for. Under the lock. */
struct text_waiter {
	bool used, done;
	bool is_suspect; /* a shard that was there and could not be read: to be checked */
	struct text_file file;
	int64_t since_us, notice_us;
};

struct text_origin {
	enum text_source_kind kind;
	struct text_mirror mirror; /* MIRROR */
	uint32_t member;           /* MEMBER */
	char name[128];            /* for people */
	uint32_t ask, http_id;     /* COORDINATOR: the request under way; 0: none */
	uint32_t ask_bytes;
	bool fails; /* since a notice said so */
	char failure[RV_ERRTEXT_BYTES];
};

struct text {
	/* The thread's. */
	struct text_cache *cache;
	struct text_http *http;
	struct http_client *client; /* to the coordinator; NULL: none */
	struct text_members *members;
	struct text_keys keys;
	char hosts[sizeof((struct run_about *)0)->text_hosts]; /* as in text_config */
	uint64_t quota_bytes;
	void *memory;
	struct text_core *core;
	int n_origins;
	struct text_origin origins[TEXT_SOURCES_MAX];
	struct {
		uint32_t ask;
		int source;
	} asks[TEXT_ASKS_MAX]; /* ask 0: free */
	uint8_t *held;         /* (ranges_max) the planner's scratch */
	struct text_planner planner;
	bool capped; /* by most_per_s */
	/* Shared, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread, ends, paused;
	int64_t most_per_s;       /* as text_set_most() says */
	bool (*stops)(void *ctx); /* as text_set_stops() says */
	void *stops_ctx;
	bool dirty; /* wants or files changed: plan anew */
	int n_wanted;
	uint64_t wanted[TEXT_FILES_MAX];
	int n_later;
	uint64_t later[TEXT_FILES_MAX];
	bool has_later; /* as text_has_later() returns it, by the latest plan */
	struct text_waiter waiters[TEXT_WAITERS];
	struct text_stats stats;
	int first_notice, n_notices;
	char notices[TEXT_NOTICES][TEXT_NOTICE_BYTES];
};

/* ---- text_thread.c: any thread ---- */
void text_say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for a file until it is there, at most until `cfg` (while opening) or text_set_stops() says
 * stop. */
enum rv_err text_wait(struct text *t, const struct text_file *f, const struct text_config *cfg, struct rv_errtext *et);

/* ---- text_plan.c: the thread ---- */
/* Makes the planner, once there are cache, core and scratch. */
void text_plan_init(struct text *t);
/* Decides anew which files to fetch, and answers those who wait for what is there. */
void text_plan(struct text *t, int64_t now_us);

/* ---- text_sources.c: the thread ---- */
int text_add_mirror(struct text *t, const struct text_mirror *m);
void text_add_coordinator(struct text *t);
struct text_http_owner text_http_owner(struct text *t);
/* Forgets whose request that was: it is over. */
void text_forget_ask(struct text *t, uint32_t ask);
/* Take a whole range of a request, and the end of one without an answer. */
void text_take_range(struct text *t, uint32_t ask, const uint8_t *bytes, size_t n);
/* Starts what the core wants, and ends what it no longer does. */
void text_request_all(struct text *t, int64_t now_us);
/* Moves the requests on, for at most timeout_ms. */
void text_move(struct text *t, int timeout_ms);

/* ---- text_hear.c: the thread ---- */
/* Takes what members have said and sent, and whose links came or went. */
void text_hear_members(struct text *t);
/* Asks a member which of the wanted files it holds, if it is time. */
void text_question_member(struct text *t, int source, int64_t now_us);

/* ---- text_open.c ---- */
/* Fetches manifest and tokenizer into the cache, before there is a thread. */
enum rv_err text_fetch_first(struct text *t, const struct text_config *cfg, struct rv_errtext *et);

#endif
