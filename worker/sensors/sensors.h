/* sensors.h: reads this computer: battery, metered line, input by a person, temperatures, load of
 * other programs (worker/allow/readings.h). A thread of its own reads once a second, as a bus or a
 * driver may take long to answer; what fails to answer is unknown.
 *
 * This header is all that a port to another system has to offer; the rest of the room is Linux:
 *   power_supply.h   /sys/class/power_supply, as Documentation/ABI/testing/sysfs-class-power says
 *   temperature.h    /sys/class/hwmon, /sys/class/thermal
 *   load.h           /proc/stat
 *   consoles.h       when somebody last typed on a terminal: their access times
 *   nvml.h           NVIDIA's management library, if the driver is there
 *   bus.h            D-Bus through libsystemd, if it is there
 *   desktop.h        UPower, NetworkManager, logind and GNOME, on that bus
 *   x11.h            the X server's idle time through libxcb, if it is there
 *   person.h         which of the last three kinds counts
 * Nothing of it is linked: programs start without these libraries. */
#ifndef RV_WORKER_SENSORS_SENSORS_H
#define RV_WORKER_SENSORS_SENSORS_H

#include "base/err.h"
#include "worker/allow/readings.h"

#include <stdbool.h>

struct sensors_config {
	const char *root; /* "" but in tests: put before /sys, /proc, /dev, /run and /tmp; copied */
	bool gpu;         /* asks NVIDIA's driver, too: only where a GPU trains, as asking wakes it */
};

struct sensors;

/* Starts the thread. RV_E_NOMEM; RV_E_IO, RV_E_BUSY: no descriptors, no thread. */
enum rv_err sensors_open(const struct sensors_config *cfg, struct sensors **out, struct rv_errtext *et);
/* Returns the latest readings; all are unknown before the first. Any thread; never waits for a
 * reading. */
struct allow_readings sensors_latest(struct sensors *s);
/* Lets the thread end by itself, after a reading under way. Returns at once. NULL is fine. */
void sensors_close(struct sensors *s);

#endif
