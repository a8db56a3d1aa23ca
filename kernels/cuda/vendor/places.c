/* places.c: see places.h. */
#include "kernels/cuda/vendor/places.h"

#include "kernels/cuda/vendor/python.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PYTHON_TIMEOUT_MS = 3000 };

#ifdef __aarch64__
#define TARGET "sbsa-linux"
#else
#define TARGET "x86_64-linux"
#endif

struct vendor_environment vendor_environment_now(void) {
	return (struct vendor_environment){.cuda_home = getenv("CUDA_HOME"),
									   .cuda_path = getenv("CUDA_PATH"),
									   .path = getenv("PATH"),
									   .python = getenv("RIVULET_PYTHON"),
									   .home = getenv("HOME"),
									   .root = "",
									   .python_timeout_ms = PYTHON_TIMEOUT_MS};
}

static bool is_folder(const char *path, struct stat *st) {
	return stat(path, st) == 0 && S_ISDIR(st->st_mode);
}

/* Returns true if the folder is in the list, perhaps by another link: lib64 of a virtual
 * environment, /usr/local/cuda. */
static bool has(const struct place_list *l, const struct stat *folder) {
	struct stat st;
	for (int i = 0; i < l->n; i++)
		if (is_folder(l->path[i], &st) && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino)
			return true;
	return false;
}

static void add(struct place_list *l, const char *path) {
	struct stat st;
	if (l->n == PLACES_MAX || strlen(path) >= PLACE_BYTES || !is_folder(path, &st) || has(l, &st))
		return;
	memcpy(l->path[l->n++], path, strlen(path) + 1);
}

void place_list_add(struct place_list *l, const char *format, ...) {
	char path[PLACE_BYTES];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(path, sizeof path, format, args);
	va_end(args);
	if (n > 0 && n < PLACE_BYTES)
		add(l, path);
}

/* Compares by the numbers in a name: cuda-13.0 is behind cuda-9.2. */
static int by_version(const void *a, const void *b) {
	return -strverscmp(*(const char *const *)a, *(const char *const *)b);
}

void place_list_add_matches(struct place_list *l, bool newest_first, const char *format, ...) {
	char pattern[PLACE_BYTES];
	glob_t g;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(pattern, sizeof pattern, format, args);
	va_end(args);
	if (n <= 0 || n >= PLACE_BYTES || glob(pattern, GLOB_ONLYDIR, NULL, &g) != 0)
		return;
	if (newest_first)
		qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, by_version);
	for (size_t i = 0; i < g.gl_pathc; i++)
		add(l, g.gl_pathv[i]);
	globfree(&g);
}

static void add_toolkit(struct place_list *l, const char *folder) {
	place_list_add(l, "%s/lib64", folder);
	place_list_add(l, "%s/targets/" TARGET "/lib", folder);
	place_list_add(l, "%s/lib", folder);
}

/* Cuts the last part of a path off; "" if there is none. */
static void to_parent(char *path) {
	char *slash = strrchr(path, '/');
	*(slash ? slash : path) = 0;
}

bool places_find_program(const char *path, const char *name, char out[PLACE_BYTES]) {
	struct stat st;
	for (const char *at = path ? path : ""; *at;) {
		size_t n = strcspn(at, ":");
		if (n > 0 && snprintf(out, PLACE_BYTES, "%.*s/%s", (int)n, at, name) < PLACE_BYTES && access(out, X_OK) == 0 &&
			!is_folder(out, &st))
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static void add_toolkit_of_nvcc(struct place_list *l, const char *path) {
	char nvcc[PLACE_BYTES];
	if (!places_find_program(path, "nvcc", nvcc))
		return;
	to_parent(nvcc);
	to_parent(nvcc);
	add_toolkit(l, nvcc);
}

void places_add_toolkits(struct place_list *l, const struct vendor_environment *env) {
	const char *named[] = {env->cuda_home, env->cuda_path};
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
		if (named[i] && named[i][0])
			add_toolkit(l, named[i]);
	add_toolkit_of_nvcc(l, env->path);
	char folder[PLACE_BYTES];
	if (snprintf(folder, sizeof folder, "%s/usr/local/cuda", env->root) < PLACE_BYTES)
		add_toolkit(l, folder);
	place_list_add_matches(l, true, "%s/usr/local/cuda-[0-9]*/lib64", env->root);
	place_list_add_matches(l, true, "%s/usr/local/cuda-[0-9]*/targets/" TARGET "/lib", env->root);
	if (snprintf(folder, sizeof folder, "%s/opt/cuda", env->root) < PLACE_BYTES)
		add_toolkit(l, folder);
}

void places_add_python(struct place_list *l, const struct vendor_environment *env) {
	struct place_list packages = {.n = 0};
	python_package_folders(&packages, env);
	for (int i = 0; i < packages.n; i++)
		place_list_add_matches(l, false, "%s/nvidia/*/lib", packages.path[i]);
	for (int i = 0; i < packages.n; i++)
		place_list_add(l, "%s/../..", packages.path[i]);
}
