/* settings.h: options of rivulet-worker that its directory remembers, so that a volunteer gives
 * them once.
 *
 * DIR/worker.conf, mode 0600: lines of `key = value`, and `# end` as the last one, so that a
 * truncated file is noticed. It overrides the defaults; --config and options override it and are
 * remembered in turn; giving the default (`--max-up unlimited`) removes a line. Not remembered:
 * --dir, which names the place; --init, which only the first start needs; --name, --data and
 * --tokenizer, which member.conf remembers (membership.h). */
#ifndef RV_WORKER_OPTIONS_SETTINGS_H
#define RV_WORKER_OPTIONS_SETTINGS_H

#include "worker/options/options.h"

enum { SETTINGS_TEXT_BYTES = 4096, SETTINGS_SHOWN_BYTES = 512 };

/* Reads what opts->dir remembers (rv_command.recall of a struct worker_options); nothing without
 * the file. RV_E_INVALID, RV_E_RANGE, RV_E_IO: the file is damaged; the text names it and what to
 * do. */
enum rv_err settings_recall(void *opts, struct rv_errtext *et);
/* Writes what differs from the defaults. RV_E_FULL, RV_E_IO; RV_E_RANGE: the texts are too long. */
enum rv_err settings_store(const struct worker_options *o, struct rv_errtext *et);
/* Sets one remembered option to `value`, as on the command line, without storing it. RV_E_INVALID,
 * RV_E_RANGE: there is none of that name, or not of that value. */
enum rv_err settings_set(struct worker_options *o, const char *name, const char *value, struct rv_errtext *et);
/* Returns true if both have the same value of that option. */
bool settings_same(const struct worker_options *a, const struct worker_options *b, const char *name);
/* Writes "max-up = 1mbit, threads = 2": the remembered options that `now` uses; "": none. */
void settings_describe(const struct worker_options *now, char out[SETTINGS_SHOWN_BYTES]);

#endif
