/* evil_options.c: see evil.h. */
#include "tests/attack/evil.h"

#include <stdlib.h>
#include <string.h>

const char *evil_text(const char *name) {
	const char *text = getenv("RIVULET_EVIL");
	const size_t n = strlen(name);
	for (; text != NULL && *text != '\0'; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
		if (strncmp(text, name, n) == 0 && text[n] == '=')
			return text + n + 1;
	return NULL;
}

bool evil(const char *name, double *value) {
	const char *text = evil_text(name);
	if (text != NULL)
		*value = strtod(text, NULL);
	return text != NULL;
}

bool evil_lies(const char *name, uint64_t round, double *value) {
	double from = 0;
	(void)evil("lies_from", &from);
	return (double)round >= from && evil(name, value);
}
