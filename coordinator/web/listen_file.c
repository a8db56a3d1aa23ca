/* listen_file.c: see listen_file.h. */
#include "coordinator/web/listen_file.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTEN_MODE = 0644 };

enum rv_err listen_file_read(const char *path, struct address *out, struct rv_errtext *et) {
	uint8_t *text = NULL;
	size_t n = 0;
	RV_TRY(rv_file_read(path, NET_ADDR_BYTES, &text, &n, et));
	text[strcspn((char *)text, "\n")] = '\0';
	enum rv_err e = address_parse((char *)text, out, et);
	free(text);
	return e;
}

static bool says(const char *path, const struct address *at) {
	struct address there;
	return listen_file_read(path, &there, NULL) == RV_OK && strcmp(there.host, at->host) == 0 && there.port == at->port;
}

void listen_file_clean(const char *path, const struct address *right) {
	if (!says(path, right))
		(void)unlink(path);
}

enum rv_err listen_file_write(const char *path, const struct address *at, struct rv_errtext *et) {
	char text[NET_ADDR_BYTES + 1];
	if (says(path, at))
		return RV_OK;
	if (!address_format(at, text))
		return rv_fail(et, RV_E_RANGE, "%s: the address is too long", at->host);
	size_t n = strlen(text);
	text[n] = '\n';
	return rv_file_write_atomic(path, text, n + 1, LISTEN_MODE, et);
}
