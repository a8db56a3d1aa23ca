/* status_view.h: the status JSON (service_status) as text for a terminal. */
#ifndef RV_COORDINATOR_STATUS_VIEW_H
#define RV_COORDINATOR_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the status for a terminal of `width` columns (1 or more), and returns how many of its lines that takes.
 * `online` false: says that the coordinator is not running. */
int status_view_print(const json_t *status, bool online, int width, FILE *out);
/* The whole object on one line. */
void status_view_print_json(const json_t *status, bool online, FILE *out);

/* What status_view_print_news has told so far. Zero-initialise. */
struct status_news {
	bool begun;
	double round; /* rounds committed */
	char phase[16];
	bool offline, store_full, missing;
	uint64_t storage; /* members whose disk fails: a set of indices */
};
/* A compact JSON line for each thing that changed since the last call:
 *   {"event":"round",...}                 a round was committed
 *   {"event":"waiting"|"done",...}        the run begins to wait for workers; is done
 *   {"event":"missing",...}               it has waited for long: who is missing
 *   {"event":"store_full"|"store_ok",...} the coordinator cannot write its store; can again
 *   {"event":"member_storage"|"member_storage_back",...}  a worker's disk takes nothing; takes everything again
 *   {"event":"offline"|"online",...}      the coordinator is not running (`online` false); is again */
void status_view_print_news(struct status_news *told, const json_t *status, bool online, FILE *out);

#endif
