/* x11.h: the idle time that an X server counts (extension MIT-SCREEN-SAVER), through libxcb. */
#ifndef RV_WORKER_SENSORS_X11_H
#define RV_WORKER_SENSORS_X11_H

#include <stdint.h>

struct x11; /* a connection; used by one thread */

/* Returns a connection to $DISPLAY, made at the first question and again after it broke; NULL: no
 * memory. */
struct x11 *x11_new(void);
void x11_free(struct x11 *x); /* NULL is fine */
/* Returns the seconds since the last key, button or motion; -1: no $DISPLAY, no libxcb, no answer.
 * Under Wayland the server is Xwayland, which sees the input of its own windows only. */
int64_t x11_idle_s(struct x11 *x);

#endif
