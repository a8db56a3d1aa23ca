/* sample_child.h: text from the current model, for the page's box: `rivulet sample DIR` as a
 * process of its own, which reads the newest state that the directory proves. It runs at the lowest
 * priority on one thread of the processor, and ends when it has used its time or its memory: so it
 * takes nothing from training that training would miss. One thread, which may be any. */
#ifndef RV_WORKER_LOCAL_SAMPLE_CHILD_H
#define RV_WORKER_LOCAL_SAMPLE_CHILD_H

#include "worker/local/mailbox.h"

#include <limits.h>

enum { SAMPLE_TOKENS = 120, SAMPLE_S = 60, SAMPLE_PROMPT_BYTES = 1024 };

/* The program that writes, and what it may take. */
struct sample_plan {
	char program[PATH_MAX]; /* `rivulet` */
	char dir[PATH_MAX];
	char tokenizer[PATH_MAX]; /* as --tokenizer takes it; "" */
	int64_t memory_bytes;     /* of its own data */
};

struct sample_child;

/* Starts it. `prompt`: UTF-8, shorter than SAMPLE_PROMPT_BYTES. RV_E_RANGE: it is longer; RV_E_IO,
 * RV_E_BUSY, RV_E_NOMEM: it cannot be started. */
enum rv_err sample_child_start(const struct sample_plan *plan, const char *prompt, struct sample_child **out,
							   struct rv_errtext *et);
/* Returns the descriptor that is readable when there is more, or its end. */
int sample_child_fd(const struct sample_child *c);
/* Reads what there is. Returns false once there is nothing to wait for. Never blocks. */
bool sample_child_read(struct sample_child *c);
/* Ends it, whatever it does, frees it, and writes what it wrote, without the prompt, or why it
 * failed. `late`: its time was over. */
void sample_child_end(struct sample_child *c, bool late, struct local_answer *out);

#endif
