/* status_fields.h: what the status JSON (service_status) says, for those that print it: a field
 * that is missing or of another type is 0 or "". */
#ifndef RV_COORDINATOR_STATUS_FIELDS_H
#define RV_COORDINATOR_STATUS_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { STATUS_NAME_BYTES = 64 };

double status_number(const json_t *o, const char *key);
const char *status_string(const json_t *o, const char *key); /* borrowed of `o` */
/* Writes the name of a member, or "worker" and its number. */
void status_member_name(const json_t *m, char out[static STATUS_NAME_BYTES]);
/* Returns the i-th member for which the run waits; NULL: it waits for fewer. */
const json_t *status_missing_member(const json_t *status, size_t i);
/* Returns true if the run has waited for members for so long that people should know. */
bool status_waits_long(const json_t *status);

#endif
