/* bus.c: declarations of sd-bus as in systemd/sd-bus.h (stable since version 221), without the
 * header: neither it nor the library is needed to build. */
#include "worker/sensors/bus.h"

#include "base/clock.h"
#include "worker/sensors/dynamic.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;

struct api {
	int (*open_system)(sd_bus **out);
	int (*open_user)(sd_bus **out);
	sd_bus *(*unref)(sd_bus *b);
	int (*new_call)(sd_bus *b, sd_bus_message **out, const char *service, const char *path, const char *interface,
					const char *member);
	int (*set_auto_start)(sd_bus_message *m, int yes);
	int (*append)(sd_bus_message *m, char type, const void *value);
	int (*call)(sd_bus *b, sd_bus_message *m, uint64_t timeout_us, void *error, sd_bus_message **reply);
	int (*enter)(sd_bus_message *m, char type, const char *contents);
	int (*read)(sd_bus_message *m, char type, void *value);
	sd_bus_message *(*unref_message)(sd_bus_message *m);
};

#define SYMBOL(name, field)                                                                                            \
	{ name, offsetof(struct api, field) }

static bool load(struct api *out) {
	static const char *const names[] = {"libsystemd.so.0", "libelogind.so.0", "libbasu.so.0", NULL};
	static const struct dynamic_symbol symbols[] = {
		SYMBOL("sd_bus_open_system", open_system),
		SYMBOL("sd_bus_open_user", open_user),
		SYMBOL("sd_bus_unref", unref),
		SYMBOL("sd_bus_message_new_method_call", new_call),
		SYMBOL("sd_bus_message_set_auto_start", set_auto_start),
		SYMBOL("sd_bus_message_append_basic", append),
		SYMBOL("sd_bus_call", call),
		SYMBOL("sd_bus_message_enter_container", enter),
		SYMBOL("sd_bus_message_read_basic", read),
		SYMBOL("sd_bus_message_unref", unref_message),
		{NULL, 0},
	};
	return dynamic_open(names, symbols, out);
}

struct bus {
	enum bus_kind kind;
	struct api api;
	bool looked, loaded; /* for the library */
	sd_bus *connection;  /* NULL: none now */
	int64_t again_us;    /* no connection is tried before */
};

/* Pause after a bus that could not be reached. */
#define AGAIN_US (10 * (int64_t)RV_US_PER_S)

struct bus *bus_new(enum bus_kind kind) {
	struct bus *b = calloc(1, sizeof *b);
	if (b)
		b->kind = kind;
	return b;
}

static void hang_up(struct bus *b) {
	if (b->connection)
		(void)b->api.unref(b->connection);
	b->connection = NULL;
}

void bus_free(struct bus *b) {
	if (b)
		hang_up(b);
	free(b);
}

static bool connect_bus(struct bus *b) {
	const int64_t now_us = rv_clock_monotonic_us();
	if (!b->looked)
		b->loaded = load(&b->api);
	b->looked = true;
	if (b->connection || !b->loaded || now_us < b->again_us)
		return b->connection != NULL;
	if ((b->kind == BUS_SYSTEM ? b->api.open_system : b->api.open_user)(&b->connection) < 0)
		b->connection = NULL;
	b->again_us = now_us + AGAIN_US;
	return b->connection != NULL;
}

/* ---- one question ---- */

static bool read_value(const struct api *api, sd_bus_message *m, char type, uint64_t *out) {
	int truth = 0;
	uint32_t number = 0;
	void *const to = type == 'b' ? (void *)&truth : type == 'u' ? (void *)&number : (void *)out;
	if (api->read(m, type, to) <= 0)
		return false;
	if (type != 't')
		*out = type == 'b' ? truth != 0 : number;
	return true;
}

/* Sends `m`, whose making gave `made`, and reads the answer: in a variant or plain. */
static bool ask(struct bus *b, sd_bus_message *m, int made, bool variant, char type, uint64_t *out) {
	const struct api *api = &b->api;
	const char contents[] = {type, '\0'};
	sd_bus_message *reply = NULL;
	bool ok = made >= 0 && api->set_auto_start(m, 0) >= 0;
	const int sent = ok ? api->call(b->connection, m, BUS_TIMEOUT_US, NULL, &reply) : -1;
	ok = sent >= 0 && reply && (!variant || api->enter(reply, 'v', contents) > 0) && read_value(api, reply, type, out);
	(void)api->unref_message(reply);
	(void)api->unref_message(m);
	return ok;
}

/* A refusal by the bus and a broken connection look alike here: the next question asks anew, on a
 * new connection at most every AGAIN_US. */
static bool note(struct bus *b, bool ok) {
	if (!ok && rv_clock_monotonic_us() >= b->again_us)
		hang_up(b);
	return ok;
}

bool bus_property(struct bus *b, const struct bus_place *at, const char *name, char type, uint64_t *out) {
	sd_bus_message *m = NULL;
	if (!b || !connect_bus(b))
		return false;
	int made = b->api.new_call(b->connection, &m, at->service, at->path, "org.freedesktop.DBus.Properties", "Get");
	if (made >= 0)
		made = b->api.append(m, 's', at->interface);
	if (made >= 0)
		made = b->api.append(m, 's', name);
	return note(b, ask(b, m, made, true, type, out));
}

bool bus_call(struct bus *b, const struct bus_place *at, const char *method, char type, uint64_t *out) {
	sd_bus_message *m = NULL;
	if (!b || !connect_bus(b))
		return false;
	const int made = b->api.new_call(b->connection, &m, at->service, at->path, at->interface, method);
	return note(b, ask(b, m, made, false, type, out));
}
