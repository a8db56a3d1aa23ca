/* coordinator_process.h: a real rivulet-coordinator, mostly without workers (tests/e2e/e2e.h), and
 * clients that talk to it over TLS. */
#ifndef RV_TESTS_COORDINATOR_PROCESS_H
#define RV_TESTS_COORDINATOR_PROCESS_H

#include "net/control/control.h"
#include "net/http_client.h"
#include "net/invite.h"
#include "tests/e2e/e2e.h"

#include <stdbool.h>

struct coordinator {
	struct e2e e;
	char dir[E2E_PATH];
	struct address at;
	int64_t timeout_ms; /* of clients from now on, to connect and for an answer; 0: the usual */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t root[NET_KEY_BYTES], serving[NET_KEY_BYTES];
};

/* Makes a run with these lines of configuration in a fresh directory, and starts the
 * coordinator. */
void coordinator_make(struct coordinator *c, const char *config);
/* The same, with a text and links for `n_workers` workers (e2e_start_workers). */
void coordinator_make_for(struct coordinator *c, const char *config, int n_workers);
void coordinator_start(struct coordinator *c);
/* False when it ended instead, with its exit status, or 128 + signal. */
bool coordinator_try_start(struct coordinator *c, int *exit_status);
/* SIGTERM; returns the exit status, or 128 + signal. */
int coordinator_stop(struct coordinator *c);
/* Stops it and removes the directory, in which it left nothing that it does not say. */
void coordinator_remove(struct coordinator *c);
/* Runs `rivulet-coordinator ARGS...` (NULL-terminated) and returns its exit status; stdout and
 * stderr into `out`. */
int coordinator_command(char *out, size_t cap, const char *const *args);
void coordinator_invite(struct coordinator *c, struct invite *out);
/* Makes one link that admits `uses` members. */
void coordinator_invite_many(struct coordinator *c, int uses, struct invite *out);

/* An HTTPS client with its own identity. */
struct client {
	struct identity id;
	uint8_t run_id[NET_RUN_ID_BYTES]; /* of the run whose reports it signs */
	struct http_client *http;
	int64_t timeout_ms;
	const char *name; /* with which it joins */
};
struct answer {
	enum rv_err err;
	int status;
	size_t n;
	uint8_t body[IDENTITY_SIGNED_MAX_BYTES];
	char text[RV_ERRTEXT_BYTES];
};
/* `who` determines the identity. Connects to where `c` listens now; `server_key` NULL: the
 * run's. */
void client_init(struct client *k, const struct coordinator *c, uint32_t who, const uint8_t *server_key);
void client_init_operator(struct client *k, const struct coordinator *c); /* with the run's key */
void client_release(struct client *k);
/* Waits for the answer; body NULL: GET. */
const struct answer *client_ask(struct client *k, const char *path, const void *body, size_t n);

/* The requests of a worker; each returns the status, 0: no answer. */
int client_join(struct client *k, const struct coordinator *c, const struct invite *in, struct join_reply *out);
int client_report(struct client *k, const struct report *rep); /* signs its roots */
/* Verifies the signature and decodes. */
int client_document(struct client *k, uint64_t after, struct document *out);

#endif
