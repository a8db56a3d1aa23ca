/* local_server.h: what a worker shows to the person who runs it, and takes from them: HTTP on
 * 127.0.0.1, on a thread of its own, so that it answers whatever the worker does.
 *
 *   GET  /                  the page (worker/local/page.html, with page.css and page.js)
 *   GET  /v1/status         the status: one JSON object (docs/files.md), as last published
 *   GET  /v1/chart?width=   the loss by round: SVG, 240 to 2000 pixels wide
 *   POST /v1/sample         {"prompt": "Once"} -> {"ok": true, "text": "..."}: sample_child.h
 *   POST /v1/command        {"command": "pause", "seconds": 7200} -> {"ok": true, "text": "..."}
 *
 * guard.h says who is answered. A command is carried out by the owner of the server, on its thread
 * (local_commands.h); one that is not taken within LOCAL_COMMAND_S is given up. Errors are one line
 * of text: 400 malformed, 401 no token, 403 another host or page, 404, 405, 503 too many commands.
 *
 * The functions below are called by the owner's thread. */
#ifndef RV_WORKER_LOCAL_LOCAL_SERVER_H
#define RV_WORKER_LOCAL_LOCAL_SERVER_H

#include "worker/local/local_file.h"
#include "worker/local/mailbox.h"
#include "worker/local/sample_child.h"

enum { LOCAL_COMMAND_S = 30, LOCAL_BODY_MOST_BYTES = 65536, LOCAL_HEADERS_MOST_BYTES = 16384 };

struct local_server;

/* Starts to serve, and writes DIR/local.json with a new token. port 0: that of the last start in
 * DIR if it is free, else any free one. RV_E_BUSY: the port is taken; RV_E_NOMEM, RV_E_IO and the
 * faults of local_file_write. */
enum rv_err local_server_new(const char *dir, uint16_t port, struct local_server **out, struct rv_errtext *et);
/* Stops to serve; commands under way are not answered. NULL is fine. */
void local_server_free(struct local_server *s);

/* Writes the address of the page, with the token. */
void local_server_url(const struct local_server *s, char out[LOCAL_URL_BYTES]);
/* Publishes the status and takes its reference; NULL (no memory for it): the last one stays. The
 * chart is drawn from its `heldout` and `training`: lists of [round, loss]. */
void local_server_publish(struct local_server *s, json_t *status);
/* Allows samples of the model by `plan`, which is copied; NULL: forbids them, because of `why_not`,
 * a sentence. They are forbidden at first. */
void local_server_plan_samples(struct local_server *s, const struct sample_plan *plan, const char *why_not);
/* Returns the mailbox with the commands; valid until local_server_free. */
struct mailbox *local_server_mailbox(struct local_server *s);

#endif
