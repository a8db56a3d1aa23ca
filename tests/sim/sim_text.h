/* sim_text.h: the text of a universe with leases, which workers fetch while they train: the
 * platform around worker/text/text_planner.h, text_core.h and text_shelf.h. A worker's cache holds
 * two shards. Sources are three mirrors, of which a seed says how they fail, the members that a
 * worker is linked with, and the coordinator. Bytes are stood for by a number for each range.
 *
 * sim_text.c          a worker's fetching and its reading
 * sim_text_store.c    its cache: the planner's store
 * sim_text_sources.c  what sources answer, and when */
#ifndef RV_TESTS_SIM_SIM_TEXT_H
#define RV_TESTS_SIM_SIM_TEXT_H

#include "tests/sim/sim_limits.h"
#include "worker/text/text_planner.h"

struct sim;
struct sim_worker;

enum {
	SIM_SHARD_SEQUENCES = 12, /* positions of one shard, one after the other */
	SIM_SHARDS = 48,
	SIM_TEXT_RANGES = 3,
	SIM_TEXT_BYTES = 2 * TEXT_RANGE_BYTES + 1000, /* of a shard */
	SIM_TEXT_QUOTA = 2 * SIM_TEXT_BYTES,
	SIM_TEXT_FILES = 16, /* on a disk: more than the quota allows */
	SIM_MIRRORS = 3,
	SIM_TEXT_SOURCES = SIM_MIRRORS + 1 /* beside members; the coordinator is the last */
};

/* How a mirror fails, for the whole universe. */
enum sim_mirror { MIRROR_GOOD, MIRROR_SLOW, MIRROR_CUTS, MIRROR_LIES, MIRROR_VANISHES, MIRROR_LACKS, MIRROR_BUSY };
enum { SIM_MIRROR_KINDS = MIRROR_BUSY + 1 };

struct sim_shard {
	bool used;
	bool whole; /* it has its name; else it is a part */
	bool open;  /* by this process, to write into it */
	uint64_t shard;
	uint64_t check[SIM_TEXT_RANGES]; /* of the bytes of each range; 0: not here */
};

struct sim_text {
	/* the machine */
	struct sim_shard files[SIM_TEXT_FILES];
	/* the process */
	bool running;
	struct sim_worker *worker;
	struct text_shelf shelf;
	void *memory;
	struct text_core *core;
	struct text_planner planner;
	uint8_t held[SIM_TEXT_RANGES];           /* the planner's scratch */
	struct text_request asks[TEXT_ASKS_MAX]; /* under way; id 0: free */
	bool linked[SIM_ORDINARY];               /* members, by host, as the core knows */
	uint64_t wanted[TEXT_FILES_MAX];
	int n_wanted;
	bool dirty; /* wants changed: plan anew */
	bool waits; /* training waits for `wait` */
	struct text_wait wait;
	int n_read; /* sequences of the step under way that are read */
	bool has_read;
	uint64_t read_shard; /* read last */
};

/* sim_text.c */
void corpus_open(struct sim *s, int host);            /* the session begins */
void corpus_end(struct sim *s, int host, bool power); /* the process is gone, with the machine's power */
void corpus_release(struct sim_worker *w);
/* A TRAIN begins: what it may read. */
void corpus_wants(struct sim *s, int host, const struct reading *r);
/* Reads the sequences of a step. Returns false while one is not here. */
bool corpus_reads_step(struct sim *s, int host);
/* Plans, asks and ends requests, as the text thread does between two waits. */
void corpus_turn(struct sim *s, int host);

/* sim_text_store.c */
void corpus_store_open(struct sim_worker *w);
void corpus_store_close(struct sim *s, int host, bool power);
extern const struct text_planner_ops sim_text_store; /* without ctx, `lied` and `refused` */
const struct sim_shard *corpus_store_find(const struct sim_text *t, uint64_t shard);
bool corpus_store_is_right(const struct sim_shard *f);
void corpus_store_wipe(struct sim_worker *w);
void corpus_store_rot(struct sim_worker *w, uint32_t which);

/* sim_text_sources.c */
/* Returns the number that stands for the right bytes of a range; never 0. */
uint64_t corpus_bytes_of(uint64_t shard, uint32_t range);
/* Returns true if the source is one that gives wrong bytes. */
bool corpus_source_lies(const struct sim *s, const struct sim_text *t, int source);
/* Starts a request, and a question to a member. */
void corpus_source_ask(struct sim *s, int host, const struct text_request *q);
void corpus_source_question(struct sim *s, int host, int source, const uint64_t *files, int n);

#endif
