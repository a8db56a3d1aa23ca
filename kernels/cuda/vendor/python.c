/* python.c: see python.h. */
#include "kernels/cuda/vendor/python.h"

#include "kernels/cuda/vendor/python_run.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_LINE_BYTES = 512 };

/* The contents of a pyvenv.cfg. */
struct virtual_environment {
	char prefix[PLACE_BYTES];
	char base_programs[PLACE_BYTES]; /* folder of the Python it was made with; "": unknown */
	bool uses_base;                  /* the packages of that Python are visible too */
};

static bool is_folder(const char *path) {
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool find_interpreter(const struct vendor_environment *env, char out[PLACE_BYTES]) {
	if (env->python && env->python[0] && !strchr(env->python, '/'))
		return places_find_program(env->path, env->python, out);
	if (env->python && env->python[0])
		return snprintf(out, PLACE_BYTES, "%s", env->python) < PLACE_BYTES && access(out, X_OK) == 0 && !is_folder(out);
	return places_find_program(env->path, "python3", out) || places_find_program(env->path, "python", out);
}

bool python_is_misnamed(const struct vendor_environment *env) {
	char interpreter[PLACE_BYTES];
	return env->python && env->python[0] && !find_interpreter(env, interpreter);
}

/* Returns the value of a line "key = value", or NULL if it is of another key. Cuts blanks around
 * both in place. */
static char *value_of(char *line, const char *key) {
	size_t n = strlen(key);
	line += strspn(line, " \t");
	if (strncmp(line, key, n) != 0)
		return NULL;
	char *value = line + n + strspn(line + n, " \t");
	if (*value++ != '=')
		return NULL;
	value += strspn(value, " \t");
	size_t end = strlen(value);
	while (end > 0 && isspace((unsigned char)value[end - 1]))
		value[--end] = 0;
	return value;
}

static void read_config(FILE *f, struct virtual_environment *v) {
	char line[CONFIG_LINE_BYTES];
	while (fgets(line, sizeof line, f)) {
		const char *value = value_of(line, "home");
		if (value)
			(void)snprintf(v->base_programs, sizeof v->base_programs, "%s", value);
		value = value_of(line, "include-system-site-packages");
		if (value)
			v->uses_base = strcmp(value, "true") == 0;
	}
}

/* Cuts the file's name off: "/a/b/c" becomes "/a/b". Returns false if nothing would be left. */
static bool to_folder(char *path) {
	char *slash = strrchr(path, '/');
	if (!slash || slash == path)
		return false;
	*slash = 0;
	return true;
}

/* Finds pyvenv.cfg: the interpreter is in PREFIX/bin, pyvenv.cfg in PREFIX. */
static bool find_virtual_environment(const char *interpreter, struct virtual_environment *v) {
	char config[PLACE_BYTES + 16];
	*v = (struct virtual_environment){.uses_base = false};
	(void)snprintf(v->prefix, sizeof v->prefix, "%s", interpreter);
	if (!to_folder(v->prefix) || !to_folder(v->prefix))
		return false;
	(void)snprintf(config, sizeof config, "%s/pyvenv.cfg", v->prefix);
	FILE *f = fopen(config, "re");
	if (!f)
		return false;
	read_config(f, v);
	(void)fclose(f);
	return true;
}

static void add_prefix(struct place_list *out, const char *prefix) {
	static const char *const libraries[] = {"lib", "lib64", "local/lib"};
	for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
		place_list_add_matches(out, true, "%s/%s/python3*/site-packages", prefix, libraries[i]);
		place_list_add_matches(out, true, "%s/%s/python3*/dist-packages", prefix, libraries[i]);
	}
}

/* Adds the packages of a virtual environment's base Python, or of one outside any: the target of
 * `program` is in PREFIX/bin. A script of that name does not show where the packages are. */
static void add_base(struct place_list *out, const struct vendor_environment *env, const char *program) {
	char *real = realpath(program, NULL);
	char prefix[PLACE_BYTES], magic[4] = "";
	FILE *f = real ? fopen(real, "re") : NULL;
	bool is_program = f && fread(magic, 1, sizeof magic, f) == sizeof magic && memcmp(magic, "\177ELF", 4) == 0;
	bool fits = real && snprintf(prefix, sizeof prefix, "%s", real) < PLACE_BYTES;
	if (f)
		(void)fclose(f);
	free(real);
	if (!is_program || !fits || !to_folder(prefix) || !to_folder(prefix))
		return;
	if (env->home && env->home[0])
		place_list_add_matches(out, true, "%s/.local/lib/python3*/site-packages", env->home);
	add_prefix(out, prefix);
}

void python_package_folders(struct place_list *out, const struct vendor_environment *env) {
	char interpreter[PLACE_BYTES], base[2 * PLACE_BYTES];
	struct virtual_environment v;
	int before = out->n;
	if (!find_interpreter(env, interpreter))
		return;
	if (!find_virtual_environment(interpreter, &v)) {
		add_base(out, env, interpreter);
	} else {
		add_prefix(out, v.prefix);
		(void)snprintf(base, sizeof base, "%s/python3", v.base_programs);
		if (v.uses_base)
			add_base(out, env, base);
	}
	if (out->n == before)
		python_ask(out, interpreter, env->python_timeout_ms);
}
