/* local_file.c: see local_file.h. */
#include "worker/local/local_file.h"

#include "base/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST_BYTES = 4096, SECRET_MODE = 0600 };

static enum rv_err path_in(const char *dir, char out[PATH_MAX], struct rv_errtext *et) {
	if (snprintf(out, PATH_MAX, "%s/" LOCAL_FILE, dir) < PATH_MAX)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%.100s...: the path is longer than %d bytes", dir, PATH_MAX - 1);
}

static bool is_token(const char *text) {
	return strlen(text) == LOCAL_TOKEN_BYTES - 1 && strspn(text, "0123456789abcdef") == LOCAL_TOKEN_BYTES - 1;
}

static bool take(const json_t *o, struct local_place *out) {
	const json_int_t port = json_integer_value(json_object_get(o, "port"));
	const char *token = json_string_value(json_object_get(o, "token"));
	if (port < 1 || port > UINT16_MAX || !token || !is_token(token))
		return false;
	*out = (struct local_place){.port = (uint16_t)port, .pid = json_integer_value(json_object_get(o, "pid"))};
	(void)snprintf(out->token, sizeof out->token, "%s", token);
	return true;
}

enum rv_err local_file_read(const char *dir, struct local_place *out, struct rv_errtext *et) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	RV_TRY(path_in(dir, path, et));
	RV_TRY(rv_file_read(path, FILE_MOST_BYTES, &text, &n, et));
	json_t *o = json_loadb((const char *)text, n, 0, NULL);
	free(text);
	const bool ok = take(o, out);
	json_decref(o);
	return ok ? RV_OK
			  : rv_fail(et, RV_E_CORRUPT,
						"%s: not a port and a token: the next start of the worker writes it anew; remove it if it "
						"stays so",
						path);
}

enum rv_err local_file_write(const char *dir, const struct local_place *place, struct rv_errtext *et) {
	char path[PATH_MAX], text[160];
	RV_TRY(path_in(dir, path, et));
	const int n = snprintf(text, sizeof text, "{\"port\": %u, \"token\": \"%s\", \"pid\": %lld}\n", place->port,
						   place->token, (long long)place->pid);
	return rv_file_write_atomic(path, text, (size_t)n, SECRET_MODE, et);
}

void local_file_url(const struct local_place *place, char out[LOCAL_URL_BYTES]) {
	(void)snprintf(out, LOCAL_URL_BYTES, "http://127.0.0.1:%u/#%s", place->port, place->token);
}
