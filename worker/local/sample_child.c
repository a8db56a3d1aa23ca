/* sample_child.c: see sample_child.h. */
#include "worker/local/sample_child.h"

#include "base/clean_text.h"
#include "base/os_file.h"
#include "base/os_priority.h"
#include "base/os_program.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOWEST_PRIORITY = 19, NO_PROGRAM = 127 };

struct sample_child {
	pid_t pid;
	int fd;
	char prompt[SAMPLE_PROMPT_BYTES];
	char text[LOCAL_TEXT_BYTES + SAMPLE_PROMPT_BYTES];
	size_t n;
};

/* ---- the process ---- */

static void limit(int what, int64_t most) {
	const struct rlimit l = {.rlim_cur = (rlim_t)most, .rlim_max = (rlim_t)most};
	(void)setrlimit(what, &l);
}

/* Becomes the program. Only what is safe between fork and exec. */
static void become(const struct sample_plan *plan, char *const *argv, int out_fd) {
	os_program_end_with_parent(SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
	(void)os_priority_set(OS_PRIORITY_IDLE);
	limit(RLIMIT_DATA, plan->memory_bytes);
	limit(RLIMIT_CPU, SAMPLE_S);
	limit(RLIMIT_CORE, 0);
	rv_signals_unblock();
	const int null = open("/dev/null", O_RDWR);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(out_fd, STDOUT_FILENO);
	(void)dup2(out_fd, STDERR_FILENO); /* a fault's text is the answer */
	(void)execv(plan->program, argv);
	_exit(NO_PROGRAM);
}

static enum rv_err spawn(const struct sample_plan *plan, char *const *argv, struct sample_child *c,
						 struct rv_errtext *et) {
	int fds[2];
	if (os_file_pipe(fds) != 0)
		return rv_fail_errno(et, errno, "no pipe for a sample");
	(void)fcntl(fds[1], F_SETFL, 0); /* the program waits where it is not read */
	c->pid = fork();
	if (c->pid == 0)
		become(plan, argv, fds[1]);
	(void)close(fds[1]);
	if (c->pid > 0) {
		c->fd = fds[0];
		return RV_OK;
	}
	enum rv_err e = rv_fail_errno(et, errno, "no process for a sample");
	(void)close(fds[0]);
	return e;
}

enum rv_err sample_child_start(const struct sample_plan *plan, const char *prompt, struct sample_child **out,
							   struct rv_errtext *et) {
	char given[SAMPLE_PROMPT_BYTES + 16], tokens[32], seed[32], tokenizer[PATH_MAX + 16];
	*out = NULL;
	if (strlen(prompt) >= SAMPLE_PROMPT_BYTES)
		return rv_fail(et, RV_E_RANGE, "the text to begin with has more than %d bytes", SAMPLE_PROMPT_BYTES - 1);
	struct sample_child *c = calloc(1, sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory for a sample");
	(void)snprintf(c->prompt, sizeof c->prompt, "%s", prompt);
	/* "-" alone would be the standard input. */
	(void)snprintf(given, sizeof given, "--prompt=%s%s", strcmp(prompt, "-") == 0 ? " " : "", prompt);
	(void)snprintf(tokens, sizeof tokens, "--tokens=%d", SAMPLE_TOKENS);
	(void)snprintf(seed, sizeof seed, "--seed=%d", (int)getpid() ^ (int)(time(NULL) & 0xffffff));
	(void)snprintf(tokenizer, sizeof tokenizer, "--tokenizer=%s", plan->tokenizer);
	const char *const argv[] = {plan->program,  "sample", plan->dir, "--device=cpu", "--threads=1", "--temperature=0.7",
								"--top-p=0.95", given,    tokens,    seed,           tokenizer,     NULL};
	enum rv_err e = spawn(plan, (char *const *)argv, c, et);
	if (e == RV_OK)
		*out = c;
	else
		free(c);
	return e;
}

/* ---- what it writes ---- */

int sample_child_fd(const struct sample_child *c) {
	return c->fd;
}

bool sample_child_read(struct sample_child *c) {
	while (c->n + 1 < sizeof c->text) {
		const ssize_t n = read(c->fd, c->text + c->n, sizeof c->text - 1 - c->n);
		if (n > 0)
			c->n += (size_t)n;
		else
			return n < 0 && (errno == EAGAIN || errno == EINTR);
	}
	return false;
}

/* Makes lines of it that a page may show. */
static void clean_lines(char *text) {
	for (char *line = text; line;) {
		char *end = strchr(line, '\n');
		if (end)
			*end = '\0';
		clean_text(line);
		if (end)
			*end = '\n';
		line = end ? end + 1 : NULL;
	}
}

static void answer(const struct sample_child *c, int status, bool late, struct local_answer *out) {
	const size_t n_prompt = strlen(c->prompt);
	const bool begins = strncmp(c->text, c->prompt, n_prompt) == 0;
	const char *text = begins ? c->text + n_prompt : c->text;
	out->ok = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (begins && text[0]);
	if (out->ok || (text[0] && !late))
		(void)snprintf(out->text, sizeof out->text, "%s", text);
	else if (late)
		(void)snprintf(out->text, sizeof out->text, "%d s were not enough: the processor is busy", SAMPLE_S);
	else
		(void)snprintf(out->text, sizeof out->text,
					   "the program that writes the text ended and gave no reason: it may have "
					   "needed more memory than is free beside the training");
	clean_lines(out->text);
}

void sample_child_end(struct sample_child *c, bool late, struct local_answer *out) {
	int status = 0;
	if (late || c->n + 1 >= sizeof c->text)
		(void)kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
	}
	*out = (struct local_answer){.ok = false};
	answer(c, status, late, out);
	(void)close(c->fd);
	free(c);
}
