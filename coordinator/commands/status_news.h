/* status_news.h: the status JSON (service_status) for programs: all of it, or what has changed in
 * it, as lines of JSON. */
#ifndef RV_COORDINATOR_STATUS_NEWS_H
#define RV_COORDINATOR_STATUS_NEWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the whole object on one line. */
void status_print_json(const json_t *status, bool online, FILE *out);

/* The news printed so far by status_news_print. Zero-initialise. */
struct status_news {
	bool begun;
	double round; /* rounds committed */
	char phase[16];
	bool offline, store_full, missing;
	uint64_t storage; /* indices of members whose disk fails */
};
/* Prints a compact JSON line for each change since the last call:
 *   {"event":"round",...}                 a round was committed
 *   {"event":"waiting"|"done",...}        the run begins to wait for workers; is done
 *   {"event":"missing",...}               it has waited for long: the missing members
 *   {"event":"store_full"|"store_ok",...} the coordinator cannot write its store; can again
 *   {"event":"member_storage"|"member_storage_back",...}  a worker's disk fails; works again
 *   {"event":"offline"|"online",...}      the coordinator is not running (`online` false); is again */
void status_news_print(struct status_news *told, const json_t *status, bool online, FILE *out);

#endif
