/* places.h: folders in which NVIDIA's libraries may lie, in the order in which they are tried.
 *
 *   1. what the loader finds by itself: LD_LIBRARY_PATH, the system's folders. No place in this
 *      list: library.c begins there
 *   2. $CUDA_HOME and $CUDA_PATH: lib64, targets/ARCH-linux/lib, lib
 *   3. the toolkits beside `nvcc` in PATH, /usr/local/cuda, /usr/local/cuda-* (newest first) and
 *      /opt/cuda: the same
 *   4. a Python's packages (python.h): site-packages/nvidia/NAME/lib, where pip puts NVIDIA's
 *      wheels, and the lib folder of its prefix, where conda does */
#ifndef RV_CUDA_VENDOR_PLACES_H
#define RV_CUDA_VENDOR_PLACES_H

#include <stdbool.h>

enum { PLACES_MAX = 64, PLACE_BYTES = 512 };

/* The environment of a search. Strings may be NULL or "": not set. Borrowed. */
struct vendor_environment {
	const char *cuda_home, *cuda_path;
	const char *path;      /* PATH */
	const char *python;    /* RIVULET_PYTHON: an interpreter, instead of the first python3 or python in PATH */
	const char *home;      /* HOME */
	const char *root;      /* precedes /usr/local and /opt: "" but in tests */
	bool skip_loader;      /* skips 1 of the list above: false but in tests */
	int python_timeout_ms; /* time limit of an interpreter that is run for its folders */
};

/* Folders that exist, each once, whatever links lead to it. Those longer than PLACE_BYTES or beyond
 * PLACES_MAX are left out. */
struct place_list {
	int n;
	char path[PLACES_MAX][PLACE_BYTES];
};

/* Returns the process's own environment. */
struct vendor_environment vendor_environment_now(void);
/* Adds a folder; nothing changes when it does not exist or is in the list. */
void place_list_add(struct place_list *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds every folder that matches a pattern of glob(7): in the order of names, or from the highest
 * version down. */
void place_list_add_matches(struct place_list *l, bool newest_first, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds 2 and 3 of the list above; then 4. */
void places_add_toolkits(struct place_list *l, const struct vendor_environment *env);
void places_add_python(struct place_list *l, const struct vendor_environment *env);
/* Looks for an executable file `name` in the folders of `path`. */
bool places_find_program(const char *path, const char *name, char out[PLACE_BYTES]);

#endif
