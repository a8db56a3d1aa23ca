/* listen_file.c: see listen_file.h. */
#include "coordinator/web/listen_file.h"

#include "base/clock.h"
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

enum rv_err listen_notice_begin(struct listen_notice *n, int64_t now_us, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	enum rv_err e = listen_file_write(n->path, &n->at, &why);
	n->owed = e == RV_E_FULL;
	n->tried_us = now_us;
	if (e != RV_OK && !n->owed)
		return rv_fail(et, e, "%s", why.text);
	if (n->owed)
		rv_event(n->events, RV_WARN, "listen_file", RV_NO_FIELDS,
				 "%s; serving without it: until there is room on the disk, commands on this machine (`status`, "
				 "`invite`, `backup`) do not find this coordinator",
				 why.text);
	return RV_OK;
}

void listen_notice_tick(struct listen_notice *n, int64_t now_us) {
	if (!n->owed || now_us - n->tried_us < LISTEN_NOTICE_PAUSE_S * RV_US_PER_S)
		return;
	n->tried_us = now_us;
	if (listen_file_write(n->path, &n->at, NULL) != RV_OK)
		return;
	n->owed = false;
	rv_event(n->events, RV_INFO, "listen_file", RV_NO_FIELDS,
			 "%s is written: commands on this machine find this coordinator now", n->path);
}
