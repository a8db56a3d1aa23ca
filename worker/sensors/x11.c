/* x11.c: declarations as in xcb/xcb.h and xcb/xcbext.h, without the headers; the request and its
 * reply as in the extension's protocol (saverproto), so that libxcb-screensaver is not needed. */
#include "worker/sensors/x11.h"

#include "base/clock.h"
#include "worker/sensors/dynamic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef struct xcb_connection xcb_connection;

/* xcb_screen_iterator_t; the window is the first field of an xcb_screen_t. */
struct screens {
	const uint32_t *root;
	int rem, index;
};

/* xcb_extension_t, xcb_protocol_request_t. */
struct extension {
	const char *name;
	int global_id;
};
struct protocol_request {
	size_t count; /* of parts */
	struct extension *ext;
	uint8_t opcode, is_void;
};

struct api {
	xcb_connection *(*connect)(const char *display, int *screen);
	int (*has_error)(xcb_connection *c);
	void (*disconnect)(xcb_connection *c);
	const void *(*setup)(xcb_connection *c);
	struct screens (*roots)(const void *setup);
	const uint8_t *(*extension)(xcb_connection *c, struct extension *ext); /* [8]: it is present */
	unsigned (*send)(xcb_connection *c, int flags, struct iovec *parts, const struct protocol_request *r);
	void *(*reply)(xcb_connection *c, unsigned request, void **error);
};

#define SYMBOL(name, field)                                                                                            \
	{ name, offsetof(struct api, field) }

static bool load(struct api *out) {
	static const char *const names[] = {"libxcb.so.1", NULL};
	static const struct dynamic_symbol symbols[] = {
		SYMBOL("xcb_connect", connect),
		SYMBOL("xcb_connection_has_error", has_error),
		SYMBOL("xcb_disconnect", disconnect),
		SYMBOL("xcb_get_setup", setup),
		SYMBOL("xcb_setup_roots_iterator", roots),
		SYMBOL("xcb_get_extension_data", extension),
		SYMBOL("xcb_send_request", send),
		SYMBOL("xcb_wait_for_reply", reply),
		{NULL, 0},
	};
	return dynamic_open(names, symbols, out);
}

struct x11 {
	struct api api;
	bool looked, loaded;        /* for the library */
	xcb_connection *connection; /* NULL: none now */
	int64_t again_us;           /* no connection is tried before */
};

/* Pause after a server that could not be reached. */
#define AGAIN_US (10 * (int64_t)RV_US_PER_S)

/* The number that libxcb gives it belongs to the process; one thread asks. */
static struct extension screen_saver = {"MIT-SCREEN-SAVER", 0};

struct x11 *x11_new(void) {
	return calloc(1, sizeof(struct x11));
}

static void hang_up(struct x11 *x) {
	if (x->connection)
		x->api.disconnect(x->connection);
	x->connection = NULL;
}

void x11_free(struct x11 *x) {
	if (x)
		hang_up(x);
	free(x);
}

static bool has_extension(const struct x11 *x) {
	enum { PRESENT = 8 }; /* byte of xcb_query_extension_reply_t */
	const uint8_t *e = x->api.extension(x->connection, &screen_saver);
	return e && e[PRESENT];
}

static bool connect_server(struct x11 *x) {
	const int64_t now_us = rv_clock_monotonic_us();
	if (!x->looked)
		x->loaded = load(&x->api);
	x->looked = true;
	if (x->connection && x->api.has_error(x->connection))
		hang_up(x);
	if (x->connection || !x->loaded || !getenv("DISPLAY") || now_us < x->again_us)
		return x->connection != NULL;
	x->again_us = now_us + AGAIN_US;
	x->connection = x->api.connect(NULL, NULL); /* an object also if it fails */
	if (x->api.has_error(x->connection) || !has_extension(x))
		hang_up(x);
	return x->connection != NULL;
}

/* ScreenSaverQueryInfo: the drawable in, milliseconds since input out. */
static void *query(const struct x11 *x) {
	enum { XCB_REQUEST_CHECKED = 1, QUERY_INFO = 1 };
	struct {
		uint8_t major, minor; /* libxcb fills them in, and the length */
		uint16_t length;
		uint32_t drawable;
	} body = {0};
	struct iovec parts[3]; /* libxcb uses those before the first */
	const struct protocol_request r = {.count = 1, .ext = &screen_saver, .opcode = QUERY_INFO};
	const struct screens s = x->api.roots(x->api.setup(x->connection));
	void *error = NULL;
	body.drawable = s.rem > 0 ? *s.root : 0;
	parts[2] = (struct iovec){&body, sizeof body};
	void *reply = x->api.reply(x->connection, x->api.send(x->connection, XCB_REQUEST_CHECKED, parts + 2, &r), &error);
	free(error);
	return reply;
}

int64_t x11_idle_s(struct x11 *x) {
	enum { SINCE_INPUT = 16 }; /* byte of xcb_screensaver_query_info_reply_t */
	uint32_t idle_ms;
	if (!x || !connect_server(x))
		return -1;
	void *reply = query(x);
	if (!reply)
		return -1;
	memcpy(&idle_ms, (const char *)reply + SINCE_INPUT, sizeof idle_ms);
	free(reply);
	return idle_ms / 1000;
}
