/* listen_notice.c: see listen_notice.h. */
#include "coordinator/web/listen_notice.h"

#include "base/clock.h"
#include "coordinator/web/listen_file.h"

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
