/* tree.c: see tree.h. */
#include "tree.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PYTHON_TIMEOUT_MS = 60000 };

void tree_init(struct tree *t) {
	*t = (struct tree){0};
	scratch_make(t->root, sizeof t->root);
	t->env = (struct vendor_environment){.root = t->root, .skip_loader = true, .python_timeout_ms = PYTHON_TIMEOUT_MS};
}

void tree_release(struct tree *t) {
	scratch_remove(t->root);
}

const char *tree_at(struct tree *t, const char *path) {
	char *out = t->text[t->next++ % 8];
	(void)snprintf(out, PLACE_BYTES, "%s%s%s", path[0] == '/' ? "" : t->root, path[0] == '/' ? "" : "/", path);
	return out;
}

static FILE *create(struct tree *t, const char *path) {
	char full[PLACE_BYTES];
	(void)snprintf(full, sizeof full, "%s", tree_at(t, path));
	for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(full, 0755) != 0 && errno != EEXIST)
			fail_msg("%s: %s", full, strerror(errno));
		*slash = '/';
	}
	(void)unlink(full); /* it may be loaded: a new file then, not new content */
	FILE *f = fopen(full, "we");
	assert_non_null(f);
	return f;
}

static void copy(struct tree *t, const char *path, const char *from) {
	char block[4096];
	FILE *in = fopen(from, "re"), *out = create(t, path);
	if (!in)
		fail_msg("%s: %s", from, strerror(errno));
	for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
		assert_int_equal(fwrite(block, 1, n, out), n);
	(void)fclose(in);
	assert_int_equal(fclose(out), 0);
}

void tree_put_library(struct tree *t, const char *path, const char *library) {
	char from[PLACE_BYTES];
	(void)snprintf(from, sizeof from, FAKE_LIBRARIES "/%s.so", library);
	copy(t, path, from);
}

void tree_put_file(struct tree *t, const char *path, const char *content) {
	FILE *f = create(t, path);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void tree_put_program(struct tree *t, const char *path, const char *content) {
	tree_put_file(t, path, content);
	assert_int_equal(chmod(tree_at(t, path), 0755), 0);
}

void tree_put_binary(struct tree *t, const char *path) {
	tree_put_program(t, path, "\177ELF, or so it begins");
}

void tree_put_link(struct tree *t, const char *path, const char *target) {
	(void)fclose(create(t, path));
	assert_int_equal(unlink(tree_at(t, path)), 0);
	assert_int_equal(symlink(target, tree_at(t, path)), 0);
}
