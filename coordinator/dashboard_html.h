/* dashboard_html.h: dashboard.html, compiled in. */
#ifndef RV_COORDINATOR_DASHBOARD_HTML_H
#define RV_COORDINATOR_DASHBOARD_HTML_H

#include <stddef.h>

extern const unsigned char dashboard_html[];
extern const size_t dashboard_html_bytes;

#endif
