/* train_options.h: the options of `rivulet train`. */
#ifndef RV_LAB_TRAIN_OPTIONS_H
#define RV_LAB_TRAIN_OPTIONS_H

#include "base/program.h"
#include "lab/run/lab_run.h"
#include "lab/run/run_files.h"
#include "train/memory/check.h"
#include "train/text/documents/documents.h"

enum { TRAIN_OPTIONS_MAX = 112 };

enum { RECORD_GAP_KEEP, RECORD_GAP_ANEW };            /* on-record-gap */
enum { REPLICAS_FIXED_STEPS, REPLICAS_FIXED_TOKENS }; /* replicas-mode */

struct train_options {
	struct run_config run; /* first: run_config's table is used unchanged */
	int method;            /* enum lab_method_choice */
	int64_t workers;
	char data[512], field[DOCUMENTS_FIELD_BYTES], out[512], name[64];
	struct run_files files;
	char device[DEVICE_TEXT_BYTES], isa[16], run_hash[2 * RV_HASH_BYTES + 1];
	int64_t threads, parallel; /* 0: chosen by this program */
	int64_t eval_every, eval_tokens, save_every;
	int recompute;       /* enum recompute */
	int64_t micro_batch; /* 0: run.batch */
	int64_t logits;      /* rows; 0: as many as there is room for */
	int moments;         /* enum moments */
	int offload;         /* bool */
	int zero;            /* enum zero */
	int short_of_memory; /* enum memory_short */
	int on_record_gap, replicas_mode;
	double drop_sync, move_owners;
	int64_t attackers;
	char attack[32];
	char speeds[512];
	char lines[512];
	double step_ms;
	bool dylu;
	bool eval_replicas;
};

/* Fills `table` with run_config's options, then these. Asserts that they fit `cap`. */
void train_options_table(struct rv_option *table, int cap);
/* Reads the files of --tokenizer and --init and completes the run's configuration from them. The
 * faults of their readers. */
enum rv_err train_options_read_files(void *opts, struct rv_errtext *et);
/* Checks rules over several options, and that the data can be read. RV_E_INVALID, RV_E_RANGE,
 * RV_E_NOTFOUND name the option. `args` is not used. */
enum rv_err train_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et);
/* Returns true if several workers would read the same part of the text, and so train alike: more
 * workers than data-shards. Writes that and the remedy to `what`. */
bool train_options_share_text(const struct train_options *o, struct rv_errtext *what);
/* Returns true if the run ends before its warm-up does: the learning rate never reaches lr. Writes
 * that to `what`. */
bool train_options_only_warm_up(const struct train_options *o, struct rv_errtext *what);
/* Returns the options as a run needs them, with defaults that depend on the machine resolved. They
 * must have been checked. The device is only parsed; device_choose checks the machine. */
struct lab_config train_options_resolve(const struct train_options *o);
/* Returns the options with those that the method sets (outer of fedavg, updates and eager-share of
 * eager, ...) replaced: they describe the run, and give the same run again. They must have been
 * checked. */
struct train_options train_options_as_run(const struct train_options *o);

#endif
