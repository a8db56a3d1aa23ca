/* consoles.h: input on terminals, of people who sit at them or came by SSH. */
#ifndef RV_WORKER_SENSORS_CONSOLES_H
#define RV_WORKER_SENSORS_CONSOLES_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the seconds since somebody last typed on one of ROOT/dev/tty1, tty2, ... or
 * ROOT/dev/pts/0, 1, ..., at least 0; -1: there is none. The kernel notes it in steps of 8 s.
 * `now_wall_us`: rv_clock_wall_us(). */
int64_t consoles_idle_s(const char *root, int64_t now_wall_us);
/* Returns true if an X server or a Wayland compositor runs here: then nobody on a terminal may
 * still be somebody with a mouse. */
bool consoles_has_display(const char *root);

#endif
