/* power_supply.h: what the kernel knows of batteries and mains. */
#ifndef RV_WORKER_SENSORS_POWER_SUPPLY_H
#define RV_WORKER_SENSORS_POWER_SUPPLY_H

#include "worker/allow/readings.h"

/* Sets on_battery and battery_percent from ROOT/sys/class/power_supply. A computer without
 * batteries is not on battery; batteries of devices (a mouse, a headset) do not count. Unknown:
 * there is no such directory, or batteries do not say whether they discharge. */
void power_supply_read(const char *root, struct allow_readings *out);

#endif
