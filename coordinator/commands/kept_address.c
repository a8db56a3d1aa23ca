/* kept_address.c: see kept_address.h. */
#include "coordinator/commands/kept_address.h"

#include "base/file.h"
#include "base/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 2 * NET_ADDR_BYTES + 64, MODE = 0644 };

static const struct rv_option lines[] = {
	{"listen", RV_OPT_STRING, offsetof(struct kept_address, listen), NET_ADDR_BYTES, "", 0, 0, NULL, "", ""},
	{"advertise", RV_OPT_STRING, offsetof(struct kept_address, advertise), NET_ADDR_BYTES, "", 0, 0, NULL, "", ""},
	{.name = NULL}};

static enum rv_err check(const struct kept_address *a, struct rv_errtext *et) {
	struct address parsed;
	if (a->listen[0] != '\0')
		RV_TRY(address_parse(a->listen, &parsed, et));
	return a->advertise[0] != '\0' ? address_parse(a->advertise, &parsed, et) : RV_OK;
}

enum rv_err kept_address_read(const char *path, struct kept_address *out, struct rv_errtext *et) {
	struct kept_address a = {.listen = "", .advertise = ""};
	uint8_t *text = NULL;
	size_t n = 0;
	enum rv_err e = rv_file_read(path, TEXT_BYTES, &text, &n, et);
	if (e == RV_E_NOTFOUND)
		return RV_OK;
	if (e == RV_OK && strlen((const char *)text) != n)
		e = rv_fail(et, RV_E_INVALID, "it holds a zero byte");
	if (e == RV_OK)
		e = rv_options_parse_text(lines, &a, "address", (const char *)text, et);
	if (e == RV_OK)
		e = check(&a, et);
	free(text);
	if (e != RV_OK)
		return rv_fail_context(et, e,
							   "%s holds the address of the last `serve` and is damaged: remove it, and give --listen "
							   "and --advertise again",
							   path);
	*out = a;
	return RV_OK;
}

enum rv_err kept_address_write(const char *path, const struct kept_address *a, struct rv_errtext *et) {
	char text[TEXT_BYTES];
	struct kept_address now = {.listen = ""};
	if (kept_address_read(path, &now, NULL) == RV_OK && strcmp(now.listen, a->listen) == 0 &&
		strcmp(now.advertise, a->advertise) == 0)
		return RV_OK;
	const size_t n = rv_options_print(lines, a, text, sizeof text);
	return rv_file_write_atomic(path, text, n, MODE, et);
}
