/* train_options.c: the options of `rivulet train`, their checks, and the values that depend on the
 * machine. */
#include "lab/options/train_options.h"
#include "lab/methods/methods.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/hex.h"
#include "base/option_value.h"
#include "base/parallel.h"
#include "lab/methods/attack.h"
#include "lab/methods/lines.h"
#include "lab/methods/pace.h"
#include "lab/methods/preset.h"
#include "lab/options/idle.h"
#include "lab/run/text_source.h"
#include "net/download.h"
#include "train/eval_schedule.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIELD(f)      offsetof(struct train_options, f)
#define FIELD_SIZE(f) sizeof(((struct train_options *)0)->f)

#define LAB_METHOD(name, light, dark, about) "|" #name
static const char methods[] =
#include "lab/methods/methods.def"
	;
#undef LAB_METHOD

static const struct rv_option own_options[] = {
	{"method", RV_OPT_CHOICE, FIELD(method), 0, "diloco", 0, 0, methods + 1, "How workers are joined.", "Lab"},
	{"drop-sync", RV_OPT_DOUBLE, FIELD(drop_sync), 0, "0", 0, 1, NULL,
	 "Probability that a worker misses a round's averaging; `late` decides what becomes of its progress.", "Lab"},
	{"move-owners", RV_OPT_DOUBLE, FIELD(move_owners), 0, "0", 0, 1, NULL,
	 "Probability that a chunk has another owner than in the last round, which loses what mean-feedback kept of it.",
	 "Lab"},
	{"attackers", RV_OPT_INT, FIELD(attackers), 0, "0", 0, LAB_MAX_WORKERS, NULL,
	 "How many workers, the last ones, send what --attack says in place of their outer gradients, to compare --merge.",
	 "Lab"},
	{"attack", RV_OPT_STRING, FIELD(attack), FIELD_SIZE(attack), "", 0, 0, NULL,
	 "What attackers send: scale=NUMBER, their outer gradient times it (scale=-1 flips it, scale=0 sends zeros), or "
	 "noise=NUMBER, noise of that times its norm. Empty: what all send.",
	 "Lab"},
	{"speeds", RV_OPT_STRING, FIELD(speeds), FIELD_SIZE(speeds), "", 0, 0, NULL,
	 "How fast workers are, relative to each other, as in 1:1:0.5 (repeated for more workers). A round closes when all "
	 "are done, or grace-ms after min-workers are; `late` decides about the others' progress. Empty: all alike.",
	 "Lab"},
	{"dylu", RV_OPT_BOOL, FIELD(dylu), 0, "false", 0, 0, NULL,
	 "A worker takes as many of a round's steps as its speed allows while the fastest takes all (DyLU).", "Lab"},
	{"lines", RV_OPT_STRING, FIELD(lines), FIELD_SIZE(lines), "", 0, 0, NULL,
	 "What workers' lines carry, in both directions or as DOWN/UP, as in 100mbit:100mbit:20mbit/5mbit (repeated for "
	 "more workers), for slow-members and the modelled time of an exchange. Empty: no model.",
	 "Lab"},
	{"step-ms", RV_OPT_DOUBLE, FIELD(step_ms), 0, "100", 1e-3, 1e9, NULL,
	 "With speeds: milliseconds of an inner step of a worker of speed 1, for the modelled time of a round.", "Lab"},
	{"replicas-mode", RV_OPT_CHOICE, FIELD(replicas_mode), 0, "fixed-steps", 0, 0, "fixed-steps|fixed-tokens",
	 "fixed-tokens: batch is that of all workers together, each takes batch / workers; fixed-steps: each takes batch.",
	 "Lab"},
	{"workers", RV_OPT_INT, FIELD(workers), 0, "4", 1, LAB_MAX_WORKERS, NULL, "k: the number of workers.", "Lab"},
	{"data", RV_OPT_STRING, FIELD(data), FIELD_SIZE(data), NULL, 0, 0, NULL,
	 "The text to train on: a file, token shards (.bin), a directory or a 'pattern*' of either, or "
	 "https://URL#sha256=HEX.",
	 "Lab"},
	{"field", RV_OPT_STRING, FIELD(field), FIELD_SIZE(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL, DOCUMENTS_FIELD_HELP,
	 "Lab"},
	{"out", RV_OPT_STRING, FIELD(out), FIELD_SIZE(out), "runs/train", 0, 0, NULL,
	 "The run's directory: metrics, checkpoint, weights. A run that was stopped there is continued.", "Lab"},
	{"name", RV_OPT_STRING, FIELD(name), FIELD_SIZE(name), "", 0, 0, NULL,
	 "The run's name in reports; empty: the directory's name.", "Lab"},
	{"device", RV_OPT_STRING, FIELD(device), FIELD_SIZE(device), "auto", 0, 0, NULL, DEVICE_HELP, "Lab"},
	{"isa", RV_OPT_ENUM, FIELD(isa), FIELD_SIZE(isa), "auto", 0, 0, "auto|avx512|avx2|neon|portable",
	 "Highest instruction set to use on the CPU.", "Lab"},
	{"recompute", RV_OPT_CHOICE, FIELD(recompute), 0, "none", 0, 0, RECOMPUTE_NAMES,
	 "What is computed again in the backward pass, for less memory. gelu, norms: about as fast; block: all inside a "
	 "block, much less memory, a third more work. The same bits on a processor.",
	 "Lab"},
	{"micro-batch", RV_OPT_INT, FIELD(micro_batch), 0, "0", 0, 1 << 20, NULL,
	 "Sequences that are computed at a time, of the batch * grad-accum of a step; fewer take less memory and sum in "
	 "another order. 0: batch.",
	 "Lab"},
	{"logits", RV_OPT_INT, FIELD(logits), 0, "0", 0, 1 << 30, NULL,
	 "With a GPU: rows of logits that exist at a time, a multiple of 256. 0: as many as memory allows, up to all of a "
	 "micro-batch.",
	 "Lab"},
	{"moments", RV_OPT_CHOICE, FIELD(moments), 0, "fp32", 0, 0, MOMENTS_NAMES,
	 "Adam's moments in fp32, or in 8 bits: 6 bytes less per parameter, about the same loss.", "Lab"},
	{"offload", RV_OPT_CHOICE, FIELD(offload), 0, "no", 0, 0, OFFLOAD_NAMES,
	 "With a GPU: weights in fp32 and moments in the computer's memory, and the optimizer's steps there. Without one "
	 "it "
	 "changes nothing.",
	 "Lab"},
	{"zero", RV_OPT_CHOICE, FIELD(zero), 0, "1", 0, 0, ZERO_NAMES,
	 "With several GPUs: what they divide among them. 1: moments; 2: gradients too; 3: weights too, gathered layer by "
	 "layer for every pass.",
	 "Lab"},
	MEMORY_SHORT_OPTION(FIELD(short_of_memory), "Lab"),
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, PARALLEL_MAX_THREADS, NULL,
	 "Threads inside a replica; part of what makes results bit-identical. 0: one for diloco, all cores for ddp.",
	 "Lab"},
	{"parallel", RV_OPT_INT, FIELD(parallel), 0, "0", 0, PARALLEL_MAX_THREADS, NULL,
	 "Replicas that train at the same time; changes speed only. 0: as many as the cores allow.", "Lab"},
	{"eval-every", RV_OPT_INT, FIELD(eval_every), 0, EVAL_EVERY_DEFAULT, EVAL_EVERY_CHOSEN, 1000000, NULL,
	 "Rounds between two evaluations; the end is evaluated in any case. 0: only the end; -1: so that evaluations "
	 "take about a tenth of the time, but at least four.",
	 "Lab"},
	{"eval-tokens", RV_OPT_INT, FIELD(eval_tokens), 0, EVAL_TOKENS_DEFAULT, 0, 1e12, NULL, EVAL_TOKENS_HELP, "Lab"},
	{"save-every", RV_OPT_INT, FIELD(save_every), 0, "10", 1, 1000000, NULL, "Rounds between two checkpoints.", "Lab"},
	{"on-record-gap", RV_OPT_CHOICE, FIELD(on_record_gap), 0, "keep", 0, 0, "keep|anew",
	 "If metrics.jsonl lacks rounds that the run's checkpoint has done. keep: continues, with a warning; anew: trains "
	 "from the beginning.",
	 "Lab"},
	{"eval-replicas", RV_OPT_BOOL, FIELD(eval_replicas), 0, "false", 0, 0, NULL,
	 "At the end also evaluate the mean of the replicas and one of them, as they were before the last outer step.",
	 "Lab"},
	{"run-hash", RV_OPT_STRING, FIELD(run_hash), FIELD_SIZE(run_hash), "", 0, 0, NULL,
	 "64 hex digits: the run hash of a real run, to end in the same state hash; empty: that of a run without an id.",
	 "Lab"},
	RUN_FILES_OPTIONS(FIELD(files)),
	{.name = NULL},
};

void train_options_table(struct rv_option *table, int cap) {
	run_config_table(own_options, table, cap);
}

enum rv_err train_options_read_files(void *opts, struct rv_errtext *et) {
	struct train_options *o = opts;
	return run_files_adopt(&o->files, &o->run, et);
}

/* Returns the hash of a run without a coordinator, hence without an id. */
static struct rv_hash nameless_run_hash(const struct run_config *c) {
	enum { TEXT_BYTES = 8192 };
	const uint8_t no_id[RV_RUN_ID_BYTES] = {0};
	char text[TEXT_BYTES];
	size_t n = rv_options_print(run_config_options, c, text, sizeof text);
	RV_ASSERT(n < sizeof text);
	return rv_run_hash(no_id, text);
}

/* One replica computes what all workers would. */
static bool is_ddp(const struct train_options *o) {
	return !lab_methods[o->method]->averages;
}

static bool splits_batch(const struct train_options *o) {
	return o->replicas_mode == REPLICAS_FIXED_TOKENS;
}

struct lab_config train_options_resolve(const struct train_options *o) {
	int threads = o->threads > 0 ? (int)o->threads : is_ddp(o) ? parallel_cores() : 1;
	int parallel = o->parallel > 0 ? (int)o->parallel : parallel_cores() / threads;
	struct lab_config c = {
		.run = o->run,
		.method = lab_methods[o->method],
		.workers = (int)o->workers,
		.threads = threads,
		.parallel = parallel > 0 ? parallel : 1,
		.isa = o->isa,
		.drop_sync = o->drop_sync,
		.move_owners = o->move_owners,
		.dylu = o->dylu,
		.step_ms = o->speeds[0] ? o->step_ms : 0,
		.eval_tokens = (uint64_t)o->eval_tokens,
		.eval_replicas = o->eval_replicas,
		.savings = {.micro_batch = (int)o->micro_batch,
					.logits_rows = (int)o->logits,
					.recompute = (enum recompute)o->recompute,
					.moments = (enum moments)o->moments,
					.offload = o->offload,
					.zero = (enum zero)o->zero},
	};
	(void)pace_parse_speeds(o->speeds, c.speeds, NULL);
	(void)lines_parse(o->lines, c.lines, NULL);
	(void)attack_parse(o->attack, &c.attack, NULL);
	c.attack.workers = (int)o->attackers;
	if (splits_batch(o))
		c.run.batch /= o->workers;
	method_configure(&c);
	(void)device_parse(o->device, &c.device, NULL);
	if (o->run_hash[0])
		(void)rv_hex_decode(o->run_hash, c.run_hash.b, RV_HASH_BYTES);
	else
		c.run_hash = nameless_run_hash(&c.run);
	return c;
}

static struct lab_config configured_by_method(const struct train_options *o) {
	struct lab_config c = {.run = o->run, .method = lab_methods[o->method], .workers = (int)o->workers};
	method_configure(&c);
	return c;
}

struct train_options train_options_as_run(const struct train_options *o) {
	const struct run_config run = configured_by_method(o).run;
	struct train_options out = *o;
	for (const struct rv_option *opt = run_config_options; opt->name; opt++) {
		char value[RV_OPTION_TEXT_BYTES];
		rv_option_value_print(opt, &run, value);
		if (!method_idle(lab_methods[o->method], opt->name))
			(void)rv_option_value_parse(opt, &out.run, value, NULL);
	}
	return out;
}

/* Refuses policies that only a round of lab/methods/synchronous.h supports. */
static enum rv_err check_round(const struct train_options *o, const struct lab_method *m, struct rv_errtext *et) {
	const struct lab_config configured = configured_by_method(o);
	bool streams = o->run.fragments > 1 || run_config_overlap(&o->run) > 0;
	if (streams && !m->synchronous)
		return rv_fail(et, RV_E_INVALID,
					   "fragments, overlap-steps and updates belong to --method diloco and its kind, not to %s",
					   m->name);
	if ((o->drop_sync > 0 || o->speeds[0] || o->lines[0]) &&
		(run_config_overlap(&configured.run) > 0 || !m->synchronous))
		return rv_fail(et, RV_E_INVALID,
					   "%s belongs to --method diloco and its kind, without overlap-steps and with updates = waited",
					   o->speeds[0]  ? "speeds"
					   : o->lines[0] ? "lines"
									 : "drop-sync");
	return run_config_check_updates(&configured.run, et); /* with the outer optimizer that the method prescribes */
}

bool train_options_share_text(const struct train_options *o, struct rv_errtext *what) {
	if (o->workers <= o->run.data_shards || o->run.data_hash[0])
		return false;
	(void)rv_fail(what, RV_E_RANGE,
				  "%lld workers share %lld parts of the text: some read the same and train alike; --data-shards %lld "
				  "gives each its own",
				  (long long)o->workers, (long long)o->run.data_shards, (long long)o->workers);
	return true;
}

bool train_options_only_warm_up(const struct train_options *o, struct rv_errtext *what) {
	const int64_t steps = o->run.rounds * o->run.steps_per_round;
	if (o->run.warmup_steps < steps)
		return false;
	(void)rv_fail(what, RV_E_RANGE,
				  "warmup-steps = %" PRId64 " and the run has %" PRId64
				  " inner steps: the learning rate never reaches lr = %g; warm up for fewer",
				  o->run.warmup_steps, steps, o->run.lr);
	return true;
}

static enum rv_err check_attack(const struct train_options *o, const struct lab_method *m, struct rv_errtext *et) {
	struct lab_attack attack;
	RV_TRY(attack_parse(o->attack, &attack, et));
	if ((o->attackers > 0) != (attack.kind != LAB_ATTACK_NONE))
		return rv_fail(et, RV_E_INVALID, "attackers = %" PRId64 " with attack = %s: give both, as in %s", o->attackers,
					   o->attack[0] ? o->attack : "nothing", "--attackers 1 --attack scale=-4");
	if (o->attackers > o->workers)
		return rv_fail(et, RV_E_RANGE, "attackers = %" PRId64 ": of workers = %" PRId64, o->attackers, o->workers);
	if (o->attackers > 0 && !m->synchronous)
		return rv_fail(et, RV_E_INVALID, "attackers belongs to --method diloco and its kind, not to %s", m->name);
	return RV_OK;
}

static enum rv_err check_method(const struct train_options *o, struct rv_errtext *et) {
	const struct lab_method *m = lab_methods[o->method];
	double speeds[LAB_MAX_WORKERS];
	struct slow_line lines[LAB_MAX_WORKERS];
	RV_TRY(check_round(o, m, et));
	RV_TRY(pace_parse_speeds(o->speeds, speeds, et));
	RV_TRY(lines_parse(o->lines, lines, et));
	RV_TRY(check_attack(o, m, et));
	if (o->dylu && !o->speeds[0])
		return rv_fail(et, RV_E_INVALID, "dylu without speeds changes nothing: give --speeds, as in 1:1:0.5");
	if (o->run.round_ms > 0 && !o->speeds[0])
		return rv_fail(et, RV_E_INVALID, "round-ms: the lab models time: use --speeds and --step-ms");
	const bool quorum = m->synchronous; /* others have none: a run's configuration serves for its baseline of one */
	if (quorum && o->run.min_workers > o->workers)
		return rv_fail(et, RV_E_RANGE,
					   "min-workers = %" PRId64 ": a round of workers = %" PRId64 " never has enough, and never closes",
					   o->run.min_workers, o->workers);
	if (splits_batch(o) && o->run.batch % o->workers != 0)
		return rv_fail(et, RV_E_RANGE,
					   "replicas-mode fixed-tokens: batch = %" PRId64 " is not a multiple of workers = %" PRId64,
					   o->run.batch, o->workers);
	return method_check(m, &o->run, (int)o->workers, et);
}

enum rv_err train_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct train_options *o = opts;
	struct device_choice device;
	uint8_t hash[RV_HASH_BYTES];
	RV_TRY(global_check_run(&o->run, et));
	RV_TRY(device_parse(o->device, &device, et));
	RV_TRY(check_method(o, et));
	if (o->run_hash[0] && !rv_hex_decode(o->run_hash, hash, sizeof hash))
		return rv_fail(et, RV_E_INVALID, "run-hash = %.70s: must be %d hex digits", o->run_hash, 2 * RV_HASH_BYTES);
	/* Skips the size check: only fetching or tokenizing shows whether there is enough text. */
	if (download_is_remote(o->data) || o->run.tokenizer_hash[0])
		return RV_OK;
	struct dataset *data;
	RV_TRY(
		text_source_open(&(struct text_source){.path = o->data, .field = o->field, .signals = -1}, &o->run, &data, et));
	dataset_close(data);
	return RV_OK;
}
