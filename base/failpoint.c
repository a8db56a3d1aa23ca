/* failpoint.c: see failpoint.h. Nothing without RV_FAILPOINTS. */
#include "base/failpoint.h"

#ifdef RV_FAILPOINTS

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 64, EXIT_STATUS = 70, EXIT_USAGE = 64, US_PER_MS_NS = 1000000 };

const struct rv_failpoint_info rv_failpoints[] = {
#define FAILPOINT(program, name, what) {name, #program, what},
#include "base/failpoints.def"
#undef FAILPOINT
	{NULL, NULL, NULL},
};

enum action { ACTION_KILL, ACTION_STOP, ACTION_EXIT, ACTION_DELAY, ACTION_ERRNO };

static const struct {
	const char *name;
	int number;
} errnos[] = {{"EIO", EIO},     {"ENOSPC", ENOSPC},         {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE},
			  {"EROFS", EROFS}, {"ECONNRESET", ECONNRESET}, {"EACCES", EACCES}};

/* The plan that the environment asks for. Read once; only the counter changes. */
static struct {
	pthread_once_t once;
	bool armed;
	char name[NAME_BYTES];
	unsigned long hit;
	enum action action;
	int number; /* milliseconds, or errno */
	atomic_ulong hits;
} plan = {.once = PTHREAD_ONCE_INIT};

static bool is_point(const char *name) {
	for (const struct rv_failpoint_info *p = rv_failpoints; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return true;
	return false;
}

_Noreturn static void refuse(const char *text) {
	(void)fprintf(stderr,
				  "RIVULET_FAILPOINT=%s: must be NAME[@HIT]=kill|stop|exit|delay:MS|EIO|..., NAME one of "
				  "base/failpoints.def\n",
				  text);
	_exit(EXIT_USAGE);
}

static bool parse_action(const char *text) {
	static const char *const names[] = {"kill", "stop", "exit"};
	char *end;
	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			plan.action = (enum action)(ACTION_KILL + i);
			return true;
		}
	for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++)
		if (strcmp(text, errnos[i].name) == 0) {
			plan.action = ACTION_ERRNO;
			plan.number = errnos[i].number;
			return true;
		}
	plan.action = ACTION_DELAY;
	if (strncmp(text, "delay:", 6) != 0 || text[6] < '0' || text[6] > '9')
		return false;
	plan.number = (int)strtol(text + 6, &end, 10);
	return *end == '\0';
}

static void read_plan(void) {
	const char *text = getenv("RIVULET_FAILPOINT");
	if (text == NULL || text[0] == '\0')
		return;
	char name[NAME_BYTES], action[NAME_BYTES];
	int end = 0;
	plan.hit = 1;
	if (sscanf(text, "%63[a-z0-9.-]%n", name, &end) != 1 || !is_point(name))
		refuse(text);
	const char *rest = text + end;
	if (*rest == '@' && (sscanf(rest, "@%lu%n", &plan.hit, &end) != 1 || plan.hit == 0))
		refuse(text);
	rest += *rest == '@' ? end : 0;
	if (sscanf(rest, "=%63s", action) != 1 || !parse_action(action))
		refuse(text);
	memcpy(plan.name, name, sizeof name);
	plan.armed = true;
}

/* Prints the event in one write, so that it does not mix with lines of other threads. */
static void tell(const char *name) {
	char line[NAME_BYTES + 64];
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	int n = snprintf(line, sizeof line, "{\"t\": %lld.%06ld, \"event\": \"failpoint\", \"name\": \"%s\"}\n",
					 (long long)t.tv_sec, t.tv_nsec / 1000, name);
	ssize_t written = write(STDOUT_FILENO, line, (size_t)n);
	(void)written;
}

/* Returns the errno that the point must fail with; 0: go on. */
static int act(void) {
	switch (plan.action) {
	case ACTION_KILL:
		(void)kill(getpid(), SIGKILL);
		for (;;)
			(void)pause();
	case ACTION_STOP:
		(void)kill(getpid(), SIGSTOP);
		return 0;
	case ACTION_EXIT:
		_exit(EXIT_STATUS);
	case ACTION_DELAY:
		(void)nanosleep(
			&(struct timespec){.tv_sec = plan.number / 1000, .tv_nsec = (long)(plan.number % 1000) * US_PER_MS_NS},
			NULL);
		return 0;
	case ACTION_ERRNO:
		return plan.number;
	}
	RV_UNREACHABLE("a plan has one of these actions");
}

static int reach(const char *name) {
	(void)pthread_once(&plan.once, read_plan);
	if (!plan.armed || strcmp(plan.name, name) != 0 || atomic_fetch_add(&plan.hits, 1) + 1 != plan.hit)
		return 0;
	tell(name);
	return act();
}

enum rv_err rv_failpoint_fault(const char *name, struct rv_errtext *et) {
	RV_ASSERT(is_point(name));
	int number = reach(name);
	return number == 0 ? RV_OK : rv_fail_errno(et, number, "failpoint %s", name);
}

void rv_failpoint(const char *name) {
	RV_ASSERT(is_point(name));
	if (reach(name) != 0)
		_exit(EXIT_STATUS);
}

enum rv_err rv_failpoint_file(const char *path, const char *step, struct rv_errtext *et) {
	char name[NAME_BYTES];
	const char *slash = strrchr(path, '/');
	const char *file = slash != NULL ? slash + 1 : path;
	int kind = (int)strspn(file, "abcdefghijklmnopqrstuvwxyz");
	(void)snprintf(name, sizeof name, "%.*s.%s", kind, file, step);
	return is_point(name) ? rv_failpoint_fault(name, et) : RV_OK;
}

#endif
