/* evil_options.c: see evil.h. */
#include "tests/attack/evil.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local int selected; /* replicas of the lab encode side by side */

/* Returns the end of the list that begins at `text`. */
static const char *end_of_list(const char *text) {
	return text + strcspn(text, "/");
}

void evil_select(int k) {
	const char *text = getenv("RIVULET_EVIL");
	int n = 1;
	for (; text != NULL && *end_of_list(text) != '\0'; text = end_of_list(text) + 1)
		n++;
	if (n > 1)
		selected = k % n;
}

const char *evil_text(const char *name) {
	const char *text = getenv("RIVULET_EVIL");
	const size_t n = strlen(name);
	for (int k = 0; k < selected; k++)
		text = end_of_list(text) + 1;
	const char *end = text ? end_of_list(text) : NULL;
	for (; text != NULL && text < end; text += strcspn(text, ",/") + 1)
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

bool evil_at(int place) {
	double victim = place;
	(void)evil("victim", &victim);
	return (int)victim == place;
}

bool evil_lies(const char *name, uint64_t round, double *value) {
	double from = 0;
	(void)evil("lies_from", &from);
	return (double)round >= from && evil(name, value);
}
