/* local_file.h: DIR/local.json, mode 0600: where the worker that runs in DIR listens for the person
 * who runs it, and the token that shows that it is that person who asks.
 *
 *     {"port": 40123, "token": "32 hex digits", "pid": 4711}
 *
 * The token is a new one at each start of the program; who can read the file can run the worker. */
#ifndef RV_WORKER_LOCAL_LOCAL_FILE_H
#define RV_WORKER_LOCAL_LOCAL_FILE_H

#include "base/err.h"

#include <stdint.h>

enum { LOCAL_TOKEN_RANDOM_BYTES = 16, LOCAL_TOKEN_BYTES = 2 * LOCAL_TOKEN_RANDOM_BYTES + 1, LOCAL_URL_BYTES = 96 };

#define LOCAL_FILE "local.json"

struct local_place {
	uint16_t port; /* on 127.0.0.1 */
	char token[LOCAL_TOKEN_BYTES];
	int64_t pid;
};

/* Reads DIR/local.json. RV_E_NOTFOUND: no worker has run there; RV_E_CORRUPT, RV_E_IO, RV_E_RANGE
 * name the file. */
enum rv_err local_file_read(const char *dir, struct local_place *out, struct rv_errtext *et);
/* Writes it, whole or not at all. RV_E_IO, RV_E_FULL, RV_E_RANGE (the path is too long). */
enum rv_err local_file_write(const char *dir, const struct local_place *place, struct rv_errtext *et);
/* Writes "http://127.0.0.1:PORT/#TOKEN": a browser does not send what follows the '#'. */
void local_file_url(const struct local_place *place, char out[LOCAL_URL_BYTES]);

#endif
