/* tree.h: a temporary folder that stands for a machine's file system, and the fake libraries that
 * are put into it. */
#ifndef RV_TEST_VENDOR_TREE_H
#define RV_TEST_VENDOR_TREE_H

#include "kernels/cuda/vendor/places.h"

#ifdef __aarch64__
#define FAKE_TARGET "sbsa-linux"
#else
#define FAKE_TARGET "x86_64-linux"
#endif

struct tree {
	char root[64];
	struct vendor_environment env; /* nothing set, root is the tree's, the loader's folders left out */
	char text[8][PLACE_BYTES];     /* of tree_at */
	int next;
};

void tree_init(struct tree *t);
void tree_release(struct tree *t);
/* Returns "ROOT/path", or "path" itself when it is absolute, for the next seven calls. */
const char *tree_at(struct tree *t, const char *path);
/* Each makes the folders above. Copies a fake library: its name in the build's folder of them. */
void tree_put_library(struct tree *t, const char *path, const char *library);
void tree_put_file(struct tree *t, const char *path, const char *content);
void tree_put_program(struct tree *t, const char *path, const char *content); /* the same, executable */
void tree_put_binary(struct tree *t, const char *path);                       /* an ELF program that is never run */
void tree_put_link(struct tree *t, const char *path, const char *target);

#endif
