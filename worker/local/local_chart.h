/* local_chart.h: the loss by round of a status, as a picture. */
#ifndef RV_WORKER_LOCAL_LOCAL_CHART_H
#define RV_WORKER_LOCAL_LOCAL_CHART_H

#include <jansson.h>

enum { LOCAL_CHART_WIDTH_LEAST = 240, LOCAL_CHART_WIDTH_MOST = 2000 };

/* Draws a status's `heldout` and `training` (local_server.h), `width` pixels wide, which is brought
 * into the bounds above; of each list the first LOSS_CURVE_POINTS. Returns SVG that the caller
 * frees; NULL: no memory. */
char *local_chart_draw(const json_t *status, int width);

#endif
