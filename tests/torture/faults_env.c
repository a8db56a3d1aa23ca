/* faults_env.c: a whole program in which the environment says which call fails: RIVULET_FAULT=N[+],
 * the N-th, or that and all later ones, from main() on; 0: none. At its end it appends "calls N" to
 * the file RIVULET_FAULT_COUNT. */
#include "tests/torture/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_count(void) {
	long calls = faults_calls();
	(void)faults_disarm();
	const char *path = getenv("RIVULET_FAULT_COUNT");
	FILE *f = path != NULL ? fopen(path, "a") : NULL;
	if (f == NULL)
		return;
	(void)fprintf(f, "calls %ld\n", calls);
	(void)fclose(f);
}

__attribute__((constructor)) static void arm(void) {
	const char *text = getenv("RIVULET_FAULT");
	if (text == NULL)
		return;
	faults_hook_sqlite();
	faults_hook_jansson();
	(void)atexit(write_count);
	faults_arm(strtol(text, NULL, 10), strchr(text, '+') != NULL ? FAULTS_FROM_THEN : FAULTS_ONCE);
}
