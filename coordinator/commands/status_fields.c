/* status_fields.c: see status_fields.h. */
#include "coordinator/commands/status_fields.h"

#include <stdio.h>

enum { LONG_WAIT_S = 20 };

double status_number(const json_t *o, const char *key) {
	return json_number_value(json_object_get(o, key));
}

const char *status_string(const json_t *o, const char *key) {
	const char *s = json_string_value(json_object_get(o, key));
	return s != NULL ? s : "";
}

void status_member_name(const json_t *m, char out[static STATUS_NAME_BYTES]) {
	if (status_string(m, "name")[0] != '\0')
		(void)snprintf(out, STATUS_NAME_BYTES, "%s", status_string(m, "name"));
	else
		(void)snprintf(out, STATUS_NAME_BYTES, "worker %.0f", status_number(m, "member"));
}

const json_t *status_missing_member(const json_t *status, size_t i) {
	const json_t *m, *who = json_array_get(json_object_get(status, "missing"), i);
	size_t k;
	json_array_foreach(json_object_get(status, "members"), k, m) {
		if (who != NULL && status_number(m, "member") == json_number_value(who))
			return m;
	}
	return NULL;
}

bool status_waits_long(const json_t *status) {
	return status_number(status, "waiting_s") >= LONG_WAIT_S;
}
