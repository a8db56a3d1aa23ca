/* browser.h: pages in a real browser (Chromium, headless), for tests. */
#ifndef RV_TESTS_COMMON_BROWSER_H
#define RV_TESTS_COMMON_BROWSER_H

#include <stdbool.h>

enum { BROWSER_OUTPUT_BYTES = 1 << 20 };

struct browser_seen {
	char dom[BROWSER_OUTPUT_BYTES];        /* the document after 10 s of the page's own time */
	char complaints[BROWSER_OUTPUT_BYTES]; /* standard error, with what the console says ("CONSOLE") */
};

/* Skips the test where there is no Chromium, with a message. */
void browser_need(void);
/* Loads DIR/FILE in a window of that width; no name resolves. Fails the test when the browser does.
 * DIR gets dom, stderr and profile. */
void browser_look(const char *dir, const char *file, int width, bool dark, struct browser_seen *out);

#endif
