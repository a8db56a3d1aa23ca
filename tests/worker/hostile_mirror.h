/* hostile_mirror.h: a mirror of a published text on loopback whose answers depend on the first part
 * of the path: http://127.0.0.1:PORT/TEMPER. Faults are of shards; other files are served rightly,
 * but by "gone-all" and "lie-all". */
#ifndef RV_TESTS_WORKER_HOSTILE_MIRROR_H
#define RV_TESTS_WORKER_HOSTILE_MIRROR_H

#include "tests/net/web_server.h"

#include <stdatomic.h>

/*	ok         with ranges
	whole      without ranges: status 200 and all of it
	busy       503, Retry-After: 1, every second time
	cut        closes after 300,000 bytes of an answer
	gone       404; gone-all: for every file
	hang       takes requests and does not answer
	lie        a wrong byte in each range; lie-all: in every file
	short      a range that ends before the one asked for
	shifted    another range than the one asked for
	long       another size of the file
	redirect   to "ok"
	abroad     to "landed" of the host localhost, where all is right, and counted
	nowhere    to a host whose name cannot be found
	loop       to itself
	error      500 */
struct hostile_mirror {
	struct web_server server;
	const char *dir;
	atomic_int requests, shards; /* answered; of these, for shards */
	atomic_int landed;           /* for shards, by way of "abroad" */
};

/* Serves the published text in `dir`, which is borrowed. */
void hostile_start(struct hostile_mirror *m, const char *dir, const struct identity *tls);
void hostile_stop(struct hostile_mirror *m);
/* Writes the URL of a temper. */
void hostile_url(const struct hostile_mirror *m, const char *temper, char out[128]);

#endif
