/* sim.h: the deterministic simulator: a universe of one coordinator and 1 to 1,024 workers under
 * virtual time.
 *
 * The protocol cores and what a worker does with its replica (train/participant) are the real ones
 * (coordinator/core, worker/session_core and worker/round, worker/recovery, net/reduce, the
 * encodings of net/control and net/frame, outer/global and a codec). Everything around them is
 * here: an event queue instead of a clock, a network of composable nodes, disks that tear, training
 * that is a pure function of (worker, round, step). One 64-bit seed decides everything, so a
 * universe replays exactly.
 *
 * sim_options.c      a universe's size and shape from its seed
 * sim_plan.c         what will go wrong in it: a list of faults from its seed
 * sim_large.c        the same of a universe of up to a thousand workers
 * sim_hosts.c        its hosts, and sets of them
 * sim_queue.c        virtual time
 * sim_network.c      rate, delay, loss, who reaches whom: nodes that snap together
 * sim_disk.c         files: in the cache, durable, torn, rotten, lost
 * sim_coordinator.c  the platform around coordinator/core
 * sim_worker.c       a process' life and its turns: the session core's control
 * sim_http.c         requests to the coordinator: the control client's operations
 * sim_process.c      its start and its ends
 * sim_store.c        the storage thread: the session core's disk
 * sim_files.c        what is in the files
 * sim_recovery.c     the directory under worker/recovery: what a disk proves, and which files go
 * sim_trainer.c      the trainer thread: the session core's trainer
 * sim_training.c     the participant's tiny replica and its fake inner steps
 * sim_homes.c        addresses, and homes whose routers translate them
 * sim_tcp.c          connections: of meshes, stations, relays
 * sim_pipe.c         the mesh's pipes
 * sim_relay.c        relays: the platform around net/relay/relay_core.h
 * sim_candidates.c   the addresses at which members may be dialed
 * sim_reach.c        a worker's station: the platform around worker/reach/reach_core.h
 * sim_stream.c       what protects them: a key stated, and nothing encrypted
 * sim_peers.c        the mesh in a worker, and what travels on it: the platform around net/reduce
 * sim_audits.c       what auditors of averages find, and who lies
 * sim_scores.c       what auditors of training measure, and who does not train
 * sim_forms.c        how participants with slow lines send their contributions, and what that must be
 * sim_means.c        what encoding means lost: its owners' side, and what it must be
 * sim_fetch.c        state transfer between workers
 * sim_text*.c        the text of runs with leases, fetched while workers train
 * sim_oracle*.c      what must hold at every step
 * sim_rosters.c      rosters, rows and columns as records and documents state them
 * sim_faults.c       carries the plan out, and heals
 * sim_liars.c        members that lie to their peers, and evidence
 * sim_plots.c        members that lie by one plan
 * sim_again.c        members that end an attempt of each round anew
 * sim_lies.c         members that lie to the coordinator, and what must not come of it
 * sim_strangers.c    keys that join and are banned; a coordinator that shows a member another run
 * sim_expect.c       what a planted universe demands of its end
 * sim_universe.c     the safety and the liveness phase
 * sim_kept.c         universes in files
 * sim_runner.c       many universes on several processors
 * sim_shrink.c       a failing universe with as few faults as possible */
#ifndef RV_TESTS_SIM_SIM_H
#define RV_TESTS_SIM_SIM_H
#include "base/rng.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_limits.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_oracle.h"
#include "tests/sim/sim_plan.h"
#include "tests/sim/sim_worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- virtual time (sim_queue.c) ---- */

/* An event of a host's process: skipped when that process (life) is gone, postponed while the host
 * is frozen. With host SIM_NOBODY it is the universe's own. `arg` is NULL or from malloc; `fire`
 * owns it. */
typedef void sim_fire(struct sim *s, int host, void *arg);
struct sim_event {
	int64_t at_us;
	int64_t due_us; /* before its host was frozen: events that were postponed to one time keep their order */
	uint64_t order; /* of equal times, the first scheduled fires first */
	int host;
	uint64_t life; /* 0: whatever process there is, or none */
	sim_fire *fire;
	void *arg;
};
struct sim_queue {
	struct sim_event *heap;
	size_t n, cap;
	uint64_t next_order;
	int at_once; /* events so far at this time */
};
void sim_at(struct sim *s, int64_t at_us, int host, uint64_t life, sim_fire *fire, void *arg);
/* Fires the next event; false when there is none or it is later than `until_us`. */
bool sim_queue_step(struct sim *s, int64_t until_us);
void sim_queue_release(struct sim_queue *q);

/* ---- the universe ---- */

struct sim_stats {
	uint64_t seeds, events, faults[SIM_FAULT_KINDS], commits, later_attempts, fetched_logs, fetched_snapshots,
		own_files;
	uint64_t older_snapshots; /* of those fetched: before the document's */
	uint64_t kept_progress, torn_writes, workers, rollbacks, standstills;
	uint64_t overlapped;                     /* outer steps behind steps of the next round */
	uint64_t given_away;                     /* ... that began from a start of their own */
	uint64_t residuals;                      /* contributions with a residual of earlier ones */
	uint64_t mean_residuals;                 /* chunks with one, at the beginning of attempts */
	uint64_t calls, openings, relayed_bytes; /* of relays */
	uint64_t strange_dials;                  /* of addresses that are nobody's */
	uint64_t met_relayed, met_punched;       /* links that came about so, at either end */
	uint64_t slowest_ms;                     /* from a pair's wish to its link */
	uint64_t commits_with_all;               /* whose roster has every worker */
	uint64_t rosters_in_rows, commits_in_rows, rows_left_out;
	uint64_t sequences;              /* read by commits, in runs with leases */
	uint64_t convicted;              /* owners that lied */
	uint64_t stranded;               /* runs that could not end once a member was banned */
	uint64_t row_audits, row_lies;   /* orders to audit in rows; those of them of a lie */
	uint64_t repeats;                /* orders to make the steps of another member again */
	uint64_t struck, cleared;        /* members that did not train; strikes of honest ones that were lifted */
	uint64_t text_shards, text_lies; /* fetched; sources named as liars */
	uint64_t text_waits;             /* times that training waited */
	uint64_t text_of_members;        /* ranges */
	uint64_t clipped;                /* chunks of committed contributions */
	uint64_t left_out;               /* the same, of those that point against the others */
	uint64_t sent_less;              /* of these, coarser ones and parts */
	uint64_t named, resynced, faded; /* workers with a flipped bit */
	uint64_t false_means;            /* commits of what a liar gave to the only one that could vote */
	uint64_t refused_reports;        /* of roots that were not signed */
	uint64_t lost_attempts;          /* of rosters of three and more that liars are few in, and are not needed in */
	uint64_t wrongly_suspected; /* honest members, for an attempt each, where only liars are at work, and are few */
	uint64_t misled;            /* documents of another run that were refused */
	uint64_t trace;             /* a hash over all events: equal for equal seeds */
	int64_t virtual_us;
	int64_t recovery_us; /* the longest from healing to the end of a run */
};

enum sim_luck { LUCK_HTTP, LUCK_LINE, LUCK_DISK, LUCK_WORK, SIM_LUCKS };
struct sim_window {
	int64_t at;
	uint64_t n;
};

/* Two workers, as their links are watched. */
struct sim_pair {
	uint64_t lives;
	int64_t apart_us, linked_us; /* since when they are not linked, or are, both being well */
	int64_t began_us;            /* since when both processes run */
	int64_t opened_us[2];        /* when each took an OPEN that should lead to a link; 0: none is under way */
	bool waits_for_first;        /* of these two processes */
	uint32_t relays;             /* set of those by which they could meet all the time */
	bool soon;                   /* they were linked for long, or one of them has just begun */
};

/* What an adversary of audits made in a round, and gave where it shows that to one auditor only. */
struct sim_shown {
	/* The chunk of the latest attempt, counted from 1, of which honest voters say that its mean
	 * stands out, where nothing fails, or all has healed; these; and whether it was audited. */
	uint32_t attempt, named;
	uint64_t namers;
	bool audited;
	uint8_t to;           /* 1 + the host; 0: nobody asked yet */
	uint32_t chunk;       /* 1 + that which this one found wrong; 0: none */
	uint64_t hidden_from; /* hosts that found that in time, where nothing fails, or all has healed: a set */
};

/* Keys that join and are banned, and the member to which another run is shown. */
struct sim_strangers {
	int left;        /* keys that have not come yet */
	uint32_t member; /* the latest that came; NET_NO_MEMBER: none, or banned */
	int misled;      /* host; SIM_NOBODY: none, as the next */
	int was_misled;  /* also after that has ended */
	enum sim_other_run how;
	uint64_t from_round;
};

struct sim_identity {
	struct identity id;
	uint64_t *next_number; /* of the universe's streams */
};

struct sim {
	struct sim_options opt;
	struct sim_plan *plan; /* the caller's */
	struct sim_window windows[SIM_HOSTS][SIM_LUCKS];
	int liar;                /* host; SIM_NOBODY: none */
	int false_address;       /* host that states addresses of others; SIM_NOBODY: none */
	uint64_t banished;       /* hosts of adversaries of audits that are */
	bool struck;             /* the adversary of audits of training was */
	uint64_t audited_rounds; /* in which it gave nothing, and that were audited: a set of the first 64 */
	struct sim_shown shown[SIM_MAX_ROUNDS];
	int withholder, ghost, accuser, impostor, impersonated;
	uint32_t lies[SIM_ORDINARY];    /* by host: the set of enum sim_lie that it states */
	int64_t next_drip_us;           /* of a withholder that drips */
	int was_withholder, was_liar;   /* before everything healed */
	bool banned[SIM_MAX_WORKERS];   /* by host: with proof that it equivocated */
	uint64_t refuses[SIM_ORDINARY]; /* by host: the set of those with which it lets no link come up */
	struct sim_strangers strangers;
	bool had_impostor, had_shared_home;
	uint32_t false_relays; /* set of those that were false at some time */
	enum sim_withheld withheld;
	int n_planted;        /* faults that wait for something */
	uint64_t term_wanted; /* by the operator of FAULT_ROLLBACK */
	uint64_t rollback_to;
	uint16_t events[CORE_EVENT_COUNT][SIM_MAX_WORKERS]; /* of the coordinator's core */
	int flip_victim;                                    /* host whose bits flip; SIM_NOBODY: in this universe none do */
	int64_t now_us, healed_us;
	int64_t opened_us; /* when somebody last took an OPEN; 0: nobody yet */
	struct sim_queue queue;
	struct sim_network net;
	struct sim_coordinator coordinator;
	struct sim_relay relays[SIM_MAX_RELAYS];
	struct identity relay_identities[SIM_MAX_RELAYS];
	struct sim_home homes[SIM_MAX_WORKERS];
	struct sim_router *routers[SIM_MAX_ROUTERS];
	int n_routers, provider; /* provider: 1 + its router; 0: none */
	uint32_t next_outside_port;
	struct sim_worker workers[SIM_MAX_WORKERS];
	struct sim_oracle oracle;
	int64_t frozen_until_us[SIM_HOSTS], down_until_us[SIM_HOSTS];
	uint32_t moments[SIM_HOSTS];     /* delicate ones so far */
	int64_t wall_jump_us[SIM_HOSTS]; /* how far its wall clock is off */
	int next_aimed[SIM_HOSTS];       /* the fault that waits for one; plan->n: none */
	uint64_t lives;                  /* processes started so far */
	uint32_t next_link;              /* numbers of connections */
	struct sim_identity identities[SIM_MAX_WORKERS];
	struct identity run_identity;
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint64_t next_number;                                   /* of streams */
	struct sim_pair *pairs;                                 /* (n_workers, n_workers); the second is the higher */
	uint64_t wanted[SIM_MAX_WORKERS][SIM_MAX_WORKERS / 64]; /* hosts, as bits, that each wants links with */
	bool healed;                                            /* liveness phase */
	bool failed;
	char why[1024];
	bool verbose;
	struct sim_stats stats;
	/* what every worker knows of the run */
	struct global_config global_config;
	struct run_config run; /* what participants read of it */
	struct rv_hash run_hash;
	size_t max_payload; /* encoded bytes of the longest fragment */
	size_t max_sent;    /* of a contribution to it, by the codec that needs most */
	float *theta0, *scratch;
	struct document *doc;           /* scratch */
	struct checkpoint_index *index; /* scratch */
	uint8_t *doc_bytes;             /* scratch (NET_MAX_DOCUMENT_BYTES) */
};

/* Runs a universe to its end, with the chosen faults of `plan`; marks those that happened, and
 * notes the commits. False: `why` says what does not hold. */
bool sim_run(const struct sim_options *opt, struct sim_plan *plan, bool verbose, struct sim_stats *stats,
			 char why[1024]);

/* sim_faults.c */
void faults_start(struct sim *s);
/* Something delicate begins at a host (a frame, a write) and lasts for a while: a fault may be
 * aimed at it, the more likely the more `weight` moments it counts for. */
void faults_aim(struct sim *s, int host, uint32_t weight, int64_t lasts_us);
void faults_heal(struct sim *s);
/* Something that planted faults may wait for begins at a host, and lasts so long. */
void faults_on(struct sim *s, int host, enum sim_on what, uint64_t round, int64_t lasts_us);

/* sim_lies.c */
/* Changes a worker's report to what its owner states. */
bool lies_about_lines(const struct sim *s, int host);
void lies_report(const struct sim_worker *w, struct report *rep);
void lies_begin_attempt(struct sim *s, int host); /* it enters one */
void lies_start_anew(struct sim *s, int host);    /* kills its process soon, and starts another one */
/* Returns true if the host is in the hands of an attacker. */
bool lies_at(const struct sim *s, int host);
/* Returns true if fewer than half of the roster lie; false without one. Elsewhere liars may bring
 * blame on the others (docs/security.md). */
bool lies_are_few(const struct sim *s, const struct sim_roster *r);
/* Returns true if the honest participants of the round's rosters up to `r` are fewer than
 * min_workers: a liar among them cannot be left out. */
bool lies_are_needed(const struct sim *s, const struct sim_roster *r);
/* Returns true if it votes for what nobody holds. */
bool lies_vote(const struct sim *s, int host);
/* Judges an event of the coordinator's core where only liars are at work. */
void lies_judge(struct sim *s, const struct core_event *ev);
void lies_judge_costs(struct sim *s); /* at the end, if only liars were at work */

/* sim_plots.c: members that plan together. */
/* Returns whom a member that plots attacks in the all-reduce under way: a set of hosts. */
uint64_t plots_accused(const struct sim_worker *w);
/* Returns true if it gives the peer nothing. */
bool plots_withhold(const struct sim_worker *w, int index);
/* Returns how many members plot. */
int plots_count(const struct sim *s);
void plots_judge(struct sim *s); /* at the end: what they own */

/* sim_again.c: members that end an attempt of each round anew. */
/* Adds those whose links it ends, and lets none come up, to those that are banned. */
void again_part(struct sim_worker *w, const struct document *d, struct banned *banned);
/* Returns true if the host ends links, and lets none come up, as it likes. */
bool again_parts(const struct sim *s, int host);
/* Returns whom it accuses in the all-reduce under way: a set of hosts. */
uint64_t again_accused(const struct sim_worker *w);
/* Returns true if it gives the peer nothing. */
bool again_withholds(const struct sim_worker *w, int index);
void again_report(const struct sim_worker *w, struct report *rep);
void again_follow(struct sim_worker *w, const struct document *d);

/* Returns true if it tells a lie of those that are told in reports, contributions or requests. */
bool lies_so(const struct sim *s, int host, enum sim_lie lie);

/* sim_strangers.c */
void strangers_join(struct sim *s, int n);
void strangers_mislead(struct sim *s, int host, enum sim_other_run how, uint64_t from_round);
/* Returns true if another run is shown to the host. */
bool strangers_misled(const struct sim *s, int host);
/* Returns true if the coordinator has sent the host to a bystander: its dials are bounded. */
bool strangers_dial_anybody(const struct sim *s, int host);
/* Makes a document for the host one of another run; false: it is not to be. */
bool strangers_change(const struct sim *s, int host, struct document *d);
/* Judges what a worker made of a document. Returns false if it was one of another run. */
bool strangers_follows(struct sim *s, int host, const struct document *d);

/* sim_expect.c: what planted universes demand */
/* Returns the row of a name, or -1. */
int expect_find(const char *name);
void expect_check(struct sim *s); /* at the end */

/* sim_hosts.c */
/* Return the number by which files and luck know a host, and the host of a number: they are those
 * of a universe of 32 workers; more workers come behind. */
int sim_number(int host);
int sim_host_of_number(int number);
/* Returns the host after this one; SIM_HOSTS: there is none. */
int sim_next_host(const struct sim *s, int host);
/* A set of hosts: bit 0 to 31 is a worker, or in a large universe so many groups of neighbours; the
 * bits of the others are their numbers. */
int sim_groups(int n_workers);
bool sim_in_set(int n_workers, uint64_t set, int host);

/* The first violation stops the universe. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_say(const struct sim *s, int host, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Uniform in [lo, hi); true with probability p. A function of the seed, the host, what it is for,
 * the quarter of a second, and how often it was asked in that: so a fault that is left out does not
 * change everybody's luck for ever after. */
int64_t sim_between(struct sim *s, int host, enum sim_luck luck, int64_t lo, int64_t hi);
bool sim_chance(struct sim *s, int host, enum sim_luck luck, double p);
/* What a program that starts now speaks. */
uint32_t sim_version(struct sim *s, int host);
/* A pseudo-random value in [-1, 1) that depends on its arguments alone. */
float sim_noise(uint64_t a, uint64_t b, uint64_t i);
/* The full hash of the state of `round` is looked at: every snapshot_every rounds, and after the
 * last. */
bool sim_is_checked(const struct sim *s, uint64_t round);
/* Encoded bytes of what the round exchanges. */
size_t sim_payload(const struct sim *s, uint64_t round);
void sim_key_of(const struct sim *s, int host, uint8_t key[NET_KEY_BYTES]);
int sim_host_of_key(const struct sim *s, const uint8_t key[NET_KEY_BYTES]); /* SIM_NOBODY: nobody's */
void *sim_alloc(size_t n);                                                  /* zeroed; aborts when there is none */

/* ---- sim_seals.c ---- */

/* Returns cheap signatures for seals of means; `id` signs. */
struct seal_ops sim_seals(const struct identity *id);

/* ---- sim_liars.c ---- */

/* Sets *m to what the all-reduce has for the peer at `index`; a withholder's is what it lets out,
 * with a PING that says that it waits. Returns false if there is nothing. */
bool liars_pull(struct sim_worker *w, int index, bool bulk, struct reduce_msg *m);
/* Shows the coordinator what the worker got, while documents ask for it; a liar shows something
 * else. */
void liars_show(struct sim *s, int host);
/* Returns true for a host that lies, or has: its peers find that it breaks rules. */
bool liars_lie(const struct sim *s, int host);
/* Returns true if a member gives each peer another mean; and its host. */
bool liars_equivocate(const struct sim *s);
int liars_equivocator(const struct sim *s);
/* Changes a report as a liar does. */
void liars_report(const struct sim *s, int host, struct report *rep);
/* Signs the roots of a report, lies too: a liar has a key. */
void liars_sign(const struct sim *s, int host, struct report *rep);
/* Returns true if its reports have had forged signatures. */
bool liars_forge(const struct sim *s, int host);
/* Checks that no honest member is named as a culprit. */
void oracle_names(struct sim *s, const struct core_event *ev);

#endif
