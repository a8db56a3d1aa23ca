/* sim_plan.h: what a universe is, and what goes wrong in it: functions of its seed. */
#ifndef RV_TESTS_SIM_SIM_PLAN_H
#define RV_TESTS_SIM_SIM_PLAN_H

#include "base/run_config.h"
#include "outer/codec.h"
#include "tests/sim/sim_limits.h"
#include "worker/round/round.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- faults: planned from the seed (sim_plan.c), carried out by sim_faults.c ---- */

enum { SIM_TOKENS_PER_STEP = 10, SIM_SEQUENCES = 2 /* of a step */ };

enum sim_withheld {
	WITHHELD_CONTRIBUTIONS, /* partial sums too */
	WITHHELD_MEANS,
	WITHHELD_LIKENESS, /* nothing, but each peer gets another mean */
	WITHHELD_SUMS,     /* partial sums, in columns only, as the next two */
	WITHHELD_COLUMN_MEANS,
	WITHHELD_COLUMN_LIKENESS,
	WITHHELD_LIKENESS_OF_ONE, /* nothing, but one peer gets another mean */
	WITHHELD_DRIP,            /* nothing, but a chunk at a time: the next just before it would count as stalled */
	FALSE_CONTRIBUTION,       /* one owner gets other bytes than those that it has committed to */
	FALSE_SEAL,               /* one peer gets a seal that it has not signed */
	WITHHELD_EVIDENCE,        /* it votes for something else, and shows nothing */
	FALSE_EVIDENCE,           /* it votes for something else, and shows what it got, with a forged seal */
	WITHHELD_FROM_ONE,        /* contributions, from one peer */
	TWO_ROOTS,                /* once it is on a roster it commits to something else, and signs that too */
	FALSE_ROOT,               /* it commits to what it has not signed */
	SIM_WITHHELD
};

/* What a FAULT_CLAIMER states in its reports (sim_lies.c). */
enum sim_lie {
	LIE_TOKENS,      /* more tokens than it can have trained on */
	LIE_CHUNKS,      /* another number of chunks */
	LIE_AHEAD,       /* a later round */
	LIE_DIGEST,      /* a vote for a digest that nobody holds */
	LIE_FULL_HASH,   /* another full state */
	LIE_CHAIN,       /* another state hash */
	LIE_FAST,        /* a line that nobody has, and that those who lie alike have it, and others none */
	LIE_SLOW,        /* a line of 1 byte/s */
	LIE_BEHIND,      /* it fetches the run's first round, for ever */
	LIE_APART,       /* it reaches nobody */
	LIE_ACCUSES_ALL, /* in each attempt all others */
	LIE_PROVEN,      /* its disk proves whatever the run is at */
	LIE_DISK,        /* its disk is full */
	LIE_READS,       /* its contribution has read more than it was leased, or than nobody leased */
	/* These are drawn apart (plan_more_lies). */
	LIE_LOUD,      /* its contributions are 100 times as large as they should be */
	LIE_FLIPS,     /* they point the other way, and are four times as large */
	LIE_LATE,      /* one of them, in the middle of the run, is 100 times as large */
	LIE_ADDRESSES, /* others' addresses for its own */
	LIE_MOVES,     /* another port in each report */
	LIE_FETCHES,   /* nothing, but it fetches state from each peer for ever */
	/* Drawn apart (plan_goers), not as those above. */
	LIE_SYNCS,   /* in each all-reduce it reports that it has lost its state */
	LIE_CRASHES, /* no lie: its process is killed in each all-reduce, and started again */
	LIE_PLOTS,   /* it accuses, or gives nothing to, whom a plan names that others have too (sim_plots.c) */
	/* Drawn apart (plan_again): see sim_again.c. */
	LIE_PARTED,  /* it lets links come up with one member only, and accuses that one */
	LIE_IN_TURN, /* in each round it ends its link with another member, and accuses that one */
	LIE_ANEW,    /* in each round it accuses another member, and is started again when the round is over */
	SIM_LIES
};
extern const char *const sim_lie_names[SIM_LIES];

enum sim_fault_kind {
	/* the whole safety phase */
	FAULT_HTTP_LOSS,     /* `amount`: share of the messages */
	FAULT_HTTP_DOUBLING, /* the copy comes a little later */
	FAULT_HTTP_ECHO,     /* the copy comes seconds later, after newer ones */
	FAULT_LIAR,          /* `host` gives wrong pieces of the run's state, now and then */
	FAULT_WITHHOLDER,    /* `host` withholds what it owes in all-reduces, and lies in PINGs; `amount`: what */
	FAULT_GHOST,         /* `host` reports that it trains, and does not */
	FAULT_IMPOSTOR,      /* `host` greets peers as the member that `peer` is */
	FAULT_RELAY_DROPS,   /* the relay does not send `amount`, a share, of its frames */
	FAULT_ACCUSER,       /* `host` accuses one of those that it deals with, in each attempt another one */
	FAULT_REFUSER,       /* `host` lets no link with `peer` come up, and does not say so */
	FAULT_CLAIMER,       /* `host` lies to the coordinator; `amount`: enum sim_lie */
	FAULT_NAT,           /* each of `set` has a home that nobody can dial; never heals, as the next */
	FAULT_FALSE_ADDRESS, /* `host` states addresses that are nobody's */
	FAULT_FALSE_RELAY,   /* the relay `peer` is in the hands of an attacker: `amount` (enum sim_falsehood) */
	FAULT_MISLED,        /* from `round` on the coordinator misleads `host`: `amount` (enum sim_other_run) */
	FAULT_HOME,          /* `set` is one home, of kind `amount` (enum sim_home_kind), with traits `moment` */
	/* at a time, or at a delicate moment of `host` */
	FAULT_KILL,
	FAULT_POWER_CUT,
	FAULT_FREEZE,
	FAULT_LINK,       /* between `host` and `peer`; the ends notice at different times */
	FAULT_PARTITION,  /* `set` from the others */
	FAULT_ONE_WAY,    /* nothing from `host` reaches `peer` */
	FAULT_PAIR,       /* `host` and `peer` do not reach each other; everyone else reaches both */
	FAULT_POSTHUMOUS, /* `host` is killed and comes back, while what it sent `peer` is still on its way, for so long */
	/* at a time only */
	FAULT_COORDINATOR, /* killed */
	FAULT_HOUR,        /* the coordinator is gone for an hour */
	FAULT_BLACKOUT,    /* power cut of all hosts at once */
	FAULT_TOO_FEW,     /* power cut of `set`: fewer than min_workers are left */
	FAULT_SPEED,       /* of training */
	FAULT_SLOW_LINE,
	FAULT_SLOW_DISK,
	FAULT_DISK_FULL, /* writes fail */
	FAULT_ROT,       /* a file that lies on the disk is damaged */
	FAULT_WIPE,      /* killed, and comes back with an empty disk */
	FAULT_SYBILS,    /* `amount` keys join one after the other, by one link, and each is banned */
	FAULT_CLOCK,     /* the wall clock jumps by `amount` seconds; the process is started again */
	FAULT_LEAVE,
	FAULT_PAUSE,
	FAULT_FLIP,         /* a bit of theta or v in memory */
	FAULT_RELAY,        /* killed */
	FAULT_RELAY_CUT,    /* `host` and the relay do not reach each other */
	FAULT_RELAY_BREAKS, /* the relay ends what it forwards for `host` */
	FAULT_RELAY_SLOW,   /* its line */
	FAULT_ROLLBACK,     /* the operator takes the last `amount` rounds back. Planted only */
	SIM_FAULT_KINDS
};
/* What a coordinator says that nobody has agreed to: the last, which a worker cannot know, a
 * bystander's address for that of each member. */
enum sim_other_run { OTHER_CONFIGURATION, OTHER_ROUNDS, OTHER_ADDRESSES, SIM_OTHER_RUNS };
extern const char *const sim_fault_names[SIM_FAULT_KINDS];

/* What a planted fault may wait for. */
enum sim_on {
	ON_NOTHING,
	ON_ROSTER, /* coordinator: the record is being written, as the next two */
	ON_COMMIT,
	ON_ROLLBACK,
	ON_ATTEMPT, /* worker: enters an all-reduce of that round */
	ON_LOG,     /* worker: the file is being written, as the rest */
	ON_SNAPSHOT,
	ON_REPLICA,
	ON_TERM,
	SIM_ONS
};
extern const char *const sim_on_names[SIM_ONS];

struct sim_fault {
	uint8_t kind;
	uint16_t host, peer;
	bool reckless;   /* also when the run's only copy goes */
	uint64_t set;    /* of hosts (sim_in_set) */
	int64_t at_us;   /* -1: not before the `moment`-th delicate moment of `host` (faults_aim) */
	uint32_t moment; /* 1, 2, ... */
	double into;     /* the share of that moment that has passed */
	uint8_t on;      /* enum sim_on: when this begins at `host`, of `round`; at_us is -1 */
	uint64_t round;
	int64_t lasts_us;
	double amount;
};

/* What a planted universe (tests/sim/planted) demands of its end, beside what always holds. */
struct sim_expect {
	uint8_t what; /* row of the table in sim_expect.c */
	uint64_t set; /* hosts: the sum over them counts */
	uint64_t least, most;
};

struct sim_plan {
	struct sim_expect expects[SIM_MAX_EXPECTS];
	int n_expects;
	struct sim_fault faults[SIM_MAX_FAULTS];
	int n;
	bool chosen[SIM_MAX_FAULTS]; /* the others do not happen */
	bool happened[SIM_MAX_FAULTS];
	int64_t committed_us[SIM_MAX_ROUNDS]; /* what came of it: when each round was committed; 0: never */
};

/* ---- options: all from the seed ---- */

/* Who lies about averages (sim_audits.c); who does not train, or lies about training
 * (sim_scores.c). */
enum sim_adversary {
	ADVERSARY_NONE,
	ADVERSARY_OWNER,
	ADVERSARY_AUDITOR,
	ADVERSARY_WITHHOLDER,
	SIM_ADVERSARIES,
	ADVERSARY_FREE_RIDER = SIM_ADVERSARIES,
	ADVERSARY_HALF_RIDER,
	ADVERSARY_POISONER,
	ADVERSARY_CUTTER,
	ADVERSARY_SCORER,
	ADVERSARY_TWO_SCORERS,
	SIM_SCORED
};

struct sim_options {
	uint64_t seed;
	int n_workers;
	uint32_t min_workers;
	int row_size; /* more participants are laid out in rows (base/rows.h) */
	uint64_t rounds, steps_per_round, overlap_steps, snapshot_every;
	size_t n_params;
	const struct codec *codec;
	enum late_policy late;
	double clip; /* of contributions (outer/merge.h) */
	bool agrees; /* contributions that point against the others are left out, and there are some */
	bool loud;   /* some contributions are several times as large as they should be */
	bool weight_by_tokens;
	bool equal_ownership; /* else ownership follows what workers say of their lines */
	int slow_members;     /* enum run_slow_members: of members with slow uplinks */
	uint32_t fragments;
	float mix;           /* what a worker keeps of its own when it adopts a round's */
	bool gives_away;     /* late outer steps: overlap_steps is H, and steps ahead begin from a start of their own */
	float share;         /* of the outer step, that start has so much of it (eager); 0: delayed */
	float feedback;      /* beta of error feedback; 0: none */
	float mean_feedback; /* the same, of means */
	bool mixed;          /* programs speak this version of the protocol or the next as well, drawn at each start */
	uint64_t keep_snapshots, keep_log;
	bool calm;  /* no faults at all: bytes are counted exactly */
	bool hasty; /* a round is over in a few round trips: who comes late has to catch up with that */
	int64_t delay_us, jitter_us;
	double slowest_bytes_per_s;
	int64_t step_us;
	bool by_time;              /* slow workers end their steps of a round before H (run_config.round_ms) */
	int64_t fault_interval_us; /* mean */
	int64_t safety_us;         /* length of the safety phase */
	int relay;                 /* how many there are */
	double capped;             /* share of its line that a worker may use for what it sends; 0: all */
	size_t chunk_elems;
	bool leases; /* members read what is leased to them (--leases) */
	bool liars;  /* up to a third of the members lie (--liars) */
	int n_liars; /* so many; 0: by the seed */
	bool plots;  /* they plan together; only while faults are drawn */
	/* Of a universe with --audits, or with --scores (audit_ppm); else 0 and ADVERSARY_NONE. */
	uint32_t audit_chunks, audit_window, audit_ppm, repeat_ppm;
	bool audit_rollback;
	enum sim_adversary adversary;
	int adversary_host, accomplice; /* accomplice: of a lying auditor, one that lies alike; SIM_NOBODY: none */
};

/* sim_options.c */
struct sim_options sim_options_plain(void); /* what a planted universe does not say */
struct sim_options sim_options_of(uint64_t seed);
/* sim_audits.c: makes it a universe with audits, and maybe an adversary. */
void audits_choose(struct sim_options *o);
/* sim_scores.c: makes it a universe with audits of training, and maybe an adversary. */
void scores_choose(struct sim_options *o, const struct sim_plan *plan);
/* sim_large.c */
struct sim_options sim_options_large(uint64_t seed, int n_workers);
void sim_plan_large(const struct sim_options *opt, struct sim_plan *out);
/* Makes a universe one of liars: large enough, and with enough honest members. */
void sim_options_with_liars(struct sim_options *o);
/* Makes a universe of liars one of twenty members, four of which lie. */
void sim_options_with_twenty(struct sim_options *o);
/* sim_plots.c: makes a universe of liars one of members that plan together. */
void plots_choose(struct sim_options *o);
/* Makes one in four universes with --scores one of rows of three and four. */
void sim_options_with_scores(struct sim_options *o);
/* Makes one in two universes with --audits one of rows of four and five. */
void sim_options_with_audits(struct sim_options *o);
/* "seed 7: 4 workers (at least 2), ..." */
void sim_options_text(const struct sim_options *opt, char *out, size_t cap);

/* sim_plan.c */
void sim_plan_of(const struct sim_options *opt, struct sim_plan *out); /* everything is chosen */
/* What is chosen of a universe beside its seed. */
struct sim_choice {
	uint64_t seed;
	int workers; /* 0: as many as the seed says */
	bool leases, liars, twenty, plots, audits, scores;
};
/* Both. */
void sim_universe_of(const struct sim_choice *choice, struct sim_options *opt, struct sim_plan *plan);
/* Returns how many members of a universe with liars lie. */
int sim_liars(const struct sim_options *o);
/* "at 12.345 s w3 is frozen for 2.0 s" */
void sim_fault_text(const struct sim_fault *f, char *out, size_t cap);

#endif
