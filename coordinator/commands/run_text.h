/* run_text.h: the text of a new run: a directory that is published already (docs/data.md), which is
 * taken as it is, or files, which are published into RUN_DIR/text. */
#ifndef RV_COORDINATOR_COMMANDS_RUN_TEXT_H
#define RV_COORDINATOR_COMMANDS_RUN_TEXT_H

#include "base/options.h"
#include "base/run_config.h"
#include "coordinator/store/run_dir.h"

struct run_text_options {
	char data[4096]; /* a list (RV_OPT_LIST); "": the run has no text of its own */
	char tokenizer[512], field[128], license[128], description[2048], mirrors[4096];
};

/* Writes the options, for a struct that holds the options at `offset`, with the table's end. */
enum { RUN_TEXT_OPTIONS = 7 };
void run_text_table(size_t offset, struct rv_option out[static RUN_TEXT_OPTIONS]);

/* Enters what the text decides into the run, where that has the defaults: tokenizer-hash, vocab,
 * holdout-every, and data-hash if it is published already. RV_E_INVALID, RV_E_RANGE: the run has
 * other values, or an option has no effect; and what manifest_read and tokenizer_open return. */
enum rv_err run_text_adopt(const struct run_text_options *o, struct run_config *run, struct rv_errtext *et);
/* Writes the license of the text: --license, or what a published text states; "": neither. */
void run_text_license(const struct run_text_options *o, char *out, size_t cap);
/* Writes the hosts of the text's mirrors, as far as there is room (mirror_hosts.h). */
void run_text_hosts(const struct run_text_options *o, char *out, size_t cap);
/* Opens all files that would be published, or checks the topmost page of what is. Returns what
 * publish_input_open and published_open return. */
enum rv_err run_text_check(const struct run_text_options *o, struct rv_errtext *et);
/* Publishes the files into RUN_DIR/text, with progress on stdout, or continues after an
 * interruption, and enters data-hash. `place`: where the text is, as an absolute path; "":
 * RUN_DIR/text, or there is none. Returns what publish_text returns. */
enum rv_err run_text_make(const struct run_text_options *o, const struct run_dir *d, struct run_config *run,
						  char place[static RUN_TEXT_BYTES], struct rv_errtext *et);

#endif
