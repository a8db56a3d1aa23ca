/* run_dir.h: the directory of a run, as the coordinator keeps it.
 *
 *   run.key       run_keys.h, mode 0600: anyone who can read it can act as the coordinator
 *   root.key      the run's root key, unless its operator keeps it elsewhere, as is better
 *   store.db      store.h
 *   listen        host:port where the running coordinator is reached from this machine; made by
 *                 `serve`, atomically
 *   relay-ports   ports of its relay, which the next `serve` opens again
 *                 (coordinator/commands/kept_ports.h)
 *   address       where `serve` listened last, and what links name (coordinator/commands/kept_address.h)
 *   web.pem       the key and the certificate that browsers see, unless the operator has others
 *                 (coordinator/web/web_cert.h); made by the first `serve`, mode 0600
 *   rounds.jsonl  a line per committed round
 *   text/         the run's text, where `new-run --data` published it (docs/data.md)
 *   lock          held by the process that uses the directory
 *   store.db.replaced  the store that the last `restore` replaced (coordinator/backup/backup.h)
 *   store.db.new  left by a killed `new-run`; the next one makes it anew */
#ifndef RV_COORDINATOR_RUN_DIR_H
#define RV_COORDINATOR_RUN_DIR_H

#include "base/err.h"

/* The setting of the store with the text's path, where that is not RUN_DIR/text. */
#define RUN_TEXT_PLACE "text"

enum { RUN_DIR_BYTES = 400, RUN_PATH_BYTES = 440, RUN_TEXT_BYTES = 1024 /* of the text's path, elsewhere */ };

struct run_dir {
	char dir[RUN_DIR_BYTES];
	char key[RUN_PATH_BYTES], root_key[RUN_PATH_BYTES], store[RUN_PATH_BYTES], listen[RUN_PATH_BYTES],
		rounds[RUN_PATH_BYTES];
	char relay_ports[RUN_PATH_BYTES], address[RUN_PATH_BYTES], web[RUN_PATH_BYTES], text[RUN_PATH_BYTES];
};

/* Makes the names only. RV_E_RANGE: too long. */
enum rv_err run_dir_of(const char *dir, struct run_dir *out, struct rv_errtext *et);
/* Makes the names and checks that there is a run. RV_E_NOTFOUND says what is missing and how a run
 * is made. */
enum rv_err run_dir_find(const char *dir, struct run_dir *out, struct rv_errtext *et);

#endif
