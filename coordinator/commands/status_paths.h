/* status_paths.h: how the workers of a run meet, from the status JSON: a line for `status`, a
 * matrix for `status --paths`. */
#ifndef RV_COORDINATOR_STATUS_PATHS_H
#define RV_COORDINATOR_STATUS_PATHS_H

#include <jansson.h>
#include <stdio.h>

/* Writes a line that counts the pairs of live workers by how they meet; nothing if there are fewer
 * than two. */
void status_paths_summary(const json_t *status, FILE *out);
/* Writes a row and a column for each live worker: how the one in the row meets the one in the
 * column. */
void status_paths_matrix(const json_t *status, FILE *out);

#endif
