/* dashboard.h: the page at GET /: coordinator/web/dashboard.html, embedded in the program. It loads
 * nothing from elsewhere and shows /v1/status and /v1/chart. */
#ifndef RV_COORDINATOR_DASHBOARD_H
#define RV_COORDINATOR_DASHBOARD_H

#include <stddef.h>

extern const unsigned char dashboard_html[]; /* UTF-8, not NUL-terminated */
extern const size_t dashboard_html_bytes;

#endif
