/* local_client.h: asks the worker that runs in a directory (local_server.h): for `rivulet-worker
 * status`, `set`, `pause` and the like. All functions block, local_client_command for at most
 * LOCAL_COMMAND_S and a few seconds. */
#ifndef RV_WORKER_LOCAL_LOCAL_CLIENT_H
#define RV_WORKER_LOCAL_LOCAL_CLIENT_H

#include "worker/local/local_file.h"
#include "worker/local/mailbox.h"

/* Gets the status of the worker in `dir`; the caller drops the reference. RV_E_NOTFOUND: none runs
 * there; RV_E_AUTH: it does not accept the token; RV_E_PROTOCOL: what answers is no worker;
 * RV_E_IO, RV_E_NOMEM. */
enum rv_err local_client_status(const char *dir, json_t **out, struct rv_errtext *et);
/* Has the worker carry out `command` (an object with "command"; takes the reference; NULL is
 * RV_E_NOMEM). `text`: its line for people. RV_E_INVALID: it refuses or failed, `et` says why; the
 * faults of local_client_status. */
enum rv_err local_client_command(const char *dir, json_t *command, char text[LOCAL_TEXT_BYTES], struct rv_errtext *et);
/* Writes the address of the page of the worker in `dir`. RV_E_NOTFOUND: none has run there; the
 * faults of local_file_read. */
enum rv_err local_client_url(const char *dir, char out[LOCAL_URL_BYTES], struct rv_errtext *et);

#endif
