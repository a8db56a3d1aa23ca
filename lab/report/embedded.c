/* embedded.c: see embedded.h. The assembler reads the files; lab/CMakeLists.txt says where they are. */
#include "lab/report/embedded.h"

#define EMBED(symbol, path)                                                                                            \
	__asm__(".section .rodata, \"a\"\n"                                                                                \
			".global " #symbol "\n" #symbol ":\n"                                                                      \
			".incbin \"" path "\"\n"                                                                                   \
			".byte 0\n"                                                                                                \
			".previous\n")

EMBED(embedded_report_css, RV_REPORT_CSS);
EMBED(embedded_report_js, RV_REPORT_JS);
#ifdef RV_CHART_JS
EMBED(embedded_chart_js, RV_CHART_JS);
#else
const char embedded_chart_js[] = "";
#endif
