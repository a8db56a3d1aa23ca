/* embedded.h: files that are part of the program, as NUL-terminated text. */
#ifndef RV_LAB_EMBEDDED_H
#define RV_LAB_EMBEDDED_H

extern const char embedded_report_css[], embedded_report_js[];
/* Chart.js (MIT), minified, as the build found it on the system (lab/CMakeLists.txt); "" where there is none. */
extern const char embedded_chart_js[];

#endif
