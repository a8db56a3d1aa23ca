/* serve.c: `rivulet data serve`. */
#include "lab/data/data.h"
#include "lab/data/file_server.h"
#include "lab/run/console.h"
#include "train/text/published/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { TICK_NS = 100 * 1000 * 1000 };

static void tell_start(const struct console *c, const struct file_server *s, const char *dir) {
	char url[64];
	(void)snprintf(url, sizeof url, "http://THIS-HOST:%u/", file_server_port(s));
	rv_event(c->events, RV_INFO, "serving",
			 RV_FIELDS(rv_field_str("dir", dir), rv_field_int("port", file_server_port(s))),
			 "%s at %s; Ctrl-C ends it. State its address with --mirror, or in manifest.json", dir, url);
}

/* Shows what is served until a signal comes. */
static void wait_for_a_signal(struct console *c, struct file_server *s) {
	const struct timespec pause = {.tv_nsec = TICK_NS};
	char note[96];
	struct file_server_counts now = {0};
	do {
		(void)nanosleep(&pause, NULL);
		now = file_server_counts(s);
		(void)snprintf(note, sizeof note, "%" PRIu64 " requests  %d connections", now.requests, now.connections);
	} while (console_progress(c, "serve", now.bytes, 0, "byte", note));
	rv_progress_clear(c->events);
	rv_event(c->events, RV_INFO, "served",
			 RV_FIELDS(rv_field_int("requests", (int64_t)now.requests), rv_field_int("bytes", (int64_t)now.bytes)),
			 "%" PRIu64 " requests, %" PRIu64 " bytes", now.requests, now.bytes);
}

enum rv_err data_serve(const struct data_options *o, const char *dir, struct rv_errtext *et) {
	struct console c = {.signals = -1};
	struct published *text = NULL;
	struct file_server *s = NULL;
	const struct file_server_config config = {
		.dir = dir, .listen = o->listen, .port = (uint16_t)o->port, .connections = (int)o->connections};
	enum rv_err e = console_open(&c, stdout, et);
	if (e == RV_OK)
		e = published_open(dir, &text, et); /* nothing else is served */
	if (e == RV_OK)
		e = file_server_start(&config, &s, et);
	if (e == RV_OK) {
		tell_start(&c, s, dir);
		wait_for_a_signal(&c, s);
	}
	file_server_stop(s);
	published_close(text);
	console_close(&c);
	return e;
}
