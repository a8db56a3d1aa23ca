/* sandbox.c: see sandbox.h. */
#include "worker/options/sandbox.h"

#include "base/file.h"
#include "kernels/plugins.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEEDS_MAX = 384 };

/* The paths, made one by one. */
struct needs {
	struct os_sandbox_path paths[NEEDS_MAX];
	int n;
};

static void need(struct needs *l, unsigned access, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void need(struct needs *l, unsigned access, const char *format, ...) {
	char path[PATH_MAX];
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(path, sizeof path, format, args);
	va_end(args);
	if (n <= 0 || n >= PATH_MAX || l->n == NEEDS_MAX)
		return;
	char *kept = strdup(path);
	if (kept)
		l->paths[l->n++] = (struct os_sandbox_path){kept, access};
}

static void forget(struct needs *l) {
	for (int i = 0; i < l->n; i++)
		free((char *)(uintptr_t)l->paths[i].path);
	l->n = 0;
}

/* A text, a directory, or "DIR/pattern*" of either: of a pattern, what is before its last part. */
static void need_input(struct needs *l, const char *given) {
	if (!given[0] || strstr(given, "://"))
		return;
	if (!strpbrk(given, "*?[")) {
		need(l, OS_SANDBOX_READ, "%s", given);
		return;
	}
	const char *slash = strrchr(given, '/');
	need(l, OS_SANDBOX_READ, "%.*s", slash ? (int)(slash - given) : 1, slash ? given : ".");
}

/* The folder of a program in $PATH, and its Python's packages, in which NVIDIA's libraries may be
 * (kernels/cuda/vendor/places.h). */
static void need_programs_of(struct needs *l, const char *folder, int n) {
	const unsigned both = OS_SANDBOX_READ | OS_SANDBOX_EXECUTE;
	if (n == 0 || folder[0] != '/')
		return;
	need(l, both, "%.*s", n, folder);
	need(l, both, "%.*s/../lib", n, folder);
	need(l, both, "%.*s/../lib64", n, folder);
	need(l, OS_SANDBOX_READ, "%.*s/../pyvenv.cfg", n, folder);
}

static void need_each_of(struct needs *l, const char *list, void (*one)(struct needs *l, const char *path, int n)) {
	for (const char *at = list ? list : ""; *at;) {
		const size_t n = strcspn(at, ":");
		one(l, at, (int)n);
		at += n + (at[n] == ':');
	}
}

static void need_library(struct needs *l, const char *path, int n) {
	need(l, OS_SANDBOX_READ, "%.*s", n, path);
}

static void need_files_named_by(struct needs *l, const char *const *variables) {
	for (; *variables; variables++)
		if (getenv(*variables))
			need(l, OS_SANDBOX_READ, "%s", getenv(*variables));
}

static void need_of_environment(struct needs *l) {
	static const char *const files[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "XAUTHORITY", NULL};
	const char *home = getenv("HOME"), *python = getenv("RIVULET_PYTHON");
	need_files_named_by(l, files);
	for (int i = 0; plugin_entries[i]; i++)
		need_files_named_by(l, plugin_entries[i]->reads);
	need_each_of(l, getenv("PATH"), need_programs_of);
	need_each_of(l, getenv("LD_LIBRARY_PATH"), need_library);
	if (python && strrchr(python, '/'))
		need_programs_of(l, python, (int)(strrchr(python, '/') - python));
	if (!home || !home[0])
		return;
	need(l, OS_SANDBOX_READ, "%s/.Xauthority", home);
	need(l, OS_SANDBOX_READ, "%s/.local/lib", home);             /* a Python's packages */
	need(l, OS_SANDBOX_READ | OS_SANDBOX_WRITE, "%s/.nv", home); /* what NVIDIA's driver has compiled */
}

/* Makes the log file, so that it can be named; the session opens it later and reports faults. */
static void make_log(const char *path) {
	const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0)
		(void)close(fd);
}

enum rv_err worker_sandbox_enter(const struct worker_options *o, const char *data, const char *tokenizer,
								 struct os_sandbox *out, struct rv_errtext *et) {
	enum { DIR_MODE = 0755 };
	struct needs l = {.n = 0};
	RV_TRY(rv_dir_make(o->dir, DIR_MODE, et));
	need(&l, OS_SANDBOX_READ | OS_SANDBOX_WRITE, "%s", o->dir);
	need_input(&l, o->data);
	need_input(&l, data);
	need_input(&l, o->tokenizer);
	need_input(&l, tokenizer);
	need_input(&l, o->init);
	if (o->log_file[0]) {
		make_log(o->log_file);
		need(&l, OS_SANDBOX_READ | OS_SANDBOX_WRITE, "%s", o->log_file);
	}
	need_of_environment(&l);
	const struct os_sandbox_needs needs = {.paths = l.paths, .n = l.n, .programs = true};
	enum rv_err e = os_sandbox_enter(&needs, out, et);
	forget(&l);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--no-sandbox goes on without one");
}
