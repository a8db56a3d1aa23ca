/* worker_dir.h: a worker's directory as a run of some rounds leaves it, without the run. */
#ifndef RV_TESTS_LAB_WORKER_DIR_H
#define RV_TESTS_LAB_WORKER_DIR_H

#include "base/event.h"
#include "worker/state/statestore.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The secret of member.conf: 64 bytes in base64url. */
#define WORKER_DIR_TICKET                                                                                              \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"U2VjcmV0"                                                                                                         \
	"AAAAAA"

enum { WORKER_DIR_ROUNDS = 12, WORKER_DIR_SNAPSHOT_EVERY = 4 };

struct worker_dir {
	char dir[256];
	struct statestore store; /* of the directory */
	struct global_state g;
	struct rv_hash full[WORKER_DIR_ROUNDS + 1]; /* full hash after so many rounds */
	struct rv_events *events;                   /* their text: worker_dir_told() */
	FILE *out;
	char *told;
	size_t told_bytes;
};

/* run.conf of the test fixture's small model with `options` ("key = value\n"...), run.link,
 * member.conf. */
void worker_dir_init(struct worker_dir *w, const char *options);
void worker_dir_release(struct worker_dir *w); /* removes it */
/* Plays up to `rounds`, each with a log entry of that attempt, and a snapshot every SNAPSHOT_EVERY
 * rounds. */
void worker_dir_play(struct worker_dir *w, uint64_t rounds, uint32_t attempt);
/* A replica that trains in `round`. */
void worker_dir_save_replica(struct worker_dir *w, uint64_t round);
void worker_dir_remove(struct worker_dir *w, enum statestore_file kind, uint64_t round);

/* Flips a bit of a file's byte `at`. */
void worker_dir_damage(const struct worker_dir *w, const char *name, long at);
/* The events so far, one JSON object a line. */
const char *worker_dir_told(struct worker_dir *w);

#endif
