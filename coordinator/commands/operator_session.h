/* operator_session.h: the operator's commands on a run, whether its coordinator is running (asked
 * over HTTPS with the run's key as client certificate) or not (done in the store). Blocking; one
 * thread.
 *
 * Faults of every command: those of the service (coordinator/service/service.h), or of the request:
 * RV_E_INVALID and RV_E_NOTFOUND with the coordinator's answer, those of net/http_client.h,
 * RV_E_NOMEM. Output pointers are then NULL. */
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

/* Opens a session on the run in `dir` (run_dir_find). `advertise`: for links made while the
 * coordinator does not run; NULL: that of the last `serve`. RV_E_BUSY: the directory is in use, but
 * no coordinator answers. */
enum rv_err operator_open(const char *dir, const struct address *advertise, struct operator_session **out,
						  struct rv_errtext *et);
void operator_close(struct operator_session *o); /* NULL is fine */
/* Returns true if the coordinator runs and answers. */
bool operator_is_online(const struct operator_session *o);

/* Returns the status; the caller decrefs it. */
enum rv_err operator_status(struct operator_session *o, json_t **status, struct rv_errtext *et);
/* Makes links, one a line; the caller frees *links. */
enum rv_err operator_invite(struct operator_session *o, const struct invite_terms *terms, int count, char **links,
							struct rv_errtext *et);
/* Reads the run's configuration. */
enum rv_err operator_config(struct operator_session *o, struct run_config *out, struct rv_errtext *et);
/* Lists invites, or computers that ask for approval: service_list_invites, service_list_askers. The
 * caller decrefs the list. */
enum rv_err operator_list_invites(struct operator_session *o, json_t **list, struct rv_errtext *et);
enum rv_err operator_list_askers(struct operator_session *o, json_t **list, struct rv_errtext *et);
/* Prints a list, as one line of JSON or by `print_table`, and decrefs it. */
void operator_print_list(json_t *list, bool json, void (*print_table)(const json_t *list));
/* Revokes an invite, by its ID or link (service_revoke); *text: the result, the caller frees it. */
enum rv_err operator_revoke(struct operator_session *o, const char *name, char **text, struct rv_errtext *et);
/* Approves or refuses a computer that asks; *text (the caller frees it) reports it in a line. */
enum rv_err operator_decide(struct operator_session *o, const char *prefix, bool approve, char **text,
							struct rv_errtext *et);
/* Copies the store into the empty file `path`: the process that holds the store does it
 * (store_ops.copy). A coordinator that cannot see `path`, as in a container, refuses. */
enum rv_err operator_copy_store(struct operator_session *o, const char *path, struct rv_errtext *et);
/* Rolls back; *text (the caller frees it) reports the result in a line for people. */
enum rv_err operator_rollback(struct operator_session *o, uint64_t to_round, bool force, char **text,
							  struct rv_errtext *et);
enum rv_err operator_ban(struct operator_session *o, uint32_t member, bool banned, struct rv_errtext *et);

#endif
