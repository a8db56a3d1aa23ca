/* status_view.h: the status JSON (service_status) as text for a terminal. */
#ifndef RV_COORDINATOR_STATUS_VIEW_H
#define RV_COORDINATOR_STATUS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Writes the status for a terminal of `width` columns (1 or more), and returns the number of lines
 * that it takes. `online` false: reports that the coordinator is not running. `matrix`: writes how
 * each pair of workers meets, too. */
int status_view_print(const json_t *status, bool online, bool matrix, int width, FILE *out);

#endif
