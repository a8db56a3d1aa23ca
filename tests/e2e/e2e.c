/* e2e.c: see e2e.h. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sanitizer makes calls that a sandbox refuses. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANDBOX "--no-sandbox"
#else
#define SANDBOX "--sandbox"
#endif

enum { ARGS_MAX = 32, TEXT_BYTES = 1 << 20, TOKENS_OF_BLOCK = 16384 };

/* ---- files ---- */

/* Words in an order that no model learns at once. */
static void write_text(const char *dir) {
	static const char *const words[] = {"the ",   "river ",   "runs ", "to ",  "sea ", "and ",  "many ",
										"small ", "streams ", "are ",  "one ", "in ",  "it.\n", "we "};
	char *text = malloc(TEXT_BYTES + 16);
	size_t n = 0;
	uint32_t x = 12345;
	while (n < TEXT_BYTES) {
		x = x * 1664525 + 1013904223;
		const char *w = words[(x >> 16) % (sizeof words / sizeof words[0])];
		memcpy(text + n, w, strlen(w));
		n += strlen(w);
	}
	scratch_write(dir, "text", text, n);
	free(text);
}

void e2e_path(const struct e2e *e, const char *name, char out[E2E_PATH]) {
	char path[E2E_PATH]; /* `out` may be a part of *e */
	assert_in_range(snprintf(path, sizeof path, "%s/%s", e->dir, name), 1, E2E_PATH - 1);
	memcpy(out, path, sizeof path);
}

void e2e_worker_dir(const struct e2e *e, int i, char out[E2E_PATH]) {
	char name[32];
	snprintf(name, sizeof name, "worker%d", i);
	e2e_path(e, name, out);
}

/* ---- processes ---- */

/* Of the coordinator (0) or worker i (i + 1). */
static const char *name_space_of(const struct e2e *e, int at) {
	return e->sites ? e->sites[at].name_space : NULL;
}

static void any_port(const struct e2e *e, int at, char out[64]) {
	snprintf(out, 64, "%s:0", e->sites ? e->sites[at].host : "127.0.0.1");
}

int e2e_run(struct e2e *e, const char *name, const char *const *argv, int status) {
	char log_name[64];
	struct process p = {0};
	snprintf(log_name, sizeof log_name, "%s.log", name);
	e2e_path(e, log_name, p.log);
	process_start(&p, argv, &(struct process_setup){.name_space = name_space_of(e, 0)});
	if (status < 0)
		return process_wait(&p);
	process_assert_exit(&p, status);
	return status;
}

/* ---- a run ---- */

/* A port that nobody else is given while the coordinator is away: bound by this process too, which
 * never listens. */
static void keep_port(struct e2e *e) {
	const int yes = 1;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	e->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(e->port_fd >= 0);
	assert_int_equal(setsockopt(e->port_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
	assert_int_equal(bind(e->port_fd, (const struct sockaddr *)&at, n), 0);
	assert_int_equal(getsockname(e->port_fd, (struct sockaddr *)&at, &n), 0);
	snprintf(e->listen, sizeof e->listen, "127.0.0.1:%d", ntohs(at.sin_port));
}

bool e2e_try_start_coordinator(struct e2e *e, int *status) {
	char dir[E2E_PATH], listen_file[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "coordinator/listen", listen_file);
	e2e_path(e, "coordinator.log", e->coordinator.log);
	(void)remove(listen_file); /* a killed one left it */
	if (!e->listen[0] && e->sites)
		any_port(e, 0, e->listen);
	else if (!e->listen[0])
		keep_port(e);
	const char *program = e->coordinator_program ? e->coordinator_program : "rivulet-coordinator";
	const char *const argv[] = {program,
								"serve",
								"--dir",
								dir,
								"--listen",
								e->listen,
								e->coordinator_program ? "--no-sandbox" : SANDBOX,
								e->coordinator_option,
								NULL};
	process_start(&e->coordinator, argv,
				  &(struct process_setup){.name_space = name_space_of(e, 0), .env = {e->coordinator_env}});
	if (!process_await_file(&e->coordinator, listen_file, status))
		return false;
	char *text = scratch_read(listen_file, NULL);
	text[strcspn(text, "\n")] = '\0';
	snprintf(e->listen, sizeof e->listen, "%s", text);
	free(text);
	return true;
}

/* For a process that has to get as far as this file. */
static void ended(const struct process *p, int status, const char *path) {
	process_show_log(p->log);
	fail_msg("%s was not written: the process ended with %d", path, status);
}

void e2e_start_coordinator(struct e2e *e) {
	int status;
	if (!e2e_try_start_coordinator(e, &status))
		ended(&e->coordinator, status, "coordinator/listen");
}

void e2e_make_links(struct e2e *e, int first, int n) {
	char dir[E2E_PATH], count[16], log[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "invite.log", log);
	(void)remove(log);
	snprintf(count, sizeof count, "%d", n);
	const char *const argv[] = {"rivulet-coordinator", "invite", "--dir", dir, "--count", count, NULL};
	e2e_run(e, "invite", argv, 0);
	char *text = scratch_read(log, NULL), *at = text;
	for (int i = first; i < first + n; i++) {
		at = strstr(at, "rivulet://");
		assert_non_null(at);
		size_t length = strcspn(at, " \t\r\n\"");
		assert_in_range(length, 1, sizeof e->links[i] - 1);
		memcpy(e->links[i], at, length);
		e->links[i][length] = '\0';
		at += length;
	}
	free(text);
}

void e2e_renew_worker(struct e2e *e, int i) {
	char dir[E2E_PATH];
	assert_int_equal(e->workers[i].pid, 0);
	e2e_worker_dir(e, i, dir);
	scratch_remove(dir);
	e2e_make_links(e, i, 1);
}

static int64_t steps_per_round(const char *config) {
	static const char key[] = "steps-per-round = ";
	const char *at = strstr(config, key);
	return at ? strtoll(at + sizeof key - 1, NULL, 10) : 0;
}

void e2e_gate_at(struct e2e *e, int64_t round) {
	char path[E2E_PATH], made[E2E_PATH], text[32];
	assert_true(e->steps_per_round > 0);
	e2e_path(e, "gate", path);
	e2e_path(e, "gate.new", made);
	int n = snprintf(text, sizeof text, "%" PRId64 "\n", round * e->steps_per_round);
	scratch_write(e->dir, "gate.new", text, (size_t)n);
	assert_int_equal(rename(made, path), 0);
}

void e2e_open_gate(struct e2e *e) {
	char path[E2E_PATH];
	e2e_path(e, "gate", path);
	assert_int_equal(unlink(path), 0);
}

void e2e_open(struct e2e *e, const char *config, int n_workers) {
	e2e_open_at(e, NULL, config, n_workers);
}

static void make_directory(struct e2e *e, const struct e2e_site *sites, int n_workers) {
	memset(e, 0, sizeof *e);
	e->sites = sites;
	e->port_fd = -1;
	scratch_make(e->dir, sizeof e->dir);
	e->n_workers = n_workers;
	e2e_path(e, "text", e->data);
	if (n_workers > 0)
		write_text(e->dir);
}

static void make_run(struct e2e *e, const char *config, int n_workers) {
	char conf[E2E_PATH], dir[E2E_PATH];
	e->steps_per_round = steps_per_round(config);
	e2e_path(e, "run.conf", conf);
	e2e_path(e, "coordinator", dir);
	scratch_write(e->dir, "run.conf", config, strlen(config));
	const char *const argv[] = {"rivulet-coordinator", "new-run", "--dir", dir, "--config", conf, NULL};
	e2e_run(e, "new-run", argv, 0);
	e2e_start_coordinator(e);
	if (n_workers > 0)
		e2e_make_links(e, 0, n_workers);
}

void e2e_open_at(struct e2e *e, const struct e2e_site *sites, const char *config, int n_workers) {
	make_directory(e, sites, n_workers);
	make_run(e, config, n_workers);
}

void e2e_publish(struct e2e *e, int n_blocks, int shard_blocks, int n_workers) {
	char out[E2E_PATH], tokens[32];
	make_directory(e, NULL, n_workers);
	assert_int_equal(truncate(e->data, (off_t)n_blocks * TOKENS_OF_BLOCK), 0);
	e2e_path(e, "published", out);
	snprintf(tokens, sizeof tokens, "%d", shard_blocks * TOKENS_OF_BLOCK);
	const char *const argv[] = {"rivulet",   "data", "publish",        e->data, "--out", out,
								"--holdout", "4",    "--shard-tokens", tokens,  NULL};
	e2e_run(e, "publish", argv, 0);
	memcpy(e->data, out, sizeof e->data);
}

void e2e_open_handed_out(struct e2e *e, const char *config, int n_workers) {
	char with_data[4096 + E2E_PATH];
	assert_in_range(snprintf(with_data, sizeof with_data, "%sdata = %s\n", config, e->data), 1, sizeof with_data - 1);
	make_run(e, with_data, n_workers);
}

void e2e_open_published(struct e2e *e, const char *config, int n_blocks, int n_workers) {
	char log[E2E_PATH], with_hash[4096];
	e2e_publish(e, n_blocks, 1, n_workers);
	e2e_path(e, "publish.log", log);
	json_t *published = e2e_find_event(log, "published", NULL, 0, NULL);
	assert_non_null(published);
	assert_in_range(snprintf(with_hash, sizeof with_hash, "%sholdout-every = 4\ndata-hash = %s\n", config,
							 e2e_text(published, "data-hash")),
					1, sizeof with_hash - 1);
	json_decref(published);
	make_run(e, with_hash, n_workers);
}

void e2e_close(struct e2e *e) {
	for (int i = 0; i < e->n_workers; i++)
		process_kill(&e->workers[i]);
	process_kill(&e->coordinator);
	if (e->dir[0] && e->port_fd >= 0)
		close(e->port_fd);
	if (e->dir[0])
		scratch_remove(e->dir);
}

int e2e_teardown(void **state) {
	if (*state)
		e2e_close(*state);
	return 0;
}

static void launch(struct e2e *e, int i, const char *program, const char *env, char conf[E2E_PATH + 16]) {
	char dir[E2E_PATH], gate_env[E2E_PATH + 16], name[32], log_name[32], address[64];
	struct stat st;
	any_port(e, i + 1, address);
	struct process *w = &e->workers[i];
	e2e_worker_dir(e, i, dir);
	snprintf(name, sizeof name, "worker%d", i);
	snprintf(log_name, sizeof log_name, "worker%d.log", i);
	snprintf(conf, E2E_PATH + 16, "%s/run.conf", dir);
	e2e_path(e, log_name, w->log);
	snprintf(gate_env, sizeof gate_env, "RIVULET_GATE=%s/gate", e->dir);
	const char *argv[ARGS_MAX] = {program ? program : "rivulet-worker",
								  "--dir",
								  dir,
								  "--on-battery", /* it may be a laptop that tests */
								  "--on-metered",
								  "--data",
								  e->data,
								  "--threads",
								  "1",
								  "--name",
								  name,
								  "--listen",
								  address,
								  "--eval-every",
								  "0"};
	int n = e->says_little ? 5 : 15;
	if (stat(conf, &st) != 0) { /* later it knows by itself */
		argv[n++] = e->links[i];
		argv[n++] = "--yes";
	}
	if (!program)
		argv[n++] = SANDBOX; /* what is changed for a test reads and writes more */
	for (int k = 0; k < E2E_MAX_ARGS && e->worker_args[k]; k++)
		argv[n++] = e->worker_args[k];
	argv[n] = NULL;
	process_start(w, argv,
				  &(struct process_setup){
					  .name_space = name_space_of(e, i + 1), .env = {gate_env, env}, .file_limit = e->file_limit});
}

void e2e_launch_worker_as(struct e2e *e, int i, const char *program, const char *env) {
	char conf[E2E_PATH + 16];
	launch(e, i, program, env, conf);
}

void e2e_launch_worker(struct e2e *e, int i) {
	e2e_launch_worker_as(e, i, NULL, NULL);
}

void e2e_start_worker(struct e2e *e, int i, const char *program, const char *env) {
	char conf[E2E_PATH + 16];
	launch(e, i, program, env, conf);
	int status;
	if (!process_await_file(&e->workers[i], conf, &status))
		ended(&e->workers[i], status, conf);
}

void e2e_start_workers(struct e2e *e, int n) {
	for (int i = 0; i < n; i++)
		e2e_start_worker(e, i, NULL, NULL);
}

void e2e_start_gated_workers(struct e2e *e, int n) {
	for (int i = 0; i < n; i++)
		e2e_start_worker(e, i, E2E_GATED, NULL);
}

json_t *e2e_status(struct e2e *e) {
	char dir[E2E_PATH], log[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "status.log", log);
	(void)remove(log);
	e2e_run(e, "status", (const char *const[]){"rivulet-coordinator", "status", "--dir", dir, "--json", NULL}, 0);
	json_t *status = json_load_file(log, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(status);
	return status;
}

json_t *e2e_status_of(struct e2e *e, const char *key) {
	json_t *status = e2e_status(e), *o = json_incref(json_object_get(status, key));
	json_decref(status);
	return o;
}

int64_t e2e_strikes(struct e2e *e, size_t member) {
	json_t *members = e2e_status_of(e, "members");
	const json_t *m = json_array_get(members, member);
	assert_int_equal(e2e_int(m, "member"), member);
	const json_t *reputation = json_object_get(m, "reputation");
	const int64_t n = e2e_int(reputation, "strikes");
	if (n > 0)
		print_message("member %zu: %d strikes, the last one: %s\n", member, (int)n, e2e_text(reputation, "reason"));
	json_decref(members);
	return n;
}

/* ---- logs ---- */

const char *e2e_text(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));
	if (!text)
		fail_msg("no text %s", key);
	return text;
}

int64_t e2e_int(const json_t *object, const char *key) {
	json_t *v = json_object_get(object, key);
	if (!json_is_integer(v))
		fail_msg("no integer %s", key);
	return json_integer_value(v);
}

double e2e_time(const json_t *event) {
	return json_number_value(json_object_get(event, "t"));
}

static bool is_wanted(const json_t *line, const char *field, const char *name, const char *key, int64_t at_least) {
	const char *event = json_string_value(json_object_get(line, field));
	if (!event || strcmp(event, name) != 0)
		return false;
	return !key || json_integer_value(json_object_get(line, key)) >= at_least;
}

json_t *e2e_find_event(const char *log, const char *name, const char *key, int64_t at_least, long *from) {
	char *text = scratch_read(log, NULL);
	json_t *found = NULL;
	long line_no = 0;
	for (char *line = text; line && *line && !found; line_no++) {
		char *end = strchr(line, '\n');
		if (!end)
			break; /* still being written */
		*end = '\0';
		json_t *j = !from || line_no >= *from ? json_loads(line, 0, NULL) : NULL;
		if (j && is_wanted(j, "event", name, key, at_least))
			found = j;
		else
			json_decref(j);
		line = end + 1;
	}
	if (found && from)
		*from = line_no;
	free(text);
	return found;
}

json_t *e2e_wait_event(const struct process *p, const char *name, const char *key, int64_t at_least, long *from) {
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, name); !deadline_is_over(&d); deadline_pause(&d)) {
		json_t *found = e2e_find_event(p->log, name, key, at_least, from);
		if (found)
			return found;
	}
	process_show_log(p->log);
	fail_msg("no event %s (%s >= %lld) within %d s in %s", name, key ? key : "any", (long long)at_least, PROCESS_WAIT_S,
			 p->log);
	return NULL;
}

json_t *e2e_metrics(const char *dir, const char *kind) {
	char path[E2E_PATH + 16];
	snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
	char *text = scratch_read(path, NULL), *save = NULL;
	assert_non_null(text);
	json_t *last = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *j = json_loads(line, 0, NULL);
		if (j && is_wanted(j, "kind", kind, NULL, 0)) {
			json_decref(last);
			last = j;
		} else {
			json_decref(j);
		}
	}
	free(text);
	if (!last)
		fail_msg("%s: no line of kind %s", path, kind);
	return last;
}
