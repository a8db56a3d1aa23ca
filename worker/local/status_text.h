/* status_text.h: a worker's status (local_server.h) as lines for a terminal. */
#ifndef RV_WORKER_LOCAL_STATUS_TEXT_H
#define RV_WORKER_LOCAL_STATUS_TEXT_H

#include <jansson.h>
#include <stdio.h>

/* Prints it; parts that the status lacks are left out, as are control characters of its texts. */
void status_text_print(const json_t *status, FILE *out);

#endif
