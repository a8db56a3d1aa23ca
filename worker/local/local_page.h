/* local_page.h: the page and what it loads, as bytes of the program. */
#ifndef RV_WORKER_LOCAL_LOCAL_PAGE_H
#define RV_WORKER_LOCAL_LOCAL_PAGE_H

#include <stddef.h>

/* UTF-8, not NUL-terminated. */
extern const unsigned char local_page_html[], local_page_css[], local_page_js[];
extern const size_t local_page_html_bytes, local_page_css_bytes, local_page_js_bytes;

#endif
