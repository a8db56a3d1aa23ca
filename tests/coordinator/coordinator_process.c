/* coordinator_process.c: see coordinator_process.h. */
#include "tests/coordinator/coordinator_process.h"
#include "tests/common/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_TRIES = 3000, START_PAUSE_MS = 10, ARGS_MAX = 16, LISTENS = -1, REQUEST_TIMEOUT_MS = 60000 };

static const char program[] = COORDINATOR_PROGRAM;

/* ---- processes ---- */

static pid_t spawn(const char *const *args, int out_fd) {
	const char *argv[ARGS_MAX] = {program};
	for (int i = 0; args[i] != NULL; i++)
		argv[i + 1] = args[i];
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
	(void)dup2(out_fd, STDOUT_FILENO);
	(void)dup2(out_fd, STDERR_FILENO);
	(void)execv(program, (char *const *)argv);
	_exit(127);
}

int coordinator_command(char *out, size_t cap, const char *const *args) {
	int fds[2], status = 0;
	size_t n = 0;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = spawn(args, fds[1]);
	(void)close(fds[1]);
	for (ssize_t k = 1; k > 0 && n + 1 < cap; n += k > 0 ? (size_t)k : 0)
		k = read(fds[0], out + n, cap - 1 - n);
	out[n] = '\0';
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void listen_path(const struct coordinator *c, char out[96]) {
	(void)snprintf(out, 96, "%s/listen", c->dir);
}

/* DIR/listen appears when the port is open. Otherwise the status with which it ended (waitpid). */
static int await_listen(struct coordinator *c) {
	char path[96], text[NET_ADDR_BYTES] = "";
	listen_path(c, path);
	for (int i = 0; i < START_TRIES; i++) {
		FILE *f = fopen(path, "r");
		if (f != NULL) {
			assert_non_null(fgets(text, sizeof text, f));
			(void)fclose(f);
			text[strcspn(text, "\n")] = '\0';
			assert_ok(address_parse(text, &c->at, &et));
			return LISTENS;
		}
		int status;
		if (waitpid(c->pid, &status, WNOHANG) == c->pid)
			return status;
		const struct timespec pause = {.tv_nsec = START_PAUSE_MS * 1000000};
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("the coordinator of %s does not listen", c->dir);
	return LISTENS;
}

bool coordinator_try_start(struct coordinator *c, int *exit_status) {
	char log[96];
	(void)snprintf(log, sizeof log, "%s/log", c->dir);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	char path[96];
	listen_path(c, path);
	(void)unlink(path); /* a killed one left it: wait for the new one */
	c->pid = spawn((const char *const[]){"serve", "--dir", c->dir, "--listen", "127.0.0.1:0", NULL}, fd);
	(void)close(fd);
	int status = await_listen(c);
	*exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	if (status != LISTENS)
		c->pid = 0;
	return status == LISTENS;
}

void coordinator_start(struct coordinator *c) {
	int status;
	if (!coordinator_try_start(c, &status))
		fail_msg("the coordinator of %s ended with %d", c->dir, status);
}

void coordinator_make(struct coordinator *c, const char *config) {
	char path[96], out[4096];
	memset(c, 0, sizeof *c);
	(void)snprintf(c->dir, sizeof c->dir, "/tmp/rivulet-test-XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	(void)snprintf(path, sizeof path, "%s/run.conf", c->dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(config, f) >= 0);
	assert_int_equal(fclose(f), 0);
	if (coordinator_command(out, sizeof out,
							(const char *const[]){"new-run", "--dir", c->dir, "--config", path, NULL}) != 0)
		fail_msg("new-run: %s", out);
	coordinator_start(c);
	struct invite in;
	coordinator_invite(c, &in);
	memcpy(c->run_id, in.run_id, sizeof c->run_id);
	memcpy(c->key, in.key, sizeof c->key);
}

void coordinator_kill(struct coordinator *c) {
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	c->pid = 0;
}

int coordinator_stop(struct coordinator *c) {
	int status = 0;
	assert_int_equal(kill(c->pid, SIGTERM), 0);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	c->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void coordinator_remove(struct coordinator *c) {
	static const char *const names[] = {"run.conf", "run.key", "store.db",     "store.db-wal", "store.db-journal",
										"listen",   "lock",    "rounds.jsonl", "log",          "report"};
	char path[96];
	if (c->pid != 0)
		(void)coordinator_stop(c);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", c->dir, names[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(c->dir), 0); /* nothing else was left behind */
}

void coordinator_invite(const struct coordinator *c, struct invite *out) {
	char text[1024];
	int rc = coordinator_command(text, sizeof text, (const char *const[]){"invite", "--dir", c->dir, NULL});
	if (rc != 0)
		fail_msg("invite: %s", text);
	text[strcspn(text, "\n")] = '\0';
	assert_ok(invite_parse(text, out, &et));
}

/* ---- clients ---- */

static void connect_as_identity(struct client *k, const struct coordinator *c, const uint8_t *server_key) {
	struct http_client_config cfg = {.server = c->at, .identity = &k->id, .connect_timeout_ms = c->timeout_ms};
	k->timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : REQUEST_TIMEOUT_MS;
	memcpy(cfg.server_key, server_key != NULL ? server_key : c->key, sizeof cfg.server_key);
	assert_ok(http_client_new(&cfg, &k->http, &et));
}

void client_init(struct client *k, const struct coordinator *c, uint32_t who, const uint8_t *server_key) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	memcpy(seed + 4, &who, sizeof who);
	identity_of_seed(seed, &k->id);
	connect_as_identity(k, c, server_key);
}

void client_init_operator(struct client *k, const struct coordinator *c) {
	char path[96];
	(void)snprintf(path, sizeof path, "%s/run.key", c->dir);
	assert_ok(identity_load(path, &k->id, &et));
	connect_as_identity(k, c, NULL);
}

void client_release(struct client *k) {
	http_client_free(k->http);
	identity_release(&k->id);
}

struct call {
	struct answer *answer;
	bool done;
};

static void on_done(void *ctx, const struct http_reply *r) {
	struct call *call = ctx;
	struct answer *a = call->answer;
	call->done = true;
	a->err = r->err;
	a->status = r->status;
	a->n = 0;
	a->text[0] = '\0';
	if (r->err != RV_OK) {
		(void)snprintf(a->text, sizeof a->text, "%s", r->text);
		return;
	}
	assert_true(r->body_bytes <= sizeof a->body);
	memcpy(a->body, r->body, r->body_bytes);
	a->n = r->body_bytes;
}

const struct answer *client_ask(struct client *k, const char *path, const void *body, size_t n) {
	static struct answer answer;
	struct call call = {.answer = &answer};
	struct http_request rq = {.path = path,
							  .body = body,
							  .body_bytes = n,
							  .max_reply_bytes = sizeof answer.body,
							  .timeout_ms = k->timeout_ms,
							  .done = on_done,
							  .ctx = &call};
	assert_ok(http_client_start(k->http, &rq, NULL, &et));
	while (!call.done)
		assert_ok(http_client_poll(k->http, NULL, 0, 1000000, &et));
	return &answer;
}

int client_join(struct client *k, const struct coordinator *c, const struct invite *in, struct join_reply *out) {
	struct join_request rq = {.protocol = CONTROL_VERSION, .name = "tester", .software = "test"};
	uint8_t body[512];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	memcpy(rq.run_id, c->run_id, sizeof rq.run_id);
	if (in != NULL) {
		rq.has_token = in->has_token;
		memcpy(rq.token, in->token, sizeof rq.token);
	}
	join_request_encode(&rq, &w);
	assert_false(w.failed);
	const struct answer *a = client_ask(k, "/v1/join", body, rv_writer_len(&w));
	if (a->status == 200 && out != NULL)
		assert_ok(join_reply_decode(a->body, a->n, out, &et));
	return a->status;
}

int client_report(struct client *k, const struct report *rep) {
	uint8_t body[NET_MAX_REPORT_BYTES];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(rep, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return client_ask(k, "/v1/report", body, rv_writer_len(&w))->status;
}

int client_document(struct client *k, const struct coordinator *c, uint64_t after, struct document *out) {
	char path[64];
	const uint8_t *bytes;
	size_t n;
	struct rv_errtext et = {0};
	(void)snprintf(path, sizeof path, "/v1/document?version=%d&after=%llu", (int)CONTROL_VERSION,
				   (unsigned long long)after);
	const struct answer *a = client_ask(k, path, NULL, 0);
	if (a->status != 200)
		return a->status;
	assert_int_equal(signed_open(c->key, IDENTITY_DOCUMENT_DOMAIN, a->body, a->n, &bytes, &n, &et), RV_OK);
	if (document_decode(bytes, n, out, &et) != RV_OK)
		fail_msg("document: %s", et.text);
	return a->status;
}
