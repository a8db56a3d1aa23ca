/* status_view.h: the status JSON (service_status) as text for a terminal. */
#ifndef RV_COORDINATOR_STATUS_VIEW_H
#define RV_COORDINATOR_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the status for a terminal of `width` columns (1 or more), and returns the number of lines
 * that it takes. `online` false: reports that the coordinator is not running. `matrix`: writes how
 * each pair of workers meets, too. */
int status_view_print(const json_t *status, bool online, bool matrix, int width, FILE *out);
/* Prints the whole object on one line. */
void status_view_print_json(const json_t *status, bool online, FILE *out);

/* The news printed so far by status_view_print_news. Zero-initialise. */
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
 *   {"event":"offline"|"online",...}      the coordinator is not running (`online` false); is
 * again */
void status_view_print_news(struct status_news *told, const json_t *status, bool online, FILE *out);

#endif
