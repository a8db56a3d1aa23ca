/* e2e.c: see e2e.h. */
#include "e2e.h"
#include "tests/common/check.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 32, POLL_MS = 20, TEXT_BYTES = 1 << 20 };

/* ---- time ---- */

static double now_s(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_between_polls(void) {
	nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
}

/* ---- files ---- */

static char *read_all(const char *path) {
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	char *text = malloc((size_t)n + 1);
	size_t got = fread(text, 1, (size_t)n, f);
	text[got] = '\0';
	fclose(f);
	return text;
}

static void write_all(const char *path, const char *text) {
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

/* Words in an order that no model learns at once. */
static void write_text(const char *path) {
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
	text[n] = '\0';
	write_all(path, text);
	free(text);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
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

/* A write past the limit fails with EFBIG, much as on a full disk. */
static void limit_files(long bytes) {
	struct rlimit r;
	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &r) != 0)
		_exit(125);
	r.rlim_cur = (rlim_t)bytes; /* the test may lift it again */
	if (setrlimit(RLIMIT_FSIZE, &r) != 0)
		_exit(125);
}

/* This process is in another network from now on. */
static void enter(const struct e2e_site *site) {
	if (!site->name_space[0])
		return;
	int fd = open(site->name_space, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		_exit(124);
	close(fd);
}

/* How a process is started, beside its arguments. */
struct surroundings {
	const struct e2e_site *site; /* NULL: loopback */
	const char *env;             /* NULL or one "NAME=value" */
	const char *gate;            /* NULL: none */
	long file_limit;             /* 0: none */
};

static void child(const char *log, const char *const *argv, const struct surroundings *in) {
	char program[E2E_PATH];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (in->site)
		enter(in->site);
	if (in->file_limit > 0)
		limit_files(in->file_limit);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(126);
	if (in->env)
		putenv((char *)(uintptr_t)in->env);
	if (in->gate)
		setenv("RIVULET_GATE", in->gate, 1);
	snprintf(program, sizeof program, "%s/%s", E2E_BIN_DIR, argv[0]);
	execv(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static void start(struct e2e_process *p, const char *const *argv, const struct surroundings *in) {
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0)
		child(p->log, argv, in);
}

/* Of the coordinator (0) or worker i (i + 1). */
static const struct e2e_site *site_of(const struct e2e *e, int at) {
	return e->sites ? &e->sites[at] : NULL;
}

static void any_port(const struct e2e *e, int at, char out[64]) {
	snprintf(out, 64, "%s:0", e->sites ? e->sites[at].host : "127.0.0.1");
}

void e2e_signal(struct e2e_process *p, int signal) {
	assert_true(p->pid > 0);
	assert_int_equal(kill(p->pid, signal), 0);
}

void e2e_freeze(struct e2e_process *p) {
	siginfo_t info;
	e2e_signal(p, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)p->pid, &info, WSTOPPED), 0);
}

static bool try_wait(struct e2e_process *p, int *status) {
	int raw;
	if (waitpid(p->pid, &raw, WNOHANG) != p->pid)
		return false;
	p->pid = 0;
	*status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
	return true;
}

bool e2e_has_ended(const struct e2e_process *p) {
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

/* Not by print_error(), which cuts off after 1 KiB. */
static void show_log_tail(const char *log) {
	char *text = read_all(log);
	size_t n = text ? strlen(text) : 0;
	fprintf(stderr, "--- the end of %s:\n%s\n", log, text ? text + (n > 3000 ? n - 3000 : 0) : "(none)");
	free(text);
}

int e2e_wait_exit(struct e2e_process *p) {
	int status = -1;
	for (double end = now_s() + E2E_WAIT_S; p->pid > 0 && now_s() < end;) {
		if (try_wait(p, &status))
			return status;
		pause_between_polls();
	}
	show_log_tail(p->log);
	fail_msg("process %d did not end within %d s", (int)p->pid, E2E_WAIT_S);
	return -1;
}

void e2e_assert_exit(struct e2e_process *p, int status) {
	const int ended = e2e_wait_exit(p);
	if (ended != status)
		show_log_tail(p->log);
	assert_int_equal(ended, status);
}

int e2e_run(struct e2e *e, const char *name, const char *const *argv, int status) {
	char log_name[64];
	struct e2e_process p = {0};
	snprintf(log_name, sizeof log_name, "%s.log", name);
	e2e_path(e, log_name, p.log);
	start(&p, argv, &(struct surroundings){.site = site_of(e, 0)});
	if (status < 0)
		return e2e_wait_exit(&p);
	e2e_assert_exit(&p, status);
	return status;
}

static void end_process(struct e2e_process *p) {
	int status;
	if (p->pid <= 0)
		return;
	kill(p->pid, SIGKILL);
	for (double end = now_s() + E2E_WAIT_S; !try_wait(p, &status) && now_s() < end;)
		pause_between_polls();
}

/* ---- a run ---- */

static void wait_for_file(const char *path, struct e2e_process *p) {
	struct stat st;
	for (double end = now_s() + E2E_WAIT_S; now_s() < end; pause_between_polls()) {
		int status;
		if (stat(path, &st) == 0 && st.st_size > 0)
			return;
		if (p->pid == 0 || try_wait(p, &status))
			break;
	}
	show_log_tail(p->log);
	fail_msg("%s was not written", path);
}

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

void e2e_start_coordinator(struct e2e *e) {
	char dir[E2E_PATH], listen_file[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "coordinator/listen", listen_file);
	e2e_path(e, "coordinator.log", e->coordinator.log);
	(void)remove(listen_file);
	if (!e->listen[0] && e->sites)
		any_port(e, 0, e->listen);
	else if (!e->listen[0])
		keep_port(e);
	const char *program = e->coordinator_program ? e->coordinator_program : "rivulet-coordinator";
	const char *const argv[] = {program, "serve", "--dir", dir, "--listen", e->listen, NULL};
	start(&e->coordinator, argv, &(struct surroundings){.site = site_of(e, 0), .env = e->coordinator_env});
	wait_for_file(listen_file, &e->coordinator);
	char *text = read_all(listen_file);
	text[strcspn(text, "\n")] = '\0';
	snprintf(e->listen, sizeof e->listen, "%s", text);
	free(text);
}

/* Links for workers first, first + 1, ... */
static void make_links(struct e2e *e, int first, int n) {
	char dir[E2E_PATH], count[16], log[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_path(e, "invite.log", log);
	(void)remove(log);
	snprintf(count, sizeof count, "%d", n);
	const char *const argv[] = {"rivulet-coordinator", "invite", "--dir", dir, "--count", count, NULL};
	e2e_run(e, "invite", argv, 0);
	char *text = read_all(log), *at = text;
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
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	make_links(e, i, 1);
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
	snprintf(text, sizeof text, "%" PRId64 "\n", round * e->steps_per_round);
	write_all(made, text);
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

void e2e_open_at(struct e2e *e, const struct e2e_site *sites, const char *config, int n_workers) {
	char conf[E2E_PATH], dir[E2E_PATH];
	memset(e, 0, sizeof *e);
	e->sites = sites;
	e->port_fd = -1;
	e->steps_per_round = steps_per_round(config);
	const char *tmp = getenv("TMPDIR");
	snprintf(e->dir, sizeof e->dir, "%s/rivulet-e2e-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(e->dir));
	e->n_workers = n_workers;
	e2e_path(e, "text", e->data);
	e2e_path(e, "run.conf", conf);
	e2e_path(e, "coordinator", dir);
	write_text(e->data);
	write_all(conf, config);
	const char *const argv[] = {"rivulet-coordinator", "new-run", "--dir", dir, "--config", conf, NULL};
	e2e_run(e, "new-run", argv, 0);
	e2e_start_coordinator(e);
	make_links(e, 0, n_workers);
}

void e2e_close(struct e2e *e) {
	for (int i = 0; i < e->n_workers; i++)
		end_process(&e->workers[i]);
	end_process(&e->coordinator);
	if (e->dir[0] && e->port_fd >= 0)
		close(e->port_fd);
	if (e->dir[0] && !getenv("E2E_KEEP"))
		nftw(e->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int e2e_teardown(void **state) {
	if (*state)
		e2e_close(*state);
	return 0;
}

static void launch(struct e2e *e, int i, const char *program, const char *env, char conf[E2E_PATH + 16]) {
	char dir[E2E_PATH], gate[E2E_PATH], name[32], log_name[32], address[64];
	struct stat st;
	any_port(e, i + 1, address);
	struct e2e_process *w = &e->workers[i];
	e2e_worker_dir(e, i, dir);
	snprintf(name, sizeof name, "worker%d", i);
	snprintf(log_name, sizeof log_name, "worker%d.log", i);
	snprintf(conf, E2E_PATH + 16, "%s/run.conf", dir);
	e2e_path(e, log_name, w->log);
	e2e_path(e, "gate", gate);
	const char *argv[ARGS_MAX] = {program ? program : "rivulet-worker",
								  "--dir",
								  dir,
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
	int n = e->says_little ? 3 : 13;
	if (stat(conf, &st) != 0)
		argv[n++] = e->links[i]; /* later it knows by itself */
	for (int k = 0; k < E2E_MAX_ARGS && e->worker_args[k]; k++)
		argv[n++] = e->worker_args[k];
	argv[n] = NULL;
	start(w, argv,
		  &(struct surroundings){.site = site_of(e, i + 1), .env = env, .gate = gate, .file_limit = e->file_limit});
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
	wait_for_file(conf, &e->workers[i]);
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
	char *text = read_all(log);
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

json_t *e2e_wait_event(const struct e2e_process *p, const char *name, const char *key, int64_t at_least, long *from) {
	for (double end = now_s() + E2E_WAIT_S; now_s() < end; pause_between_polls()) {
		json_t *found = e2e_find_event(p->log, name, key, at_least, from);
		if (found)
			return found;
	}
	show_log_tail(p->log);
	fail_msg("no event %s (%s >= %lld) within %d s in %s", name, key ? key : "any", (long long)at_least, E2E_WAIT_S,
			 p->log);
	return NULL;
}

json_t *e2e_metrics(const char *dir, const char *kind) {
	char path[E2E_PATH + 16];
	snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
	char *text = read_all(path), *save = NULL;
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
