/* settings.h: what a volunteer chose once and need not say again: options of rivulet-worker that its directory keeps.
 *
 * DIR/worker.conf, mode 0600: lines of `key = value`, and `# end` as the last one, so that a file that was cut short is
 * no smaller wish than was meant. It stands between the defaults and --config: whatever is given anew wins, and is kept
 * in its place; the default (`--max-up unlimited`) removes a line. Not kept: --dir, which names the place; --init,
 * which only the first start needs; --name, --data and --tokenizer, which member.conf remembers (membership.h).
 */
#ifndef RV_WORKER_OPTIONS_SETTINGS_H
#define RV_WORKER_OPTIONS_SETTINGS_H

#include "worker/options/options.h"

enum { SETTINGS_TEXT_BYTES = 4096, SETTINGS_SHOWN_BYTES = 512 };

/* rv_command.recall of a struct worker_options: reads what `dir` keeps. A directory without the file keeps nothing.
 * RV_E_INVALID, RV_E_RANGE, RV_E_IO: a file that is damaged, named, with what to do. */
enum rv_err settings_recall(void *opts, struct rv_errtext *et);
/* Keeps what differs from the defaults. RV_E_FULL, RV_E_IO; RV_E_RANGE: the texts are too long. */
enum rv_err settings_store(const struct worker_options *o, struct rv_errtext *et);
/* Writes "max-up = 1mbit, threads = 2": what the directory keeps, as far as `now` follows it; "": nothing. */
void settings_describe(const struct worker_options *now, char out[SETTINGS_SHOWN_BYTES]);

#endif
