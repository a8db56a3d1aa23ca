/* train.c: `rivulet train`: one run, with its directory, its record, its progress and its
 * interruptions. */
#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/version.h"
#include "lab/commands/commands.h"
#include "lab/options/idle.h"
#include "lab/options/train_difference.h"
#include "lab/options/train_options.h"
#include "lab/run/checkpoint_pair.h"
#include "lab/run/console.h"
#include "lab/run/lab_memory.h"
#include "lab/run/loss_text.h"
#include "lab/run/record_gap.h"
#include "lab/run/text_source.h"
#include "train/eval_schedule.h"
#include "train/files/initial_weights.h"
#include "train/files/weights.h"
#include "train/fp32_notice.h"
#include "train/memory/choose.h"
#include "train/memory/report.h"
#include "train/metrics.h"
#include "train/text/run_tokenizer.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_TEXT_BYTES = 16384 };

struct session {
	const struct train_options *opts;
	struct rv_option *table;
	struct console console;
	int lock;
	struct tokenizer *tokenizer; /* NULL: bytes */
	struct dataset *data;
	struct lab_run *run;
	struct rv_json_lines *metrics;
	int64_t started_us;     /* of a continued run: as if it had never stopped */
	uint64_t started_steps; /* of all replicas, when this process began: for the rate */
	double heldout;         /* of the last evaluation; NaN: none in this process */
	struct data_content content;
	struct memory_plan memory;
};

static void path_in(const struct session *s, const char *file, char out[static PATH_MAX]) {
	snprintf(out, PATH_MAX, "%s/%s", s->opts->out, file);
}

/* Returns the time that the run has taken, without the time between two processes. */
static int64_t wall_us(const struct session *s) {
	return rv_clock_monotonic_us() - s->started_us;
}

static const char *run_name(const struct train_options *o) {
	const char *slash = strrchr(o->out, '/');
	return o->name[0] ? o->name : slash && slash[1] ? slash + 1 : o->out;
}

/* Draws the progress line while replicas train, and watches for Ctrl-C. */
static void tick(void *ctx) {
	struct session *s = ctx;
	const struct run_config *c = &s->run->cfg.run;
	uint64_t per_replica = (uint64_t)c->rounds * (uint64_t)c->steps_per_round;
	char note[96];
	int n = snprintf(note, sizeof note, "round %" PRIu64 "/%" PRId64, s->run->rounds_done + 1, c->rounds);
	if (!isnan(s->heldout))
		snprintf(note + n, sizeof note - (size_t)n, "  held-out %s", loss_text(s->heldout).text);
	if (!console_progress(&s->console, run_name(s->opts), atomic_load(&s->run->steps_done),
						  per_replica * (uint64_t)s->run->n_replicas, "step", note))
		lab_run_stop(s->run);
}

static enum rv_err write_config(const struct session *s, struct rv_errtext *et) {
	char path[PATH_MAX], text[CONFIG_TEXT_BYTES];
	const struct train_options as_run = train_options_as_run(s->opts);
	size_t n = (size_t)snprintf(text, sizeof text, "# rivulet %s, text %s\n", rv_version(), s->content.text);
	n += rv_options_print(s->table, &as_run, text + n, sizeof text - n);
	if (n >= sizeof text)
		return rv_fail(et, RV_E_RANGE, "configuration of %zu bytes, at most %d", n, CONFIG_TEXT_BYTES);
	path_in(s, "run.conf", path);
	return rv_file_write_atomic(path, text, n, 0644, et);
}

static enum rv_err write_run_line(const struct session *s, struct rv_errtext *et) {
	const struct lab_config *c = &s->run->cfg;
	return metrics_write_run(s->metrics,
							 &(struct metrics_run){
								 .name = run_name(s->opts),
								 .role = "lab",
								 .method = c->method->name,
								 .codec = c->method->codec ? c->method->codec : codec_facts[c->run.codec].name,
								 .outer = c->method->outer ? c->method->outer : outer_facts[c->run.outer].name,
								 .workers = (uint32_t)c->workers,
								 .n_params = replica_n_params(s->run->replicas[0]),
								 .rounds = (uint64_t)c->run.rounds,
								 .steps_per_round = (uint64_t)c->run.steps_per_round,
								 .tokens_per_step = (uint64_t)(c->run.batch * c->run.grad_accum * c->run.context),
								 .payload_bytes = c->method->payload_bytes(s->run),
								 .device = s->run->devices[0].description,
								 .data = s->content.text,
								 .threads = c->threads,
								 .heldout_tokens = replica_eval_tokens(s->run->replicas[0], 0),
							 },
							 et);
}

/* Chooses the device. By default replicas on one GPU take turns: they share its memory and
 * processors. */
static enum rv_err choose_device(struct session *s, struct lab_config *c, struct rv_errtext *et) {
	RV_TRY(device_choose(s->opts->device, &c->device, et));
	if (device_is_gpu(&c->device) && s->opts->parallel == 0)
		c->parallel = 1;
	if (c->device.why_not_gpu[0])
		rv_event(s->console.events, RV_INFO, "no_gpu", RV_FIELDS(rv_field_str("why", c->device.why_not_gpu)),
				 "on the CPU: %s", c->device.why_not_gpu);
	const char *libraries = device_libraries(&c->device);
	if (libraries)
		rv_event(s->console.events, RV_INFO, "gpu_libraries", RV_FIELDS(rv_field_str("found", libraries)),
				 "GPU libraries: %s", libraries);
	return RV_OK;
}

static bool has_idle_options(const struct train_options *o, struct rv_errtext *what) {
	return train_idle_text(o, what) > 0;
}

/* Warns of options that are likely mistakes, or have no effect. */
static void warn_of_options(struct session *s) {
	static const struct {
		const char *event;
		bool (*is_true)(const struct train_options *o, struct rv_errtext *what);
	} notices[] = {{"shared_text", train_options_share_text},
				   {"only_warm_up", train_options_only_warm_up},
				   {"no_effect", has_idle_options}};
	for (size_t i = 0; i < sizeof notices / sizeof notices[0]; i++) {
		struct rv_errtext what = {0};
		if (notices[i].is_true(s->opts, &what))
			rv_event(s->console.events, RV_WARN, notices[i].event, RV_FIELDS(rv_field_str("text", what.text)), "%s",
					 what.text);
	}
}

/* Plans the run and checks that it fits this machine, before its text is opened, which may take
 * long. */
static enum rv_err plan_run(struct session *s, struct lab_config *cfg, struct rv_errtext *et) {
	*cfg = train_options_resolve(s->opts);
	warn_of_options(s);
	RV_TRY(choose_device(s, cfg, et));
	fp32_notice(s->console.events, &cfg->run, &cfg->device, "--dtype auto, the default, or bf16 uses them");
	const struct memory_room room = memory_room_now(&cfg->device);
	struct memory_request q = lab_memory_request(cfg, 0);
	savings_choose_logits(&q, &room, &cfg->savings);
	q.savings = cfg->savings;
	return memory_check(&q, &room, (enum memory_short)s->opts->short_of_memory, s->console.events, et);
}

static enum rv_err new_run(struct session *s, struct lab_config *cfg, struct rv_errtext *et) {
	const struct train_options *o = s->opts;
	float *theta = NULL;
	size_t n;
	const struct memory_request q = lab_memory_request(cfg, dataset_mapped_bytes(s->data));
	RV_TRY(memory_plan_make(&q, &s->memory, et));
	memory_report_plan(s->console.events, &s->memory);
	if (o->files.init[0])
		RV_TRY(initial_weights_load(o->files.init, &o->run, &theta, &n, et));
	cfg->initial_theta = theta;
	enum rv_err e = lab_run_new(cfg, s->data, &s->run, et);
	free(theta);
	return e;
}

static void warn_of_lost_rounds(struct session *s) {
	struct rv_errtext what = {0};
	if (record_gap(s->opts->out, &what))
		rv_event(s->console.events, RV_WARN, "record_gap", RV_FIELDS(rv_field_str("text", what.text)),
				 "%s: curves and means over rounds will lack them; --on-record-gap anew trains from the beginning",
				 what.text);
}

/* Applies --on-record-gap, each time the command begins: a record made by this process has no
 * gap. */
static enum rv_err forget_gap(struct session *s, struct rv_errtext *et) {
	struct rv_errtext why;
	if (s->opts->on_record_gap != RECORD_GAP_ANEW)
		return RV_OK;
	RV_TRY(record_gap_forget(s->run, s->opts->out, &why, et));
	if (why.text[0])
		rv_event(s->console.events, RV_WARN, "anew", RV_FIELDS(rv_field_str("why", why.text)),
				 "%s: training from the beginning", why.text);
	return RV_OK;
}

/* Refuses the checkpoint of another run; the options that differ are in run.conf beside it. */
static enum rv_err refuse_another_run(const struct session *s, struct rv_errtext *et) {
	const struct train_options as_run = train_options_as_run(s->opts);
	const struct rv_errtext why = *et;
	char differs[RV_ERRTEXT_BYTES / 2];
	train_difference(s->opts->out, &as_run, differs, sizeof differs);
	return differs[0] ? rv_fail(et, RV_E_PROTOCOL, "%s: %s", why.text, differs) : RV_E_PROTOCOL;
}

/* Loads the checkpoint. *resumed: there is one. */
static enum rv_err resume(struct session *s, bool *resumed, struct rv_errtext *et) {
	struct rv_errtext damage;
	RV_TRY(forget_gap(s, et));
	enum rv_err e = checkpoint_pair_load(s->run, s->opts->out, resumed, &damage, et);
	if (e != RV_OK)
		return e == RV_E_PROTOCOL ? refuse_another_run(s, et) : e;
	if (!*resumed)
		return RV_OK;
	if (damage.text[0])
		rv_event(s->console.events, RV_WARN, "damaged", RV_FIELDS(rv_field_str("error", rv_err_name(RV_E_CORRUPT))),
				 "%s", damage.text);
	s->started_us -= s->run->wall_us;
	rv_event(s->console.events, RV_INFO, "resumed", RV_FIELDS(rv_field_int("round", (int64_t)s->run->rounds_done)),
			 "%s: continuing after round %" PRIu64, s->opts->out, s->run->rounds_done);
	warn_of_lost_rounds(s);
	return RV_OK;
}

/* Opens the run and its files, new or as they were left. */
static enum rv_err open_run(struct session *s, struct rv_errtext *et) {
	const struct train_options *o = s->opts;
	struct lab_config cfg;
	char path[PATH_MAX];
	RV_TRY(plan_run(s, &cfg, et));
	RV_TRY(rv_dir_make(o->out, 0755, et));
	RV_TRY(rv_dir_lock(o->out, &s->lock, et));
	RV_TRY(run_tokenizer_open(&o->run, o->files.tokenizer, &s->tokenizer, et));
	const struct text_source source = {.path = o->data,
									   .field = o->field,
									   .tokenizer = s->tokenizer,
									   .events = s->console.events,
									   .signals = s->console.signals};
	RV_TRY(text_source_open(&source, &o->run, &s->data, et));
	RV_TRY(dataset_content(s->data, &s->content, et));
	RV_TRY(new_run(s, &cfg, et));
	s->run->tick = tick;
	s->run->tick_ctx = s;
	bool resumed = false;
	RV_TRY(resume(s, &resumed, et));
	s->started_steps = atomic_load(&s->run->steps_done);
	RV_TRY(write_config(s, et));
	path_in(s, METRICS_FILE, path);
	RV_TRY(rv_json_lines_open(path, resumed, &s->metrics, et));
	return write_run_line(s, et);
}

/* Saves a checkpoint, after the lines of its rounds are on the disk: a resumed run does not write
 * them again. */
static enum rv_err save(struct session *s, struct rv_errtext *et) {
	RV_TRY(rv_json_lines_sync(s->metrics, et));
	s->run->wall_us = wall_us(s);
	return checkpoint_pair_save(s->run, s->opts->out, et);
}

static enum rv_err save_weights(struct session *s, struct rv_errtext *et) {
	struct lab_run *r = s->run;
	const struct weights_origin origin = {.round = r->rounds_done,
										  .step = lab_run_steps(r),
										  .tokens = r->tokens_done,
										  .state = r->cfg.method->state_hash(r)};
	const struct model *m = replica_model(r->replicas[0]);
	struct weights_source source = {.cfg = &r->cfg.run,
									.layout = &m->layout,
									.params = r->cfg.method->theta(r),
									.origin_dir = s->opts->files.init,
									.origin = origin,
									.tokenizer_file = s->tokenizer ? s->opts->files.tokenizer : NULL};
	struct rv_errtext warning = {0};
	source.warning = &warning;
	RV_TRY(weights_save_directory(s->opts->out, &source, et));
	if (warning.text[0])
		rv_event(s->console.events, RV_WARN, "no_tokenizer", RV_FIELDS(rv_field_str("text", warning.text)), "%s",
				 warning.text);
	return RV_OK;
}

/* Ends the run in `round`, counted from 1, with `why` (a value is not finite), and records it.
 * worker -1: not a single worker's fault. */
static enum rv_err diverged(struct session *s, uint64_t round, int worker, struct rv_errtext *et) {
	const struct lab_run *r = s->run;
	const struct rv_errtext why = *et;
	const uint64_t step = worker >= 0 ? replica_global_step(r->replicas[worker]) : lab_run_steps(r);
	const struct metrics_diverged line = {.round = round, .worker = worker, .step = step, .wall_us = wall_us(s)};
	rv_progress_clear(s->console.events);
	RV_TRY(metrics_write_diverged(s->metrics, &line, et));
	rv_event(s->console.events, RV_ERROR, "diverged",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_int("worker", worker),
					   rv_field_int("step", (int64_t)step), rv_field_str("why", why.text)),
			 "round %3" PRIu64 "/%" PRId64 "  diverged", round, r->cfg.run.rounds);
	return rv_fail(et, RV_E_DIVERGED, "diverged in round %" PRIu64 " of %" PRId64 ": %s", round, r->cfg.run.rounds,
				   why.text);
}

static uint64_t eval_tokens(const struct session *s) {
	return replica_eval_tokens(s->run->replicas[0], s->run->cfg.eval_tokens);
}

/* Returns true if an evaluation is due: by one worker's cost if workers differ, so that a run is
 * evaluated after the same rounds whatever its method. */
static bool evaluation_is_due(const struct session *s) {
	const struct lab_config *c = &s->run->cfg;
	const struct run_config *run = &c->run;
	const uint64_t step_tokens = (uint64_t)(run->batch * run->grad_accum * run->context * c->workers);
	const int64_t every = eval_every_rounds(s->opts->eval_every, eval_tokens(s),
											step_tokens * (uint64_t)run->steps_per_round, run->rounds);
	return lab_run_finished(s->run) || (every > 0 && s->run->rounds_done % (uint64_t)every == 0);
}

static enum rv_err evaluate(struct session *s, struct rv_errtext *et) {
	struct lab_run *r = s->run;
	enum rv_err e = lab_run_eval(r, &s->heldout, et);
	if (e == RV_E_RANGE) {
		const struct rv_errtext why = *et;
		(void)rv_fail(et, e, "%s; lower lr (now %g) or outer-lr, warm up longer, or set clip", why.text, r->cfg.run.lr);
		return diverged(s, r->rounds_done, -1, et);
	}
	RV_TRY(e);
	return metrics_write_eval(s->metrics,
							  &(struct metrics_eval){.round = r->rounds_done,
													 .step = lab_run_steps(r),
													 .tokens = r->tokens_done,
													 .loss = s->heldout,
													 .bytes_sent = r->bytes_sent,
													 .eval_tokens = eval_tokens(s)},
							  et);
}

struct sent_text {
	char text[48];
};

/* Returns the bytes that each worker would have sent; "" for one worker alone. */
static struct sent_text sent_text(const struct lab_run *r) {
	struct sent_text t = {""};
	if (r->bytes_sent > 0)
		snprintf(t.text, sizeof t.text, "  %.2f MB sent per worker", (double)r->bytes_sent * 1e-6);
	return t;
}

static enum rv_err record_round(struct session *s, const struct lab_round *done, struct rv_errtext *et) {
	struct lab_run *r = s->run;
	const struct metrics_round line = {
		.round = r->rounds_done,
		.step = lab_run_steps(r),
		.tokens = r->tokens_done,
		.participants = (uint32_t)done->participants,
		.train_loss = done->train_loss,
		.lr = (double)done->lr,
		.grad_norm = (double)done->grad_norm,
		.bytes_sent = r->bytes_sent,
		.formula_bytes = r->bytes_sent,
		.compute_us = done->compute_us,
		.reduce_us = done->reduce_us,
		.modelled_us = done->modelled_us,
		.modelled_exchange_us = done->modelled_exchange_us,
		.wall_us = wall_us(s),
		.chain = r->global.chain,
		.delta_norm = done->delta_norm,
		.delta_cosine = done->delta_cosine,
		.codec_error = done->codec_error,
		.codec_cosine = done->codec_cosine,
	};
	RV_TRY(metrics_write_round(s->metrics, &line, et));
	const bool due = evaluation_is_due(s);
	if (due)
		RV_TRY(evaluate(s, et));
	rv_event(s->console.events, RV_INFO, "round",
			 RV_FIELDS(rv_field_int("round", (int64_t)r->rounds_done), rv_field_int("tokens", (int64_t)r->tokens_done),
					   rv_field_double("train_loss", done->train_loss),
					   rv_field_double("heldout_loss", due ? s->heldout : NAN),
					   rv_field_int("bytes_sent", (int64_t)r->bytes_sent)),
			 "round %3" PRIu64 "/%" PRId64 "  train %s  held-out %6s  %.2f Mtokens%s", r->rounds_done,
			 r->cfg.run.rounds, loss_text(done->train_loss).text, due ? loss_text(s->heldout).text : "-",
			 (double)r->tokens_done * 1e-6, sent_text(r).text);
	return RV_OK;
}

static enum rv_err train_rounds(struct session *s, struct rv_errtext *et) {
	while (!lab_run_finished(s->run)) {
		struct lab_round done;
		enum rv_err e = lab_run_round(s->run, &done, et);
		if (e == RV_E_RANGE)
			return diverged(s, s->run->rounds_done + 1, lab_run_diverged_worker(s->run), et);
		RV_TRY(e);
		RV_TRY(record_round(s, &done, et));
		bool last = lab_run_finished(s->run);
		if (last || s->run->rounds_done % (uint64_t)s->opts->save_every == 0)
			RV_TRY(save(s, et));
	}
	return RV_OK;
}

/* Warns if the loss is finite but training has failed all the same. */
static void warn_of_guessing(struct session *s) {
	const struct run_config *c = &s->run->cfg.run;
	const double guessing = log((double)c->vocab), clearly = 1.1;
	if (s->heldout > clearly * guessing)
		rv_event(s->console.events, RV_WARN, "worse_than_guessing", RV_FIELDS(rv_field_double("guessing", guessing)),
				 "a held-out loss of %s is worse than guessing, ln %" PRId64
				 " = %.4f: training has failed; lower lr (now %g) or outer-lr, warm up longer, or set clip",
				 loss_text(s->heldout).text, c->vocab, guessing, c->lr);
}

static enum rv_err finish(struct session *s, struct rv_errtext *et) {
	struct lab_run *r = s->run;
	RV_TRY(save_weights(s, et));
	if (isnan(s->heldout)) /* nothing was left to train */
		RV_TRY(lab_run_eval(r, &s->heldout, et));
	const struct metrics_end end = {.round = r->rounds_done,
									.step = lab_run_steps(r),
									.tokens = r->tokens_done,
									.loss = s->heldout,
									.bytes_sent = r->bytes_sent,
									.formula_bytes = r->bytes_sent,
									.wall_us = wall_us(s),
									.chain = r->global.chain,
									.state = r->cfg.method->state_hash(r),
									.average_loss = r->average_loss,
									.replica_loss = r->replica_loss};
	RV_TRY(metrics_write_end(s->metrics, &end, et));
	char chain[2 * RV_HASH_BYTES + 1], state[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(end.chain.b, RV_HASH_BYTES, chain);
	rv_hex_encode(end.state.b, RV_HASH_BYTES, state);
	rv_progress_clear(s->console.events);
	rv_event(s->console.events, RV_INFO, "done",
			 RV_FIELDS(rv_field_double("heldout_loss", s->heldout), rv_field_int("tokens", (int64_t)r->tokens_done),
					   rv_field_int("bytes_sent", (int64_t)r->bytes_sent)),
			 "done: held-out %s nats per %s (perplexity %s) over %" PRIu64 " tokens  %.2f Mtokens%s",
			 loss_text(s->heldout).text, r->cfg.run.tokenizer_hash[0] ? "token" : "byte",
			 perplexity_text(s->heldout).text, eval_tokens(s), (double)r->tokens_done * 1e-6, sent_text(r).text);
	warn_of_guessing(s);
	if (!rv_hash_is_zero(&end.chain))
		rv_event(s->console.events, RV_INFO, "chain", RV_FIELDS(rv_field_str("chain", chain)), "chain %s", chain);
	rv_event(s->console.events, RV_INFO, "state", RV_FIELDS(rv_field_str("state", state)), "state %s", state);
	memory_report_peak(s->console.events, &s->memory);
	return RV_OK;
}

/* Saves the run after Ctrl-C and reports how to continue. */
static enum rv_err save_stopped(struct session *s, struct rv_errtext *et) {
	rv_progress_clear(s->console.events);
	RV_TRY(save(s, et));
	RV_TRY(save_weights(s, et));
	return rv_fail(et, RV_E_CANCELLED, "stopped in round %" PRIu64 "; saved in %s; the same command continues it",
				   s->run->rounds_done + 1, s->opts->out);
}

static void close_session(struct session *s) {
	rv_json_lines_close(s->metrics);
	lab_run_free(s->run);
	dataset_close(s->data);
	tokenizer_free(s->tokenizer);
	if (s->lock >= 0)
		rv_dir_unlock(s->lock);
	console_close(&s->console);
}

static enum rv_err run_train(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	struct rv_option table[TRAIN_OPTIONS_MAX];
	train_options_table(table, TRAIN_OPTIONS_MAX);
	struct session s = {
		.opts = opts, .table = table, .lock = -1, .started_us = rv_clock_monotonic_us(), .heldout = NAN};
	enum rv_err e = console_open(&s.console, stdout, et);
	if (e == RV_OK)
		e = open_run(&s, et);
	if (e == RV_OK)
		e = train_rounds(&s, et);
	if (e == RV_OK)
		e = finish(&s, et);
	else if (e == RV_E_CANCELLED)
		e = save_stopped(&s, et);
	close_session(&s);
	return e;
}

#define LAB_METHOD(name, light, dark, about) "\n    " #name ": " about
static const char details[] =
	"Writes metrics.jsonl (docs/metrics.md), a checkpoint (and keeps the previous one) and, as a Hugging Face model "
	"directory, the weights\n"
	"into --out. Ctrl-C saves; the same command continues. The state hash at the end is that of the\n"
	"distributed run with the same configuration, text, --threads and --run-hash.\n"
	"Exit status: 0 done; 1 a fault; 2 refused; 3 diverged: values became NaN or infinite (metrics.jsonl holds the\n"
	"round); 130 stopped.\n\nMethods:"
#include "lab/methods/methods.def"
	;
#undef LAB_METHOD

struct rv_command train_command(struct rv_option table[static TRAIN_OPTIONS_MAX]) {
	train_options_table(table, TRAIN_OPTIONS_MAX);
	return (struct rv_command){
		.name = "train",
		.synopsis = "",
		.help = "Train k workers in one process, or their data-parallel baseline.",
		.details = details,
		.options = table,
		.presets = model_presets,
		.opts_bytes = sizeof(struct train_options),
		.prepare = train_options_read_files,
		.check = train_options_check,
		.run = run_train,
	};
}
