/* train_options.h: what `rivulet train` can be told. */
#ifndef RV_LAB_TRAIN_OPTIONS_H
#define RV_LAB_TRAIN_OPTIONS_H

#include "base/program.h"
#include "lab/run/lab_run.h"
#include "lab/run/run_files.h"
#include "train/memory/check.h"

enum { TRAIN_OPTIONS_MAX = 96 };

enum { RECORD_GAP_KEEP, RECORD_GAP_ANEW };            /* on-record-gap */
enum { REPLICAS_FIXED_STEPS, REPLICAS_FIXED_TOKENS }; /* replicas-mode */

struct train_options {
	struct run_config run; /* first: run_config's table is used as it is */
	char method[16];
	int64_t workers;
	char data[512], out[512], name[64];
	struct run_files files;
	char device[DEVICE_TEXT_BYTES], isa[16], run_hash[2 * RV_HASH_BYTES + 1];
	int64_t threads, parallel; /* 0: chosen */
	int64_t eval_every, eval_tokens, save_every;
	int recompute;       /* enum recompute */
	int short_of_memory; /* enum memory_short */
	int on_record_gap, replicas_mode;
	double drop_sync;
	char speeds[512];
	double step_ms;
	bool dylu;
	bool eval_replicas;
};

/* run_config's options, then these. Asserts that they fit. */
void train_options_table(struct rv_option *table, int cap);
/* What --tokenizer and --init say of the run goes into its configuration. Reads those files, and
 * refuses what their readers do. */
enum rv_err train_options_read_files(void *opts, struct rv_errtext *et);
/* What spans several options, and that the data can be read. RV_E_INVALID, RV_E_RANGE, RV_E_NOTFOUND name the option.
 * `args` is not used. */
enum rv_err train_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et);
/* True when several workers would read the same part of the text, and so train alike: more workers than data-shards.
 * `what` says so, and what helps. */
bool train_options_share_text(const struct train_options *o, struct rv_errtext *what);
/* True when the warm-up is not over when the run is: the learning rate never comes to lr. `what` says so. */
bool train_options_only_warm_up(const struct train_options *o, struct rv_errtext *what);
/* The options as a run needs them, defaults that depend on the machine resolved. They must have been checked. The
 * device is what the words say; device_choose finds out what there is. */
struct lab_config train_options_resolve(const struct train_options *o);
/* The options with what the method settles (outer of fedavg, updates and eager-share of eager, ...) in the place of
 * what was given: they say what runs, and given again make the same run. They must have been checked. */
struct train_options train_options_as_run(const struct train_options *o);

#endif
