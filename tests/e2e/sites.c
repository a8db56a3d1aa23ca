/* sites.c: see sites.h. Namespaces are named rvnet<pid>-<i>: what a killed test left behind
 * bench/realnet/shaped.py removes, and the next test too. */
#include "sites.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NETNS_DIR "/var/run/netns"
enum { LINE_BYTES = 64, ARGS_MAX = SITES_MAX + 4 };

/* ---- the program ip ---- */

/* Runs it; its complaints go nowhere. */
static bool ip(const char *const *argv) {
	pid_t pid;
	int status;
	posix_spawn_file_actions_t quiet;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", 1, 0);
	bool ran = posix_spawnp(&pid, "ip", &quiet, NULL, (char *const *)(uintptr_t)argv, environ) == 0 &&
			   waitpid(pid, &status, 0) == pid;
	posix_spawn_file_actions_destroy(&quiet);
	return ran && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool namespace_command(const char *verb, const char *name) {
	return ip((const char *const[]){"ip", "netns", verb, name, NULL});
}

/* Of tests that are gone. */
static void remove_stale(void) {
	DIR *d = opendir(NETNS_DIR);
	struct dirent *entry;
	int pid;
	while (d && (entry = readdir(d)) != NULL)
		if (sscanf(entry->d_name, "rvnet%d-", &pid) == 1 && kill(pid, 0) != 0 && errno == ESRCH)
			(void)namespace_command("del", entry->d_name);
	if (d)
		closedir(d);
}

static bool set_up_device(const struct sites *s, int at) {
	char address[64];
	const char *name = s->names[at];
	snprintf(address, sizeof address, "%s/16", s->at[at].host);
	return ip((const char *const[]){"ip", "-n", name, "addr", "add", address, "dev", "wan0", NULL}) &&
		   ip((const char *const[]){"ip", "-n", name, "link", "set", "wan0", "mtu", "1500", "up", NULL});
}

/* ---- the relay ---- */

static void run_relay(const struct sites *s, int delay_ms, const int in[2], const int out[2]) {
	char program[E2E_PATH], delay[16];
	const char *argv[ARGS_MAX] = {program, "0", delay};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program, sizeof program, "%s/shaped_net", RV_TEST_BIN_DIR);
	snprintf(delay, sizeof delay, "%d", delay_ms);
	for (int i = 0; i < s->n; i++)
		argv[3 + i] = s->names[i];
	if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
		_exit(126);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	execv(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool answers(struct sites *s, const char *expected) {
	char line[LINE_BYTES];
	return fgets(line, sizeof line, s->answers) && strncmp(line, expected, strlen(expected)) == 0;
}

static bool start_relay(struct sites *s, int delay_ms) {
	int in[2], out[2];
	if (pipe(in) != 0 || pipe(out) != 0)
		return false;
	s->relay = fork();
	if (s->relay == 0)
		run_relay(s, delay_ms, in, out);
	close(in[0]);
	close(out[1]);
	s->commands = fdopen(in[1], "w");
	s->answers = fdopen(out[0], "r");
	return s->relay > 0 && s->commands && s->answers && answers(s, "ready");
}

static void tell(struct sites *s, const char *what, int at) {
	fprintf(s->commands, "%s %d\n", what, at + 1);
	fflush(s->commands);
	assert_true(answers(s, "ok"));
}

void sites_cut(struct sites *s, int at) {
	tell(s, "cut", at);
}

void sites_heal(struct sites *s, int at) {
	tell(s, "heal", at);
}

void sites_part(struct sites *s, int at, int other) {
	const char *name = s->names[at], *host = s->at[other].host;
	assert_true(ip((const char *const[]){"ip", "-n", name, "route", "add", "blackhole", host, NULL}));
}

void sites_move(struct sites *s, int at) {
	char address[64];
	const char *name = s->names[at];
	snprintf(address, sizeof address, "10.86.1.%d/16", at + 1); /* the relay looks at the last byte only */
	assert_true(ip((const char *const[]){"ip", "-n", name, "addr", "flush", "dev", "wan0", NULL}));
	assert_true(ip((const char *const[]){"ip", "-n", name, "addr", "add", address, "dev", "wan0", NULL}));
}

void sites_rate(struct sites *s, int at, long bits_per_s) {
	fprintf(s->commands, "rate %d %ld %ld\n", at + 1, bits_per_s, bits_per_s);
	fflush(s->commands);
	assert_true(answers(s, "ok"));
}

/* ---- life ---- */

static bool make(struct sites *s, int n, int delay_ms, const char **why) {
	for (s->n = 0; s->n < n; s->n++) {
		int at = s->n;
		char name[32];
		snprintf(name, sizeof name, "rvnet%d-%d", (int)getpid(), at + 1);
		memcpy(s->names[at], name, sizeof name);
		snprintf(s->at[at].name_space, sizeof s->at[at].name_space, NETNS_DIR "/%s", name);
		snprintf(s->at[at].host, sizeof s->at[at].host, "10.86.0.%d", at + 1);
		*why = "network namespaces cannot be made here (ip netns add)";
		if (!namespace_command("add", s->names[at]))
			return false;
		(void)ip((const char *const[]){"ip", "-n", s->names[at], "link", "set", "lo", "up", NULL});
	}
	*why = "shaped_net cannot run here";
	if (!start_relay(s, delay_ms))
		return false;
	*why = "a device of shaped_net cannot be set up here";
	for (int i = 0; i < n; i++)
		if (!set_up_device(s, i))
			return false;
	return true;
}

bool sites_open(struct sites *s, int n, int delay_ms, char why[256]) {
	const char *reason = "hosts that vanish need network namespaces: run it as root";
	memset(s, 0, sizeof *s);
	assert_in_range(n, 2, SITES_MAX);
	bool made = geteuid() == 0;
	if (made && access("/dev/net/tun", R_OK | W_OK) != 0) {
		reason = "/dev/net/tun is missing (modprobe tun)";
		made = false;
	}
	if (made) {
		remove_stale();
		made = make(s, n, delay_ms, &reason);
	}
	snprintf(why, 256, "%s", made ? "" : reason);
	if (!made)
		sites_close(s);
	return made;
}

void sites_close(struct sites *s) {
	if (s->commands)
		fclose(s->commands);
	if (s->answers)
		fclose(s->answers);
	if (s->relay > 0) {
		kill(s->relay, SIGTERM);
		(void)waitpid(s->relay, NULL, 0);
	}
	for (int i = 0; i < s->n; i++)
		(void)namespace_command("del", s->names[i]);
	memset(s, 0, sizeof *s);
}

bool sites_possible(void) {
	struct sites s;
	char why[256];
	const bool possible = sites_open(&s, 2, 1, why);
	sites_close(&s);
	if (!possible)
		printf("skipped: %s\n", why);
	return possible;
}
