/* child.h: code that may end its process, run in a child of the test, whose status and stderr are
 * read. */
#ifndef RV_TESTS_KERNELS_EMU_CHILD_H
#define RV_TESTS_KERNELS_EMU_CHILD_H

struct child_outcome {
	int status;      /* of waitpid */
	char text[8192]; /* what the child wrote to stderr, as much as fits */
};

/* Runs body(ctx) in a child, which exits with what it returns. */
struct child_outcome child_run(int (*body)(const void *ctx), const void *ctx);
/* Returns how often `what` is in `text`. */
int child_count(const char *text, const char *what);

#endif
