/* run_config_table.c: the option table of a run, with its bounds. The defaults are the demo: a
 * byte-level GPT of four layers that trains in minutes on two cores. */
#include "base/run_config.h"

#include "base/rows.h"

enum {
	MAX_CONTEXT = 16383, /* one block of text less its last byte, which is only ever a target */
	MIN_VOCAB = 256,     /* the tokens are bytes */
};
#define MAX_SEED 9007199254740992.0 /* 2^53: exact as a double in every tool that reads the configuration */

#define FIELD(f) offsetof(struct run_config, f)
#define INT_OPT(name, f, fallback, lo, hi, group, help)                                                                \
	{ name, RV_OPT_INT, FIELD(f), 0, fallback, lo, hi, NULL, help, group }
#define REAL_OPT(name, f, fallback, lo, hi, group, help)                                                               \
	{ name, RV_OPT_DOUBLE, FIELD(f), 0, fallback, lo, hi, NULL, help, group }
#define TIME_OPT(name, f, fallback, lo, hi, group, help)                                                               \
	{ name, RV_OPT_DURATION_MS, FIELD(f), 0, fallback, lo, hi, NULL, help, group }
/* The choices come from the lines of the registries of train/model/model.c, outer/optimizer.c and
 * outer/codec.c (a test compares them): a coordinator, which links none of these, must refuse a run
 * that no worker could train. */
#define CHOICE_OPT(name, f, fallback, choices, group, help)                                                            \
	{ name, RV_OPT_CHOICE, FIELD(f), 0, fallback, 0, 0, choices, help, group }

#define HASH_OPT(name, f, group, help)                                                                                 \
	{ name, RV_OPT_STRING, FIELD(f), sizeof(((struct run_config *)0)->f), "", 0, 0, NULL, help, group }

#define MODEL_FAMILY(name, facts) "|" #name
static const char families[] =
#include "base/model_families.def"
	;
#undef MODEL_FAMILY

#define INNER_OPTIMIZER(name, facts) "|" #name
static const char inner_optimizers[] =
#include "base/inner_optimizers.def"
	;
#undef INNER_OPTIMIZER

#define OUTER_OPTIMIZER(name, facts, lr, momentum) "|" #name
static const char outer_optimizers[] =
#include "base/outer_optimizers.def"
	;
#undef OUTER_OPTIMIZER

#define CODEC(name, facts, of_mean) "|" #name
static const char codecs[] =
#include "base/codecs.def"
	;
static const char mean_codecs[] = "auto"
#include "base/codecs.def"
	;
#undef CODEC

#define MERGE_RULE(name, facts, least) "|" #name
static const char merge_rules[] =
#include "base/merge_rules.def"
	;
#undef MERGE_RULE

const struct rv_option run_config_options[] = {
	CHOICE_OPT("model", model, "gpt2", families + 1, "Model", "Model family."),
	INT_OPT("n-layer", n_layer, "4", 1, 256, "Model", "Transformer blocks."),
	INT_OPT("n-head", n_head, "4", 1, 256, "Model", "Attention heads; must divide n-embd."),
	INT_OPT("n-embd", n_embd, "128", 8, 16384, "Model", "Channels of the residual stream."),
	INT_OPT("vocab", vocab, "256", MIN_VOCAB, 1048576, "Model", "Number of tokens; 256 for bytes."),
	INT_OPT("context", context, "64", 1, MAX_CONTEXT, "Model", "Tokens in a sequence."),
	INT_OPT("n-kv-head", n_kv_head, "0", 0, 256, "Model",
			"Heads of keys and values, shared by n-head / n-kv-head query heads each; 0: n-head. (llama)"),
	INT_OPT("n-inner", n_inner, "0", 0, 65536, "Model", "Hidden channels of the MLP; 0: the family's default."),
	{"tied", RV_OPT_BOOL, FIELD(tied), 0, "true", 0, 0, NULL,
	 "The classifier shares the token embedding. gpt2 always does.", "Model"},
	REAL_OPT("norm-eps", norm_eps, "1e-5", 1e-12, 1e-2, "Model", "Added to the variance in norms."),
	REAL_OPT("rope-theta", rope_theta, "10000", 1, 1e9, "Model", "Base of the rotary embedding's angles. (llama)"),
	CHOICE_OPT("rope-scaling", rope_scaling, "none", "none|linear|llama3", "Model",
			   "How angles are stretched for contexts longer than those first trained on. (llama)"),
	REAL_OPT("rope-factor", rope_factor, "1", 1, 1e4, "Model", "rope-scaling: by how much."),
	REAL_OPT("rope-low-freq", rope_low_freq, "1", 1e-3, 1e4, "Model", "rope-scaling llama3: low_freq_factor."),
	REAL_OPT("rope-high-freq", rope_high_freq, "4", 1e-3, 1e4, "Model", "rope-scaling llama3: high_freq_factor."),
	INT_OPT("rope-original-context", rope_original_context, "8192", 1, 16777216, "Model",
			"rope-scaling llama3: the context before stretching."),
	HASH_OPT("init-hash", init_hash, "Model",
			 "Start from these weights, which every worker gets by --init; 64 hex digits as `rivulet inspect` prints "
			 "them. Empty: weights drawn from the seed."),

	HASH_OPT("tokenizer-hash", tokenizer_hash, "Data",
			 "The tokenizer that made the tokens; 64 hex digits as `rivulet inspect` prints them. Empty: bytes."),
	HASH_OPT(
		"data-hash", data_hash, "Data",
		"The published text that the run reads (`rivulet data publish`, or new-run --data); 64 hex digits. Workers "
		"fetch what they read of it, and no sequence is read twice in a pass. Empty: members bring text."),
	CHOICE_OPT("data-from", data, "published", "published|own", "Data",
			   "With data-hash: published: members train on that text only; own: a member may bring its own instead, "
			   "and all see who did."),
	INT_OPT("data-shards", data_shards, "4", 1, 1024, "Data",
			"Disjoint shares of the training text; member m reads share m modulo this."),
	CHOICE_OPT("data-split", data_split, "dealt", "dealt|contiguous", "Data",
			   "dealt: shares are alike, blocks go to them in turn; contiguous: each is one piece of the text, so "
			   "workers see different distributions."),
	INT_OPT("holdout-every", holdout_every, "50", 2, 1000000, "Data",
			"One block of 16384 tokens in this many is held out and never trained on."),

	CHOICE_OPT(
		"dtype", dtype, "auto", "auto|fp32|bf16", "Inner loop",
		"What operands of matrix products are rounded to; weights, sums and statistics are fp32 always. auto: each "
		"worker takes the faster one of its machine, bf16 on a GPU and on processors with bf16 units, else fp32."),
	INT_OPT("batch", batch, "8", 1, 65536, "Inner loop", "Sequences in a micro-batch."),
	INT_OPT("grad-accum", grad_accum, "1", 1, 65536, "Inner loop", "Micro-batches in an inner step."),
	INT_OPT("steps-per-round", steps_per_round, "30", 1, 1000000, "Inner loop",
			"H: inner steps between two outer steps."),
	TIME_OPT("round-ms", round_ms, "0", 0, 86400000, "Inner loop",
			 "Time limit of a worker's inner steps in a round: it takes as many of steps-per-round as fit at its own "
			 "speed, at least one; best with weight-by-tokens. 0: no limit."),
	INT_OPT("rounds", rounds, "60", 1, 10000000, "Inner loop", "Outer steps in the run."),
	CHOICE_OPT("inner", inner, "adamw", inner_optimizers + 1, "Inner loop",
			   "Inner optimizer. muon: for the matrices of the layers, adamw for all else; it takes adamw's lr and "
			   "weight-decay. sgd: without momentum."),
	REAL_OPT("lr", lr, "0.002", 1e-12, 10, "Inner loop", "Peak learning rate of the inner optimizer."),
	REAL_OPT("min-lr-ratio", min_lr_ratio, "0.1", 0, 1, "Inner loop",
			 "Final learning rate as a share of the peak (cosine decay)."),
	INT_OPT("warmup-steps", warmup_steps, "50", 0, 1000000000, "Inner loop",
			"Inner steps of linear warm-up at the start of the run."),
	REAL_OPT("beta1", beta1, "0.9", 0, 0.999999, "Inner loop", "AdamW: decay of the gradient's mean."),
	REAL_OPT("beta2", beta2, "0.95", 0, 0.999999, "Inner loop", "AdamW: decay of the gradient's square."),
	REAL_OPT("eps", eps, "1e-8", 1e-20, 1, "Inner loop", "AdamW: added to the denominator."),
	REAL_OPT("weight-decay", weight_decay, "0.1", 0, 10, "Inner loop",
			 "Decoupled decay of matrices; norms and biases have none."),
	REAL_OPT("clip", clip, "1", 0, 1e6, "Inner loop", "Bound of the gradient's global norm; 0: none."),
	REAL_OPT("muon-momentum", muon_momentum, "0.95", 0, 0.999999, "Inner loop", "Muon: momentum (Nesterov's)."),
	REAL_OPT("prox-mu", prox_mu, "0", 0, 1e6, "Inner loop",
			 "FedProx: every inner step is also pulled back to the round's shared weights, by this much times the "
			 "distance from them; 0: off."),
	INT_OPT("seed", seed, "1", 0, MAX_SEED, "Inner loop", "Determines the initial weights and the order of the data."),

	CHOICE_OPT("outer", outer, "nesterov", outer_optimizers + 1, "Outer loop", "Outer optimizer."),
	CHOICE_OPT("codec", codec, "int8", codecs + 1, "Outer loop", "Encoding of outer gradients on the wire."),
	CHOICE_OPT("mean-codec", mean_codec, "auto", mean_codecs, "Outer loop",
			   "Encoding of their mean, which its owner sends to all. auto: that of the outer gradients, int8 where "
			   "that is topk. A topk mean loses most of its values without mean-feedback."),
	REAL_OPT("error-feedback", error_feedback, "0", 0, 1, "Outer loop",
			 "A worker adds the part of its outer gradient that encoding lost to its next one, times this; 0: off. "
			 "0.95 or so stands in for outer momentum (SparseLoCo)."),
	REAL_OPT("mean-feedback", mean_feedback, "0", 0, 1, "Outer loop",
			 "The owner of a chunk adds the part of its mean that encoding lost to its next one, times this; 0: off. "
			 "For sparse means: mean-codec = topk64 with mean-feedback = 0.95."),
	INT_OPT("fragments", fragments, "1", 1, 64, "Outer loop",
			"Parts of the parameters that rounds exchange in turn, each once in this many rounds (Streaming DiLoCo); "
			"1: all at once. Layers are dealt to all but the last, which has the rest."),
	INT_OPT("overlap-steps", overlap_steps, "0", 0, 1000000, "Outer loop",
			"Inner steps that run while a round is exchanged; its outer step is adopted after them. At most "
			"steps-per-round."),
	CHOICE_OPT("updates", updates, "waited", "waited|delayed|eager", "Outer loop",
			   "When a round's outer step is taken. waited: when its exchange is done, or overlap-steps later. "
			   "delayed, eager: one whole round later, so that the exchange has all inner steps of the next round to "
			   "hide behind; with eager a worker goes on from the shared weights with its own share of the step under "
			   "way, with delayed from the shared weights alone."),
	REAL_OPT("eager-share", eager_share, "0", 0, 1, "Outer loop",
			 "updates = eager: how much of its own outer gradient a worker goes ahead by: 1 / the number of workers "
			 "that the run is made for, as 0.25 for four."),
	REAL_OPT("mix", mix, "0", 0, 1, "Outer loop",
			 "Share of its own parameters that a replica keeps when it adopts a round's; 0: it takes the shared ones."),
	REAL_OPT("outer-lr", outer_lr, "-1", -1, 10, "Outer loop",
			 "Learning rate of the outer optimizer. -1: the optimizer's default: nesterov 0.9 (0.7 is usual for runs "
			 "of hundreds of rounds), sgd 1; adam and yogi 0.005, adagrad 0.03, for these move each parameter by about "
			 "this much in a round."),
	REAL_OPT("outer-momentum", outer_momentum, "-1", -1, 0.9999, "Outer loop",
			 "Momentum of the outer optimizer; of adam, yogi and adagrad beta1. -1: the optimizer's default: nesterov "
			 "0.6 (0.9 is usual for runs of hundreds of rounds), the others 0.9."),
	REAL_OPT("outer-beta2", outer_beta2, "0.99", 0, 0.999999, "Outer loop",
			 "Outer adam and yogi: decay of the outer gradient's square."),
	REAL_OPT("outer-eps", outer_eps, "0.001", 1e-12, 1e6, "Outer loop",
			 "Outer adam, yogi and adagrad: tau, added to the denominator; the squares start from its square."),
	REAL_OPT(
		"outer-clip", outer_clip, "1.25", 1, 1000, "Outer loop",
		"merge = clipped, agreed: the limit of a worker's outer gradient, as a multiple of the median of all workers' "
		"norms, chunk by chunk; larger ones are scaled down to it. merge = centered: the same of its distance "
		"from the center. Needs at least three workers."),
	CHOICE_OPT("merge", merge, "clipped", merge_rules + 1, "Outer loop",
			   "How the workers' outer gradients are combined. clipped: their weighted mean, of which none has a much "
			   "larger norm than the others (outer-clip). mean: the weighted mean as it is: one worker may ruin the "
			   "run. trimmed: of each parameter the mean of what is left without the largest and the smallest values "
			   "(trim-share); it takes three workers or more. centered: the weighted mean, of which none is much "
			   "further than the others from the middle, sought from the last round's mean (outer-clip); the state of "
			   "the run has one more vector. agreed: as clipped, without those that point against the others, for runs "
			   "that strangers join."),
	REAL_OPT("trim-share", trim_share, "0.25", 0.01, 0.5, "Outer loop",
			 "merge = trimmed: the share of the workers' values that is left out on each side, rounded down, at "
			 "least one: of three workers, and 0.25 of four, the largest and the smallest one."),
	INT_OPT(
		"row-size", row_size, "64", 2, ROWS_MAX_LENGTH, "Outer loop",
		"Workers that average among themselves in one level. More are laid out in rows of about the square root of "
		"their number: each averages with its row, and owners with those of the same parameters in the other rows."),
	INT_OPT("outer-delay", outer_delay, "1", 1, 1024, "Outer loop",
			"Outer delayed_nesterov: N; momentum moves once in this many rounds, by their mean. 1: nesterov."),
	INT_OPT("chunk-elems", chunk_elems, "0", 0, 65536, "Outer loop",
			"Parameters in a chunk of the all-reduce, a multiple of 256; 0: chosen from the model's size; of fragments "
			"too where a run is made (rivulet-coordinator new-run), which writes the number."),
	INT_OPT("snapshot-every", snapshot_every, "8", 1, 64, "Outer loop",
			"Rounds between two snapshots of the shared state."),
	CHOICE_OPT("late", late, "keep", "keep|discard", "Outer loop",
			   "Whether a worker that missed a round keeps its inner progress."),

	INT_OPT("min-workers", min_workers, "1", 1, ROWS_MAX_ROSTER, "Round",
			"A round is reduced once at least this many are ready."),
	TIME_OPT("grace-ms", grace_ms, "30000", 0, 86400000, "Round",
			 "How long the others are waited for once min-workers are ready."),
	TIME_OPT("silence-ms", silence_ms, "4000", 250, 3600000, "Round",
			 "Limit of silence: a peer that sends nothing for this long in an all-reduce is suspected, and a member "
			 "that reports nothing for this long is not waited for. Other limits follow from it; at 4000: a report at "
			 "least every 1600 ms (2/5 of it, at most 2000), a PING every 1000 (1/4), a peer that withholds what it "
			 "owes suspected after 8000 (twice), accusations collected for 500 (1/8), a member dead after 10000 (5/2). "
			 "--check prints the limits of another value."),
	{"weight-by-tokens", RV_OPT_BOOL, FIELD(weight_by_tokens), 0, "false", 0, 0, NULL,
	 "Weigh a worker's outer gradient by the tokens it trained on, instead of equally.", "Round"},
	CHOICE_OPT("ownership", ownership, "bandwidth", "bandwidth|equal", "Round",
			   "How the averaging is divided among the workers: by their bandwidth, or in equal parts. The result is "
			   "the same to the bit, except with mean-feedback: a chunk that moves loses what was kept of it."),
	CHOICE_OPT("slow-members", slow_members, "wait", "wait|skip|coarser|part", "Round",
			   "What becomes of a worker whose line cannot make slow-deadline-ms. wait: every round waits for it. "
			   "skip: it takes part in every second to eighth round, the slower its line the fewer, and `late` decides "
			   "about its progress in between; the others do not wait for it. coarser: it sends its contribution by a "
			   "coarser codec (slow-codec). part: it sends every second to eighth chunk of it, others in each round, "
			   "and the mean of a chunk is that of those that sent it. These two help an uplink that is slower than "
			   "the downlink: means come down whole. What they do not send is lost, except with error-feedback."),
	TIME_OPT("slow-deadline-ms", slow_deadline_ms, "0", 0, 86400000, "Round",
			 "slow-members, but for wait: time that a worker's line may need for one payload, the least that it sends "
			 "and receives in a round. 0: what an exchange takes over lines as the median of all (`status` shows it)."),
	CHOICE_OPT("slow-codec", slow_codec, "auto", mean_codecs, "Round",
			   "slow-members = coarser: codec of the contribution of a worker with a slow line. auto: the first of "
			   "those coarser than `codec` that makes slow-deadline-ms, as int4 for int8; sparse ones only with "
			   "error-feedback, which sends later what they leave out."),

	INT_OPT("audit-chunks", audit_chunks, "0", 0, 8, "Strangers",
			"Chunks of each round's average that are merged again, each by a member that does not own it and was drawn "
			"when the round was over: an owner that lies is caught, named and banned. 0: none. Needs four workers, and "
			"above row-size rows of four."),
	INT_OPT("audit-window", audit_window, "4", 1, 15, "Strangers",
			"audit-chunks, audit-training: rounds within which an audit ends. Each worker keeps its contributions to "
			"so many on its "
			"disk."),
	{"audit-rollback", RV_OPT_BOOL, FIELD(audit_rollback), 0, "false", 0, 0, NULL,
	 "audit-chunks: an average that is proven wrong takes the run back to before its round, within audit-window; "
	 "else the operator decides.",
	 "Strangers"},
	REAL_OPT("audit-training", audit_training, "0", 0, 1, "Strangers",
			 "Share of the members' compute that checks training: members that are drawn when a round is over fetch a "
			 "whole contribution, newcomers' more often, and measure what it does to the loss on the text that its "
			 "author was to read. One that two of three find worthless is left out for 8, 32, 128 rounds, then banned. "
			 "In rosters above row-size they are of the author's row. 0: none. For strangers 0.02."),
	REAL_OPT(
		"audit-repeat", audit_repeat, "0", 0, 1, "Strangers",
		"audit-training: share of its audits in which the auditor makes the round's steps again, from the state of "
		"the inner optimizer to which each worker commits, and compares what comes out: half of the steps, an old "
		"contribution, or noise on top of work are found, which a score does not tell. Workers keep 12 bytes a "
		"parameter on disk for each of audit-window + 2 rounds; an audit moves 8, and takes as long as a round's "
		"steps. 0: none."),
	INT_OPT(
		"probation", probation, "0", 0, 100000, "Strangers",
		"Rounds over which the weight of a newcomer grows to that of the others, at most twice the median; it begins "
		"anew with each strike that audits give. With audit-training, rounds up to the last audit that found its "
		"work worthy count. 0: it has all at once."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};
