/* status_view.h: the status JSON (service_status) as text for a terminal. */
#ifndef RV_COORDINATOR_STATUS_VIEW_H
#define RV_COORDINATOR_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Returns how many lines were written. `online` false: says that the coordinator is not running. */
int status_view_print(const json_t *status, bool online, FILE *out);
/* One line of compact JSON without the history and the events. */
void status_view_print_json(const json_t *status, bool online, FILE *out);

#endif
