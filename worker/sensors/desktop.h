/* desktop.h: what the services of a desktop report on D-Bus. */
#ifndef RV_WORKER_SENSORS_DESKTOP_H
#define RV_WORKER_SENSORS_DESKTOP_H

#include "worker/allow/readings.h"
#include "worker/sensors/bus.h"

/* Returns UPower's OnBattery. It also knows UPSs, which the kernel does not. */
enum allow_answer desktop_on_battery(struct bus *system);
/* Returns NetworkManager's Metered, of the line that is the default; a guess counts. */
enum allow_answer desktop_on_metered(struct bus *system);
/* Returns the seconds since input by GNOME's own count, under X11 and Wayland; -1: no GNOME. */
int64_t desktop_gnome_idle_s(struct bus *session);
/* Returns the seconds since logind's IdleHint became true; 0: it is false; -1: no logind. A desktop
 * that never sets the hint is in use for ever. `now_us`: rv_clock_monotonic_us(). */
int64_t desktop_logind_idle_s(struct bus *system, int64_t now_us);

#endif
