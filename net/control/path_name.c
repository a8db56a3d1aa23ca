/* path_name.c: the names of the ways in which members meet, for logs and the status JSON. */
#include "net/control/control.h"

const char *path_name(uint8_t path) {
	static const char *const names[PATH_KINDS] = {
		[PATH_NONE] = "none",         [PATH_APART] = "apart",     [PATH_DIALED] = "dialed",
		[PATH_ACCEPTED] = "accepted", [PATH_PUNCHED] = "punched", [PATH_RELAYED] = "relayed"};
	return path_kind_of(path) < PATH_KINDS ? names[path_kind_of(path)] : "unknown";
}
