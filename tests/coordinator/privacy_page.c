/* privacy_page.c: see privacy_page.h. */
#include "tests/coordinator/privacy_page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/common/check.h"

enum { PAGE_BYTES = 1 << 16, NAME_BYTES = 64 };

static const char *page(void) {
	static char text[PAGE_BYTES];
	if (text[0] != '\0')
		return text;
	FILE *f = fopen(PRIVACY_PAGE, "re");
	assert_non_null(f);
	const size_t n = fread(text, 1, sizeof text - 1, f);
	(void)fclose(f);
	assert_true(n > 0 && n < sizeof text - 1);
	return text;
}

void privacy_page_names(const json_t *status) {
	const char *key;
	json_t *value;
	size_t i;
	char name[NAME_BYTES];
	json_object_foreach((json_t *)status, key, value) {
		(void)snprintf(name, sizeof name, "`%s`", key);
		if (!isdigit((unsigned char)key[0]) && strstr(page(), name) == NULL)
			fail_msg("docs/privacy.md does not name %s, which anybody reads in /v1/status", name);
		privacy_page_names(value);
	}
	json_array_foreach(status, i, value) {
		privacy_page_names(value);
	}
}
