/* bus.h: properties of services on D-Bus, by sd-bus of libsystemd (or elogind's, or basu's), looked
 * for at the first use. A service that does not run is not started. */
#ifndef RV_WORKER_SENSORS_BUS_H
#define RV_WORKER_SENSORS_BUS_H

#include <stdbool.h>
#include <stdint.h>

enum bus_kind { BUS_SYSTEM, BUS_SESSION };

struct bus; /* one connection; used by one thread */

/* Returns a connection, which is made at the first question, and made again after it broke; NULL:
 * no memory. */
struct bus *bus_new(enum bus_kind kind);
void bus_free(struct bus *b); /* NULL is fine */

/* An object's interface: {"org.freedesktop.UPower", "/org/freedesktop/UPower",
 * "org.freedesktop.UPower"}. */
struct bus_place {
	const char *service, *path, *interface;
};

/* Read a property: of type b, u or t, as a number. Return false if there is no bus, no such service
 * or property, or no answer within BUS_TIMEOUT_US. */
enum { BUS_TIMEOUT_US = 2000000 };
bool bus_property(struct bus *b, const struct bus_place *at, const char *name, char type, uint64_t *out);
/* Calls a method without arguments that returns one such value. */
bool bus_call(struct bus *b, const struct bus_place *at, const char *method, char type, uint64_t *out);

#endif
