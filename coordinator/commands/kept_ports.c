/* kept_ports.c: see kept_ports.h. */
#include "coordinator/commands/kept_ports.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 16, MODE = 0644, LAST_PORT = 65535 };

struct kept_ports kept_ports_read(const char *path) {
	struct kept_ports out = {{0}};
	uint8_t *text = NULL;
	size_t n = 0;
	unsigned main = 0, second = 0;
	if (rv_file_read(path, LINE_BYTES, &text, &n, NULL) != RV_OK)
		return out;
	bool whole = n < LINE_BYTES && sscanf((const char *)text, "%5u %5u", &main, &second) == 2;
	if (whole && main <= LAST_PORT && second <= LAST_PORT)
		out = (struct kept_ports){{(uint16_t)main, (uint16_t)second}};
	free(text);
	return out;
}

enum rv_err kept_ports_write(const char *path, const struct relay_ports *ports, struct rv_errtext *et) {
	const uint16_t main = ports->port[RELAY_MAIN_PORT], second = ports->port[RELAY_SECOND_PORT];
	struct kept_ports now = kept_ports_read(path);
	char line[LINE_BYTES];
	if (now.port[RELAY_MAIN_PORT] == main && now.port[RELAY_SECOND_PORT] == second)
		return RV_OK;
	int n = snprintf(line, sizeof line, "%u %u\n", main, second);
	return rv_file_write_atomic(path, line, (size_t)n, MODE, et);
}
