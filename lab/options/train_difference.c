/* train_difference.c: see train_difference.h. */
#include "lab/options/train_difference.h"

#include "base/file.h"
#include "base/option_value.h"
#include "lab/run/checkpoint_header.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_TEXT_BYTES = 16384, SHOWN_BYTES = 40 };

static bool read_options(const char *dir, const struct rv_option *table, struct train_options *out) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	snprintf(path, sizeof path, "%s/run.conf", dir);
	rv_options_defaults(table, out);
	if (rv_file_read(path, CONFIG_TEXT_BYTES, &text, &n, NULL) != RV_OK)
		return false;
	enum rv_err e = rv_options_parse_text(table, out, path, (const char *)text, NULL);
	free(text);
	return e == RV_OK;
}

/* Returns the configuration with this machine's device, if none was named. */
static struct lab_config resolved(const struct train_options *o) {
	struct lab_config c = train_options_resolve(o);
	(void)device_choose(o->device, &c.device, NULL);
	return c;
}

void train_difference(const char *dir, const struct train_options *mine, char *out, size_t cap) {
	struct rv_option table[TRAIN_OPTIONS_MAX];
	struct train_options theirs;
	size_t used = 0;
	out[0] = '\0';
	train_options_table(table, TRAIN_OPTIONS_MAX);
	if (!read_options(dir, table, &theirs))
		return;
	const struct lab_config a = resolved(&theirs), b = resolved(mine);
	for (const struct rv_option *o = table; o->name && used < cap; o++) {
		char there[RV_OPTION_TEXT_BYTES], here[RV_OPTION_TEXT_BYTES];
		if (!checkpoint_header_tells_apart(o->name, &a, &b) || !rv_option_value_is_set(o, &theirs) ||
			rv_option_value_same(o, &theirs, mine))
			continue;
		rv_option_value_print(o, &theirs, there);
		rv_option_value_print(o, mine, here);
		used += (size_t)snprintf(out + used, cap - used, "%s%s %.*s there, %.*s here", used ? "; " : "", o->name,
								 SHOWN_BYTES, there, SHOWN_BYTES, here);
	}
}
