/* replay.c: `rivulet replay`: repeats in one process what real workers did. */
#include "lab/worker_files/replay.h"
#include "base/hex.h"
#include "base/round_number.h"
#include "lab/commands/commands.h"
#include "lab/methods/methods.h"
#include "lab/run/console.h"
#include "lab/run/lab_run.h"
#include "lab/run/text_source.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/files/initial_weights.h"
#include "train/text/documents/documents.h"
#include "train/text/run_tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct replay_options {
	char data[512], field[DOCUMENTS_FIELD_BYTES], tokenizer[512], init[512];
	int64_t threads, without;
};

#define FIELD(f) offsetof(struct replay_options, f)
#define CAP(f)   sizeof(((struct replay_options *)0)->f)

static const struct rv_option options[] = {
	{"data", RV_OPT_STRING, FIELD(data), CAP(data), NULL, 0, 0, NULL,
	 "The text that the workers trained on. Of a run with data-hash: the published directory, or a copy of it; a "
	 "worker's DIR/data holds parts of it only.",
	 "Replay"},
	{"field", RV_OPT_STRING, FIELD(field), CAP(field), DOCUMENTS_FIELD_DEFAULT, 0, 0, NULL, DOCUMENTS_FIELD_HELP,
	 "Replay"},
	{"tokenizer", RV_OPT_STRING, FIELD(tokenizer), CAP(tokenizer), "bytes", 0, 0, NULL,
	 "The tokenizer.json or tiktoken file of the run, if it has one.", "Replay"},
	{"init", RV_OPT_STRING, FIELD(init), CAP(init), "", 0, 0, NULL,
	 "The weights that the run started from, if it had any.", "Replay"},
	{"threads", RV_OPT_INT, FIELD(threads), 0, "0", 0, 256, NULL,
	 "Threads inside a replica; part of what makes results bit-identical. 0: as the workers had.", "Replay"},
	{"without", RV_OPT_INT, FIELD(without), 0, "-1", -1, UINT32_MAX - 1, NULL,
	 "A member in doubt: prints the held-out loss of each round with its contribution and without. Contributions "
	 "are made again from the text: of a member that sent another one the replay ends, and names the round. -1: "
	 "nobody.",
	 "Replay"},
	{.name = NULL},
};

struct session {
	const struct replay_options *opts;
	struct console console;
	struct trace_record traces[LAB_MAX_WORKERS];
	uint32_t members[LAB_MAX_WORKERS];
	enum dtype dtypes[LAB_MAX_WORKERS];
	struct device_choice devices[LAB_MAX_WORKERS];
	struct savings savings[LAB_MAX_WORKERS];
	int n;
	struct worker_rounds first; /* of the first directory: the run's configuration */
	struct tokenizer *tokenizer;
	struct dataset *data;
	struct lab_run *run;
	struct replay *replay;
	double with, without; /* sums over n_without rounds */
	int n_without;
};

static enum rv_err read_traces(struct session *s, const struct rv_args *args, struct rv_errtext *et) {
	if (args->n > LAB_MAX_WORKERS)
		return rv_fail(et, RV_E_RANGE, "%d directories, at most %d", args->n, LAB_MAX_WORKERS);
	for (; s->n < args->n; s->n++) {
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%s/" TRACE_FILE, args->at[s->n]);
		RV_TRY(trace_read(path, &s->traces[s->n], et));
		s->members[s->n] = s->traces[s->n].member;
	}
	return RV_OK;
}

/* Checks that all directories belong to the run of the first. */
static enum rv_err check_same_run(const struct session *s, const struct rv_args *args, struct rv_errtext *et) {
	for (int i = 1; i < args->n; i++) {
		struct worker_rounds w;
		RV_TRY(worker_rounds_open(args->at[i], &w, et));
		bool same = rv_hash_equal(&w.store.cfg.run_hash, &s->first.store.cfg.run_hash);
		worker_rounds_release(&w);
		if (!same)
			return rv_fail(et, RV_E_INVALID, "%s is of another run than %s", args->at[i], args->at[0]);
	}
	return RV_OK;
}

/* Chooses each worker's device: a GPU's bits are not the processor's. */
static enum rv_err choose_devices(struct session *s, struct rv_errtext *et) {
	for (int i = 0; i < s->n; i++) {
		const struct trace_record *t = &s->traces[i];
		if (t->device_changed)
			return rv_fail(et, RV_E_UNSUPPORTED,
						   "member %u computed on devices of two kinds (it was moved): replay needs workers of one "
						   "kind only",
						   t->member);
		enum rv_err e = device_choose(t->device[0] ? t->device : "cpu", &s->devices[i], et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "member %u computed on %s, and only such a device reproduces its bits",
								   t->member, t->device);
	}
	return RV_OK;
}

/* Chooses each worker's dtype of products: with dtype = auto it differs by machine. */
static enum rv_err choose_dtypes(struct session *s, const struct lab_config *cfg, struct rv_errtext *et) {
	for (int i = 0; i < s->n; i++) {
		const struct trace_record *t = &s->traces[i];
		struct run_config run = cfg->run;
		if (t->dtype_changed)
			return rv_fail(et, RV_E_UNSUPPORTED,
						   "member %u computed in fp32 and in bf16 (it was moved to another machine or device): replay "
						   "needs workers of one dtype",
						   t->member);
		if (t->dtype != RUN_DTYPE_AUTO)
			run.dtype = t->dtype;
		s->dtypes[i] = run_config_compute(&run, &s->devices[i], cfg->isa);
	}
	return RV_OK;
}

static enum rv_err new_run(struct session *s, struct rv_errtext *et) {
	const struct run_config *run = &s->first.run;
	const struct replay_options *o = s->opts;
	float *theta = NULL;
	size_t n;
	struct lab_config cfg = {.run = *run,
							 .method = &lab_method_diloco,
							 .run_hash = s->first.store.cfg.run_hash,
							 .workers = s->n,
							 .members = s->members,
							 .threads = o->threads > 0 ? (int)o->threads : s->traces[0].threads,
							 .parallel = 1,
							 .isa = "auto",
							 .devices = s->devices,
							 .savings_of = s->savings,
							 .compute = s->dtypes};
	RV_TRY(device_choose("cpu", &cfg.device, et));
	RV_TRY(choose_devices(s, et));
	RV_TRY(choose_dtypes(s, &cfg, et));
	for (int i = 0; i < s->n; i++) /* of its first process: later ones are followed */
		s->savings[i] = s->traces[i].savings;
	RV_TRY(run_tokenizer_open(run, o->tokenizer, &s->tokenizer, et));
	const struct text_source source = {.path = o->data,
									   .field = o->field,
									   .tokenizer = s->tokenizer,
									   .events = s->console.events,
									   .signals = s->console.signals};
	RV_TRY(text_source_open(&source, run, &s->data, et));
	if (run->init_hash[0] && !o->init[0])
		return rv_fail(et, RV_E_INVALID, "the run started from given weights: name them with --init");
	if (o->init[0])
		RV_TRY(initial_weights_load(o->init, run, &theta, &n, et));
	cfg.initial_theta = theta;
	enum rv_err e = lab_run_new(&cfg, s->data, &s->run, et);
	free(theta);
	return e;
}

static enum rv_err open_all(struct session *s, const struct rv_args *args, struct rv_errtext *et) {
	RV_TRY(read_traces(s, args, et));
	RV_TRY(worker_rounds_open(args->at[0], &s->first, et));
	RV_TRY(check_same_run(s, args, et));
	RV_TRY(new_run(s, et));
	RV_TRY(replay_new(s->run, s->traces, s->n, &s->replay, et));
	return s->opts->without < 0 ? RV_OK : replay_leave_out(s->replay, (uint32_t)s->opts->without, et);
}

/* Logs what the round that was replayed last would have come to without the member in doubt. */
static void print_without(struct session *s, uint64_t round) {
	struct replay_without w;
	if (!replay_left_out(s->replay, &w))
		return;
	s->with += w.with;
	s->without += w.without;
	s->n_without++;
	rv_progress_clear(s->console.events);
	rv_event(s->console.events, RV_INFO, "without",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_int("member", s->opts->without),
					   rv_field_double("with", w.with), rv_field_double("without", w.without)),
			 "round %" PRIu64 ": held-out loss %.4f with member %" PRId64 ", %.4f without: %s", round_number(round),
			 w.with, s->opts->without, w.without, w.without < w.with ? "better without" : "better with");
}

static void print_verdict(struct session *s) {
	if (s->opts->without < 0)
		return;
	if (s->n_without == 0) {
		rv_event(s->console.events, RV_INFO, "without_all", RV_FIELDS(rv_field_int("rounds", 0)),
				 "member %" PRId64 " had no part in these rounds, or was alone in them", s->opts->without);
		return;
	}
	const double with = s->with / s->n_without, without = s->without / s->n_without;
	rv_event(s->console.events, RV_INFO, "without_all",
			 RV_FIELDS(rv_field_int("rounds", s->n_without), rv_field_double("with", with),
					   rv_field_double("without", without)),
			 "over %d rounds the held-out loss is %.4f with member %" PRId64
			 ", %.4f if each of them had been without it",
			 s->n_without, with, s->opts->without, without);
}

static enum rv_err replay_all(struct session *s, struct rv_errtext *et) {
	for (uint64_t round = 0; round < replay_rounds(s->replay); round++) {
		if (!console_progress(&s->console, "replay", round, replay_rounds(s->replay), "round", ""))
			return rv_fail(et, RV_E_CANCELLED, "stopped in round %" PRIu64, round_number(round));
		RV_TRY(replay_round(s->replay, et));
		print_without(s, round);
	}
	return RV_OK;
}

static void print_result(struct session *s, const struct replay_counted *read) {
	char chain[2 * RV_HASH_BYTES + 1], state[2 * RV_HASH_BYTES + 1];
	const struct global_state *g = &s->run->global;
	struct rv_hash full = global_full_hash(g);
	rv_hex_encode(g->chain.b, RV_HASH_BYTES, chain);
	rv_hex_encode(full.b, RV_HASH_BYTES, state);
	rv_progress_clear(s->console.events);
	rv_event(s->console.events, RV_INFO, "replayed",
			 RV_FIELDS(rv_field_int("rounds", (int64_t)g->round), rv_field_int("workers", s->n),
					   rv_field_int("steps", (int64_t)atomic_load(&s->run->steps_done)), rv_field_str("chain", chain),
					   rv_field_str("state", state), rv_field_int("sequences", (int64_t)read->sequences),
					   rv_field_int("read_until", (int64_t)read->until), rv_field_int("passes", (int64_t)read->passes)),
			 "%" PRIu64 " rounds of %d workers, %" PRIu64
			 " inner steps: every state hash is the recorded one; chain %s, state %s",
			 g->round, s->n, (uint64_t)atomic_load(&s->run->steps_done), chain, state);
}

static enum rv_err run_replay(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory for a replay");
	s->opts = opts;
	enum rv_err e = console_open(&s->console, stdout, et);
	if (e == RV_OK)
		e = open_all(s, args, et);
	if (e == RV_OK)
		e = replay_all(s, et);
	struct replay_counted read;
	if (e == RV_OK)
		e = replay_count(s->replay, &read, et);
	if (e == RV_OK)
		print_result(s, &read);
	if (e == RV_OK)
		print_verdict(s);
	replay_free(s->replay);
	lab_run_free(s->run);
	dataset_close(s->data);
	tokenizer_free(s->tokenizer);
	worker_rounds_release(&s->first);
	for (int i = 0; i < s->n; i++)
		trace_record_release(&s->traces[i]);
	console_close(&s->console);
	free(s);
	return e;
}

const struct rv_command replay_command = {
	.name = "replay",
	.synopsis = "DIR...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Repeat a real run in one process, and compare every round's state hash.",
	.details =
		"Each DIR is a worker's directory; all workers that ever took part are needed. Their trace.jsonl holds which\n"
		"steps each took, the members of each round, who made which means with what residual, and who came late,\n"
		"was killed, restarted or caught up. Ends with an error that names the round where the bits differ. A GPU\n"
		"worker is replayed on a GPU: the same model of it, and with RIVULET_CUDA_DETERMINISTIC=1 here and there, as\n"
		"products otherwise use the algorithm that was fastest.",
	.options = options,
	.opts_bytes = sizeof(struct replay_options),
	.run = run_replay,
};
