/* operator_session.h: the operator's commands on a run, whether its coordinator is running (asked over HTTPS with the
 * run's key as client certificate) or not (done in the store). Blocking; one thread.
 *
 * Faults of every command: those of the service (coordinator/service/service.h), or of asking it: RV_E_INVALID and
 * RV_E_NOTFOUND with what it answers, those of net/http_client.h, RV_E_NOMEM. What is handed out is then NULL. */
#ifndef RV_COORDINATOR_OPERATOR_SESSION_H
#define RV_COORDINATOR_OPERATOR_SESSION_H

#include "base/err.h"
#include "coordinator/service/service.h"
#include "coordinator/store/run_dir.h"
#include "net/address.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct operator_session;

/* `advertise`: for links made while the coordinator does not run; NULL: as the last `serve` was told. RV_E_BUSY: the
 * directory is in use, but nobody answers. */
enum rv_err operator_open(const struct run_dir *dir, const struct address *advertise, struct operator_session **out,
						  struct rv_errtext *et);
void operator_close(struct operator_session *o); /* NULL is fine */
/* The coordinator runs, and was asked. */
bool operator_is_online(const struct operator_session *o);

/* json_decref() it. */
enum rv_err operator_status(struct operator_session *o, json_t **status, struct rv_errtext *et);
/* One link a line; free() it. */
enum rv_err operator_invite(struct operator_session *o, int count, char **links, struct rv_errtext *et);
/* Has the store copied into the empty file `path`, by the process that has it (store_ops.copy). A coordinator that runs
 * where `path` is not to be seen refuses. */
enum rv_err operator_copy_store(struct operator_session *o, const char *path, struct rv_errtext *et);
/* *text (free() it): what it did, a line for people. */
enum rv_err operator_rollback(struct operator_session *o, uint64_t to_round, bool force, char **text,
							  struct rv_errtext *et);
enum rv_err operator_ban(struct operator_session *o, uint32_t member, bool banned, struct rv_errtext *et);

#endif
