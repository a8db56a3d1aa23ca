/* text_thread.h: gets the published text of a run while the worker trains: one thread that fetches
 * what will be read next into a cache (text_cache.h), from mirrors (text_http.h), members and,
 * last, the coordinator, as text_core.h chooses.
 *
 * The reader of the cache's directory (train/text/published/published.h) calls text_get for what is
 * missing; whatever it reads has been checked twice, when it came and when it is first read. */
#ifndef RV_WORKER_TEXT_TEXT_THREAD_H
#define RV_WORKER_TEXT_TEXT_THREAD_H

#include "base/hash.h"
#include "net/address_reach.h"
#include "net/http_client.h"
#include "train/text/published/manifest.h"
#include "worker/text/text_core.h"

enum { TEXT_NOTICE_BYTES = 400 };

struct text_config {
	const char *dir; /* of the cache, for this text only; copied, as the rest */
	struct rv_hash data_hash;
	uint64_t quota_bytes;
	const char *const *mirrors; /* (n_mirrors) beside those of the manifest */
	int n_mirrors;
	const char *hosts; /* of the manifest's mirrors that may be asked (mirror_hosts.h); NULL: none */
	const struct http_client_config *coordinator; /* NULL: it gives no text */
	enum address_reach met;                       /* how the coordinator is reached: mirrors may not be narrower */
	int64_t most_per_s;                           /* bytes a second from mirrors; 0: no limit */
	int tries;                                    /* of all sources, until one gives the manifest; 0: 4 */
	/* Called ten times a second while text_open waits. Returns false to stop. May be NULL. */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *ctx;
};

struct text; /* opaque */

/* Opens the cache, fetches manifest, tokenizer and topmost index page where they are missing, and
 * starts the thread. Blocks until they are there: the directory can then be opened as a published
 * text. RV_E_NOTFOUND: no source gives what is the run's (the text says what each answered);
 * RV_E_CANCELLED; what text_cache_open returns; RV_E_INVALID (the environment). */
enum rv_err text_open(const struct text_config *cfg, struct text **out, struct rv_errtext *et);
/* Ends requests and the thread, and frees `t`. Nobody may be in text_get. NULL is fine. */
void text_close(struct text *t);
const char *text_dir(const struct text *t);
const struct manifest *text_manifest(const struct text *t);
/* Returns where the mesh tells of its links and carries questions and answers (text_members.h). */
struct text_members *text_members_of(struct text *t);

/* States what will be read, in the order of need. The first are fetched ahead, as many as the quota
 * holds, at most TEXT_FILES_MAX. Any thread; does not block. */
void text_want(struct text *t, const uint64_t *shards, int n);
/* States what will be read at some time, n <= TEXT_FILES_MAX: it is fetched behind what text_want()
 * named, and kept. Any thread; does not block. */
void text_want_later(struct text *t, const uint64_t *shards, int n);
/* Returns true if all of that is here, or if the quota has no room for it beside what is wanted
 * first, so that it would never be. Any thread; does not block. */
bool text_has_later(struct text *t);

/* Waits until a shard is in the directory, and checked: published_missing.get, with a struct
 * text. Up to 8 threads at once. RV_E_CANCELLED: `stops` says so. */
enum rv_err text_get(void *text, uint64_t shard, struct rv_errtext *et);
/* Sets what text_get asks ten times a second whether to stop waiting, by the waiting thread. NULL,
 * as at first: it never stops. */
void text_set_stops(struct text *t, bool (*stops)(void *ctx), void *ctx);

/* Begins no request while `paused`; those under way, of one part of a shard each, end. Any
 * thread. */
void text_pause(struct text *t, bool paused);
/* Changes text_config.most_per_s, for requests from now on. Any thread. */
void text_set_most(struct text *t, int64_t most_per_s);

struct text_stats {
	uint64_t bytes[3];     /* that were kept, by enum text_source_kind */
	uint64_t wasted_bytes; /* that came twice, or wrong */
	int64_t stall_us;      /* while text_get waited */
	uint64_t cached_bytes;
	uint32_t lies; /* files that were wrong, and whose sources are known */
};
struct text_stats text_stats(struct text *t);
/* Writes the next notice for people: a source that fails or lies, a wait that grows long. Returns
 * false if there is none. */
bool text_notice(struct text *t, char out[static TEXT_NOTICE_BYTES]);

#endif
