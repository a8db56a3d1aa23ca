/* fuzz_coordinator_query.c: query strings and form bodies that the coordinator reads. What is found
 * must be in the text, once; what follows the text is never looked at. */
#include "net/http_server/query.h"

#include "tests/fuzz/fuzz.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often `name` begins a field: from the definition, slowly. */
static int count_fields(const char *text, size_t n, const char *name) {
	int count = 0;
	size_t len = strlen(name);
	for (size_t i = 0; i + len <= n; i++) {
		bool begins = i == 0 || text[i - 1] == '&';
		bool ends = i + len == n || text[i + len] == '=' || text[i + len] == '&';
		count += begins && ends && memcmp(text + i, name, len) == 0;
	}
	return count;
}

static void check(const char *text, size_t n, const char *name) {
	uint64_t v = 0;
	char want[64];
	enum query_result r = query_number(text, n, name, &v);
	int fields = count_fields(text, n, name);
	RV_ASSERT((fields == 0) == (r == QUERY_ABSENT));
	if (r != QUERY_NUMBER)
		return;
	RV_ASSERT(fields == 1 && v < UINT64_C(10000000000000000000));
	(void)snprintf(want, sizeof want, "%" PRIu64, v);
	RV_ASSERT(memmem(text, n, want, strlen(want)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char *text = malloc(size > 0 ? size : 1); /* exactly as long: a sanitizer sees what reads further */
	RV_ASSERT(text);
	if (size > 0)
		memcpy(text, data, size);
	check(text, size, "after");
	check(text, size, "count");
	check(text, size, "member");
	check(text, size, "banned");
	free(text);
	return 0;
}
