/* browser.c: see browser.h. */
#include "tests/common/browser.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *browser(void) {
	static const char *const names[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (access(names[i], X_OK) == 0)
			return names[i];
	return NULL;
}

static void read_text(const char *dir, const char *name, char out[BROWSER_OUTPUT_BYTES]) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	out[fread(out, 1, BROWSER_OUTPUT_BYTES - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
}

void browser_need(void) {
	if (browser())
		return;
	print_message("no chromium here: the page was not looked at (apt-get install chromium)\n");
	skip();
}

void browser_look(const char *dir, const char *file, int width, bool dark, struct browser_seen *out) {
	char command[2048];
	snprintf(command, sizeof command,
			 "timeout -k 5 250 %s --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
			 "--user-data-dir=%s/profile --no-first-run --enable-logging=stderr --allow-file-access-from-files "
			 "--host-resolver-rules='MAP * ~NOTFOUND' --blink-settings=preferredColorScheme=%d "
			 "--window-size=%d,1000 --virtual-time-budget=10000 --dump-dom file://%s/%s >%s/dom 2>%s/stderr",
			 browser(), dir, !dark, width, dir, file, dir, dir);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own command */
	read_text(dir, "dom", out->dom);
	read_text(dir, "stderr", out->complaints);
}
