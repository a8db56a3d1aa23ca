/* run_config.h: the settings that all workers of a run must agree on: model, inner loop, outer
 * loop. The coordinator stores and sends their canonical text, which run_hash covers. Parsed with
 * base/options.h; every value is bounded. */
#ifndef RV_BASE_RUN_CONFIG_H
#define RV_BASE_RUN_CONFIG_H

#include "base/err.h"
#include "base/model_shape.h"
#include "base/options.h"
#include "base/registries.h"

#include <stdbool.h>
#include <stdint.h>

/* Choices of options, in the order of their texts. */
enum run_updates { UPDATES_WAITED, UPDATES_DELAYED, UPDATES_EAGER };
enum run_late { RUN_LATE_KEEP, RUN_LATE_DISCARD };
enum run_data { RUN_DATA_PUBLISHED, RUN_DATA_OWN };
enum run_split { SPLIT_DEALT, SPLIT_CONTIGUOUS };
enum run_dtype { RUN_DTYPE_AUTO, RUN_DTYPE_FP32, RUN_DTYPE_BF16 };
enum run_ownership { OWNERSHIP_BANDWIDTH, OWNERSHIP_EQUAL };
enum run_slow_members { SLOW_WAIT, SLOW_SKIP, SLOW_COARSER, SLOW_PART };

struct run_config {
	/* model, up to init_hash (run_config_take_model); a family ignores fields that it does not
	 * have */
	int model; /* enum model_choice: the family */
	int64_t n_layer, n_head, n_embd, vocab, context;
	int64_t n_kv_head; /* heads of keys and values (grouped-query attention); 0: n_head */
	int64_t n_inner;   /* hidden channels of the MLP; 0: the family's default */
	bool tied;         /* the classifier is the token embedding */
	double norm_eps;
	double rope_theta; /* base of the rotation's angles */
	int rope_scaling;  /* enum rope_scaling; the four below belong to it */
	double rope_factor, rope_low_freq, rope_high_freq;
	int64_t rope_original_context;
	char init_hash[65]; /* hex of the hash of the initial weights; "": drawn from the seed */
	/* data: one block of every holdout_every is never trained on */
	char tokenizer_hash[65]; /* hex of the hash of the tokenizer's file; "": the bytes of the text are the tokens */
	char data_hash[65];      /* hex of the hash of the published text; "": members bring text, in shards */
	int data;                /* enum run_data: with data_hash, whether a member may bring other text */
	int data_split;          /* enum run_split; it and data_shards: without data_hash only */
	int64_t data_shards;     /* a member reads shard (member % data_shards) */
	int64_t holdout_every;
	/* inner loop */
	int dtype; /* enum run_dtype: of operands of the matrix products; sums, statistics, weights are fp32 */
	int64_t batch, grad_accum;       /* sequences per micro-batch; micro-batches per step */
	int64_t steps_per_round, rounds; /* H, R */
	int64_t round_ms;                /* time limit of a worker's inner steps in a round; 0: always H */
	int inner;                       /* enum inner_choice: the optimizer */
	double lr, min_lr_ratio;
	int64_t warmup_steps;
	double beta1, beta2, eps, weight_decay, clip;
	double muon_momentum;
	double prox_mu; /* FedProx: the gradient gets prox_mu (theta_local - theta) */
	int64_t seed;
	/* outer loop */
	int outer, codec;                /* enum outer_choice, enum codec_choice */
	int64_t fragments;               /* P: rounds exchange one of them each, in turn */
	int64_t overlap_steps;           /* inner steps that go on during an exchange */
	int updates;                     /* enum run_updates: when outer steps are taken */
	double eager_share;              /* share of its own outer gradient by which a worker goes ahead */
	double mix;                      /* share of its own parameters that a replica keeps when it
	                                    adopts a round */
	int mean_codec;                  /* enum mean_codec_choice: of the mean of what `codec` encoded */
	double error_feedback;           /* beta: share of what encoding lost that is kept; 0: nothing */
	double mean_feedback;            /* the same of means, for their owners; 0: nothing */
	int64_t outer_delay;             /* N of delayed_nesterov */
	double outer_lr, outer_momentum; /* RUN_CONFIG_AUTO: run_config_outer_lr(), run_config_outer_momentum() */
	double outer_beta2, outer_eps;
	double outer_clip;      /* clipped, centered: limit of a chunk's norm or distance in medians, 1 to 1000 */
	int merge;              /* enum merge_choice: how contributions are combined (outer/merge.h) */
	double trim_share;      /* trimmed: share of the contributions that is left out on each side */
	int64_t row_size;       /* participants up to which contributions are merged in one level (base/rows.h) */
	int64_t chunk_elems;    /* 0: chunking_default_elems(n) */
	int64_t snapshot_every; /* rounds between two snapshots */
	int late;               /* enum run_late */
	/* round */
	int64_t min_workers;
	int64_t grace_ms, silence_ms; /* base/run_silence.h: limits derived from silence_ms */
	bool weight_by_tokens;
	int ownership;            /* enum run_ownership */
	int slow_members;         /* enum run_slow_members: of members whose lines hold exchanges up */
	int64_t slow_deadline_ms; /* of an exchange, but for SLOW_WAIT (base/slow_lines.h); 0: from the lines */
	int slow_codec;           /* SLOW_COARSER, enum mean_codec_choice: auto: those coarser than `codec` */
	/* strangers */
	int64_t audit_chunks;  /* of each round's average that auditors merge again; 0: none */
	int64_t audit_window;  /* rounds within which an audit ends, and for which contributions are kept */
	int64_t probation;     /* committed rounds after which a member has its full weight; 0: at once */
	double audit_training; /* share of the roster's compute that scores contributions; 0: none */
	double audit_repeat;   /* share of these audits in which the auditor repeats the steps */
	bool audit_rollback;   /* a lie that is proven takes the run back to before it, within the window */
};

/* The option table of a run; also the order of its canonical text. Ended by name == NULL. */
extern const struct rv_option run_config_options[];

/* Marks outer_lr or outer_momentum as the outer optimizer's default, which the functions below
 * resolve. */
#define RUN_CONFIG_AUTO (-1.0)
double run_config_outer_lr(const struct run_config *c);
double run_config_outer_momentum(const struct run_config *c);
/* Returns the codec of means: mean_codec, or for auto the one of base/codecs.def for `codec`. */
enum codec_choice run_config_mean_codec(const struct run_config *c);
/* Replaces RUN_CONFIG_AUTO and auto by the defaults they stand for: the workers of a run must agree
 * on its text, whatever another version of the program has as defaults. */
void run_config_resolve(struct run_config *c);

/* Returns the option text of `updates`. */
const char *run_config_updates_name(const struct run_config *c);
/* Returns true if outer steps come one whole round late (updates = delayed, eager). */
bool run_config_is_late(const struct run_config *c);
/* Returns the sequences of a member's round, steps ahead included, if the run leases them to its
 * members (base/leases.h); 0: it has no data-hash. */
uint64_t run_config_lease_round(const struct run_config *c);
/* Checks that options which share out text that members bring have their defaults: a run whose text
 * is published would ignore them. RV_E_INVALID names the option. */
enum rv_err run_config_check_leases(const struct run_config *c, struct rv_errtext *et);
/* Returns true if averages are audited: audit_chunks is not 0, owners add nothing of their own to
 * means (mean_feedback), which no other could merge again, and the rule starts from no earlier
 * mean (merge = centered). */
bool run_config_is_audited(const struct run_config *c);
/* Returns true if training is audited: audit_training is not 0, and sequences are leased to members
 * (data_hash), so that auditors know what each has read. */
bool run_config_is_scored(const struct run_config *c);
/* Returns true if audits of training may repeat what a member did: audit_repeat is not 0, training
 * is audited, and run_config_can_repeat. */
bool run_config_is_repeated(const struct run_config *c);
/* Returns true if a round's steps follow from the weights, the text and the inner optimizer's state
 * at its begin alone, and its contribution from those: without fragments, overlap-steps, late
 * updates, mix, prox-mu, error-feedback and slow-members. */
bool run_config_can_repeat(const struct run_config *c);
/* Returns true if members keep their contributions for auditors: either of these. */
bool run_config_keeps_contributions(const struct run_config *c);
/* Returns how many inner steps of the next round come before a round's outer step: overlap_steps,
 * or all of them. */
int64_t run_config_overlap(const struct run_config *c);
/* Refuses settings that contradict `updates`: RV_E_INVALID, RV_E_UNSUPPORTED, with the remedy. Part
 * of run_config_validate(). */
enum rv_err run_config_check_updates(const struct run_config *c, struct rv_errtext *et);

/* Fills in the defaults, which are the demo. */
void run_config_defaults(struct run_config *c);
/* Parses and then validates. RV_E_INVALID, RV_E_RANGE name `source`, and the line or the fields; *c
 * is then unchanged. */
enum rv_err run_config_parse(struct run_config *c, const char *source, const char *text, struct rv_errtext *et);
/* Copies the model's fields of `from`, all but init_hash, to `c`. */
void run_config_take_model(struct run_config *c, const struct run_config *from);
/* Checks rules over several fields (n_embd % n_head, merge and min_workers, ...). RV_E_INVALID,
 * RV_E_RANGE. */
enum rv_err run_config_validate(const struct run_config *c, struct rv_errtext *et);

#endif
