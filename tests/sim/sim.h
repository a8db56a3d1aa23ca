/* sim.h: the deterministic simulator: a universe of one coordinator and 1 to 32 workers under
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
 * sim_means.c        what encoding means lost: its owners' side, and what it must be
 * sim_fetch.c        state transfer between workers
 * sim_oracle*.c      what must hold at every step
 * sim_faults.c       carries the plan out, and heals
 * sim_expect.c       what a planted universe demands of its end
 * sim_universe.c     the safety and the liveness phase
 * sim_kept.c         universes in files
 * sim_runner.c       many universes on several processors
 * sim_shrink.c       a failing universe with as few faults as possible */
#ifndef RV_TESTS_SIM_SIM_H
#define RV_TESTS_SIM_SIM_H

#include "base/rng.h"
#include "coordinator/core/core.h"
#include "net/control/control.h"
#include "net/mesh/peers.h"
#include "net/reduce/grid.h"
#include "outer/mean_residual.h"
#include "tests/common/memory_store.h"
#include "tests/sim/sim_net.h"
#include "train/participant/participant.h"
#include "worker/join/control_client.h"
#include "worker/mesh/house.h"
#include "worker/session/core.h"
#include "worker/state/checkpoint_index.h"
#include "worker/state/means_recovery.h"
#include "worker/state/recovery.h"
#include "worker/transfer/donor.h"
#include "worker/transfer/fetcher.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_MAX_WORKERS = 32,
	SIM_COORDINATOR = SIM_MAX_WORKERS, /* its host */
	SIM_RELAY,                         /* the hosts of relays */
	SIM_MAX_RELAYS = 2,
	SIM_OUTSIDE = SIM_RELAY + SIM_MAX_RELAYS, /* whatever has an address and is none of these */
	SIM_HOSTS,
	SIM_NOBODY = -1,
	SIM_MAX_ROUNDS = 64,
	SIM_MAX_H = 8,                              /* steps of a round */
	SIM_MAX_STEPS = SIM_MAX_ROUNDS * SIM_MAX_H, /* in one contribution: progress may be kept all the time */
	SIM_MAX_CHUNKS = 32,                        /* n_params is at most 200 for each worker, and 200 */
	SIM_MAX_FRAGMENTS = 4,
	SIM_MAX_FILES = 160,     /* on one disk */
	SIM_MAX_FAULTS = 1024,   /* in one plan */
	SIM_WALL_S = 1700000000, /* the wall clocks when it all began */
	SIM_MAX_ROUTERS = 2 * SIM_MAX_WORKERS + 1,
	SIM_MAX_EXPECTS = 16,
	SIM_MS = 1000,
	SIM_S = 1000000,
	SIM_STALL_US = 4 * SIM_S /* of the all-reduce: what is owed and withheld for so long */
};

struct sim;

/* ---- faults: planned from the seed (sim_plan.c), carried out by sim_faults.c ---- */

enum { SIM_TOKENS_PER_STEP = 10 };

#define SIM_ANY_BYTES UINT64_MAX

enum sim_fault_kind {
	/* the whole safety phase */
	FAULT_HTTP_LOSS,     /* `amount`: share of the messages */
	FAULT_HTTP_DOUBLING, /* the copy comes a little later */
	FAULT_HTTP_ECHO,     /* the copy comes seconds later, after newer ones */
	FAULT_LIAR,          /* `host` gives wrong pieces of the run's state, now and then */
	/* `host` withholds what it owes in all-reduces, and lies in PINGs; amount 0: contributions, 1:
	 * means, 2: gives each peer another mean instead */
	FAULT_WITHHOLDER,
	FAULT_GHOST,         /* `host` reports that it trains, and does not */
	FAULT_IMPOSTOR,      /* `host` greets peers as the member that `peer` is */
	FAULT_RELAY_DROPS,   /* the relay does not send `amount`, a share, of its frames */
	FAULT_NAT,           /* each of `set` has a home that nobody can dial; never heals, as the next */
	FAULT_FALSE_ADDRESS, /* `host` states addresses that are nobody's */
	FAULT_FALSE_RELAY,   /* the relay `peer` is in the hands of an attacker: `amount` (enum sim_falsehood) */
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
	FAULT_CLOCK,     /* the wall clock jumps by `amount` seconds; the process is started again */
	FAULT_LEAVE,
	FAULT_FLIP,         /* a bit of theta or v in memory */
	FAULT_RELAY,        /* killed */
	FAULT_RELAY_CUT,    /* `host` and the relay do not reach each other */
	FAULT_RELAY_BREAKS, /* the relay ends what it forwards for `host` */
	FAULT_RELAY_SLOW,   /* its line */
	FAULT_ROLLBACK,     /* the operator takes the last `amount` rounds back. Planted only */
	SIM_FAULT_KINDS
};
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
	uint8_t host, peer;
	bool reckless; /* also when the run's only copy goes */
	uint64_t set;
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

struct sim_options {
	uint64_t seed;
	int n_workers;
	uint32_t min_workers;
	uint64_t rounds, steps_per_round, overlap_steps, snapshot_every;
	size_t n_params;
	const struct codec *codec;
	enum late_policy late;
	double clip; /* of contributions (outer/merge.h) */
	bool loud;   /* some contributions are several times as large as they should be */
	bool weight_by_tokens;
	bool equal_ownership; /* else ownership follows what workers say of their lines */
	bool skips_slow;      /* members with slow lines take part now and then */
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
};

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

/* ---- network (sim_network.c) ---- */

enum packet_kind {
	PACKET_REQUEST, /* HTTP: may be lost, doubled, overtaken */
	PACKET_REPLY,
	PACKET_SYN, /* of a connection (sim_pipe.c), as the rest: these arrive in order */
	PACKET_ACK,
	PACKET_RST,
	PACKET_FIN,
	PACKET_DATA,
	PACKET_TAKEN /* data were taken: there is room again */
};
struct packet {
	int src, dst;
	uint8_t kind;
	uint32_t link, from_link; /* numbers of the connection's ends there, and here */
	uint64_t upto;            /* DATA: bytes of its writer, with these */
	int64_t sent_us;
	size_t n;
	uint8_t data[];
};
struct packet *packet_new(int src, int dst, enum packet_kind kind, const void *data, size_t n);
/* Takes the packet. */
void sim_send(struct sim *s, struct packet *p);

/* A packet goes from node to node until the last one hands it to its host. */
struct net_node {
	void (*forward)(struct sim *s, struct net_node *node, struct packet *p);
	struct net_node *next;
	int64_t busy_until_us;       /* rate */
	double bytes_per_s, at_best; /* rate, now and without a fault */
};
struct sim_network {
	struct net_node up[SIM_HOSTS], down[SIM_HOSTS]; /* rate of a host's line */
	struct net_node gate, faults, delay, route;
	uint16_t cut[SIM_HOSTS][SIM_HOSTS];      /* faults that keep what `a` sends from `b`; 0: it arrives */
	int64_t last_exit[SIM_HOSTS][SIM_HOSTS]; /* delay: links keep their order */
	struct packet **held;                    /* gate: what links have sent where it does not arrive */
	size_t n_held, cap_held;
	double http_loss, http_doubling, http_echo; /* of each message */
};
void sim_network_init(struct sim *s);
void sim_network_release(struct sim_network *net);
/* Cuts the way from `from` to `to`, or takes one such cut back. Links lose
 * nothing: it waits. */
void sim_cut(struct sim *s, int from, int to, bool cut);
void sim_cut_nothing(struct sim *s);
/* The host's line has this share of its rate. */
void sim_network_slow(struct sim *s, int host, double share);

/* ---- disk (sim_disk.c) ---- */

enum file_kind { FILE_SNAPSHOT = 1, FILE_LOG, FILE_REPLICA, FILE_TERM, FILE_PART, FILE_MEANS /* by means_file_of() */ };
struct sim_file {
	uint8_t kind; /* 0: free */
	uint64_t round;
	uint8_t *data; /* NULL: removed */
	size_t n;
	bool damaged;
	/* What a power cut may bring back: the directory was not synced since. */
	bool unsynced;
	uint8_t *before; /* NULL: there was no such file */
	size_t n_before;
	bool before_damaged;
};
struct sim_write { /* under way, in a temporary file until it is renamed */
	uint8_t kind;  /* 0: forgotten meanwhile */
	bool synced, failed, renamed;
	uint64_t round, tag;
	uint8_t *data;
	size_t n;
	void (*done)(struct sim *s, int host, uint64_t tag, bool ok);
	struct sim_write *next;
};
struct sim_disk {
	struct sim_file files[SIM_MAX_FILES];
	int n_files;              /* slots in use are below */
	struct sim_write *writes; /* oldest first */
	int64_t busy_until_us;
	double slowness;      /* 1: none */
	bool full, read_only; /* writes fail; removals too */
};
/* Writes a file (the data are copied) to a temporary one, syncs it, renames it, syncs the
 * directory; then `done` (or NULL) is called with `tag` in this life: the file is durable, or (!ok)
 * the disk would not take it. */
typedef void disk_done(struct sim *s, int host, uint64_t tag, bool ok);
void disk_write(struct sim *s, int host, enum file_kind kind, uint64_t round, const void *data, size_t n,
				disk_done *done, uint64_t tag);
/* The file as last renamed, or NULL: there is none, or it is damaged, as its hash would say. */
const struct sim_file *disk_find(const struct sim_disk *d, enum file_kind kind, uint64_t round);
void disk_remove(struct sim_disk *d, enum file_kind kind, uint64_t round);
void disk_sync(struct sim_disk *d); /* the directory: what was renamed and removed so far is durable */
/* A fetched snapshot gets its name, durably. False: there is no part of that round. */
bool disk_adopt(struct sim_disk *d, uint64_t round);
/* The process died; with the machine (`power`), what was not synced is there, is not, or is
 * torn. */
void disk_crash(struct sim *s, int host, bool power);
/* Damages the `which`-th file (modulo their number); false when there is none. */
bool disk_rot(struct sim_disk *d, uint32_t which);
void disk_wipe(struct sim_disk *d);
void disk_release(struct sim_disk *d);

/* ---- HTTP: the head of a request or reply, then the encoded message ---- */

enum http_what { HTTP_CONFIG, HTTP_JOIN, HTTP_REPORT, HTTP_DOCUMENT, HTTP_PAIRS, HTTP_WHATS };
struct http_head {
	uint8_t what;
	uint16_t status;  /* reply: 200, ...; 0: the connection is closed */
	uint32_t version; /* DOCUMENT: the highest that the client speaks */
	uint32_t id;      /* of the client's request */
	uint64_t life;    /* of the client */
	uint64_t after;   /* DOCUMENT: number that the client has; UINT64_MAX: none */
};
/* A request that is not answered yet. */
struct sim_call {
	uint32_t id; /* 0: none */
	void (*done)(void *ctx, const struct http_reply *reply);
	void *ctx;
};

/* ---- coordinator (sim_coordinator.c) ---- */

struct sim_poll {
	bool waiting;
	struct http_head head;
	int64_t until_us;
};
struct sim_coordinator {
	void *memory;
	struct core *core; /* NULL: not running */
	uint32_t version;  /* of the protocol, the highest that it speaks */
	uint64_t life;
	bool dark;            /* its host has no power: nothing answers */
	double disk_slowness; /* 1: none */
	bool writing;         /* one record at a time */
	struct core_record record;
	struct memory_store store;
	struct sim_poll polls[SIM_MAX_WORKERS];
	struct http_head joins[SIM_MAX_WORKERS]; /* waiting for their record; id == 0: none */
	uint32_t join_members[SIM_MAX_WORKERS];
	int64_t timer_us;
};
void coordinator_start(struct sim *s);
/* `silent`: its host lost power, and no connection is closed. */
void coordinator_crash(struct sim *s, bool silent);
/* The kernel of `host` closes the connection on which its dead process waited for news. */
void coordinator_hang_up(struct sim *s, int host);
void coordinator_receive(struct sim *s, const struct packet *p);
/* Looks in now and then, and takes back rounds that are lost. */
void operator_start(struct sim *s);
/* Takes the last `rounds` back, again and again until that is durable. */
void operator_takes_back(struct sim *s, uint64_t rounds);
void coordinator_release(struct sim_coordinator *c);

/* ---- workers ---- */

struct sim_link { /* to a host, as the owner of the mesh sees it */
	bool up;
};

/* Steps that a fragment of the parameters contains and no commit has counted yet. */
struct sim_progress {
	uint32_t ids[SIM_MAX_STEPS]; /* round and step: the same again when it is done again */
	int n;
};

/* The replica that participants have here (train/replica.h leaves it to who makes it): theta_local,
 * and what it is made of. */
struct replica {
	const struct sim *sim;
	const struct sim_worker *worker;
	float *local;
	float *began;  /* local before the steps that it contains, where the participant keeps a start of its own */
	uint64_t step; /* global: the next one */
	struct sim_progress progress[SIM_MAX_FRAGMENTS];
	float *kept[REPLICA_MAX_KEPT];
	int n_kept;
};

/* A file that comes together: fetcher_ops' handle. */
struct sim_part {
	struct state_id id;
	int jobs; /* posted and not done */
	bool dropped;
	bool own, in_memory; /* whole on the own disk; not durable */
	uint8_t *payload, *held;
	struct rv_hash *manifest;
	struct sim_part *next; /* of all of this process */
};

/* Copies for the disk: struct state_copy's handle. */
struct sim_copy {
	uint8_t *snapshot, *replica; /* files; NULL: not asked for */
	size_t n_snapshot, n_replica;
	struct rv_hash full_hash;
};

/* What waits for the storage thread. */
struct sim_task {
	struct sim_part *part; /* NULL: a job of the session core */
	struct store_job job;
	struct fetcher_job step; /* of the part; its data are this task's */
	struct sim_task *next;
};

struct sim_request {
	bool begun, stopped;          /* TRAIN: another request wants the trainer */
	struct trainer_request asked; /* APPLY: one reference to its bytes; INSTALL: a snapshot file */
};
enum { SIM_MAX_REQUESTS = 12 };

/* To one peer. */
struct sim_dials {
	int64_t since_us;
	int n;
};

struct sim_worker {
	/* the machine */
	struct sim_disk disk;
	double speed; /* of training */
	bool dark;    /* power cut: nothing answers */
	/* Bits flipped. Its theta or v is not the run's; since the state of which round; and the rounds
	 * (as bits) of which this process has told its core such a full hash. */
	bool flipped;
	uint64_t flipped_at, told_wrong;
	/* A process has ended by itself with the run's end on this disk, at that round. */
	bool done;
	uint64_t done_round;
	/* the process */
	uint64_t life;    /* 0: not running */
	bool ending;      /* its session has ended; it exits */
	uint64_t term;    /* as stored on its disk */
	uint64_t boot;    /* its wall clock at the start */
	uint32_t version; /* of the protocol: the highest that it speaks */
	struct control_client *control;
	struct sim_call calls[HTTP_WHATS];
	uint32_t last_call;
	bool finished;
	uint32_t member;
	void *session_memory, *round_memory, *reduce_memory, *control_memory;
	struct recovered found;        /* until there is a session */
	struct session_core *session;  /* NULL: not joined */
	const struct round_core *core; /* in it */
	struct grid *reduce;           /* NULL: none */
	struct chunking chunks;        /* of what it reduces */
	struct sim *sim;               /* for the operations of the cores */
	int host;
	uint64_t reduce_round;
	uint32_t reduce_attempt;
	struct global_state global;
	struct replica replica;
	struct participant participant;
	struct mean_residual means;
	struct sim_request requests[SIM_MAX_REQUESTS];
	int n_requests;
	uint64_t working;    /* number of the trainer's event under way: an earlier one is void */
	uint64_t steps_left; /* of the TRAIN under way */
	struct sim_task *tasks;
	struct store_thread store_thread;
	uint8_t *reduced, *flags;
	uint8_t *held[SIM_MAX_WORKERS];
	uint8_t *sums; /* of a roster in rows; NULL: none yet */
	struct sim_progress own_progress;
	struct peers *mesh;      /* NULL: not open */
	struct fetcher *fetcher; /* of its session */
	struct donor *donor;
	void *fetcher_memory, *fetch_core_memory, *donor_memory;
	struct sim_part *parts;
	uint8_t *served; /* what the donor gives of: valid until it looks for something else */
	struct sim_link links[SIM_MAX_WORKERS];
	struct sim_ends ends; /* of connections */
	struct sim_reach reach;
	struct house house;
	struct sim_dials asks; /* of its mesh for routes */
	int reads_from;        /* host: whose bytes the mesh reads */
	uint64_t expected_tx;  /* bytes, when nothing goes wrong in this all-reduce; SIM_ANY_BYTES: not known */
	bool lost_a_link;      /* since it began: what was on it is sent again */
	/* the oracle's */
	struct sim_dials dials[SIM_MAX_WORKERS];
	int replaced[SIM_MAX_WORKERS]; /* links to a peer, by newer ones */
	double over_cap;               /* bytes */
	int64_t wrote_us;
	int64_t timer_us;
	int strange; /* dials of addresses that are nobody's, by this process; since: */
	int64_t life_us;
	int spins; /* turns in a row that were due at once */
};

/* sim_process.c */
void worker_start(struct sim *s, int host);
/* Joined: its session begins. */
void worker_open(struct sim *s, int host, uint32_t member);
/* Ends the process. `silent`: peers learn nothing (power cut); else the kernel closes its
 * connections. */
void worker_crash(struct sim *s, int host, bool silent);
/* A person asks it to stop. */
void worker_leave(struct sim *s, int host);
/* Its session has ended: the process exits, and is started again where it is needed. */
void worker_end(struct sim *s, int host);
void worker_release(struct sim_worker *w);

/* sim_worker.c */
extern const struct session_control_ops sim_control_ops;
void worker_receive(struct sim *s, const struct packet *p);
/* Whatever the worker's cores want done now. After every event. */
void worker_turn(struct sim *s, int host);

/* sim_http.c */
/* The control client of a process that starts: asks for the configuration, joins, follows. */
void http_open(struct sim *s, int host);
void http_receive(struct sim *s, int host, const struct packet *p);

/* sim_trainer.c */
extern const struct session_trainer_ops sim_trainer_ops;
void trainer_load(struct sim *s, int host, struct recovered *found);
void trainer_unload(struct sim_worker *w);

/* sim_training.c: what the trainer's requests come to, at once */
void training_init(struct sim *s, int host); /* w->global is theta0 */
void training_resume(struct sim *s, int host, const struct recovered *found);
void training_release(struct sim_worker *w);
void training_step(struct sim *s, int host, uint64_t round);
bool training_time_is_up(const struct sim *s, const struct sim_worker *w);
/* Whatever is encoded next; false: it comes to nothing. */
bool training_encode(struct sim *s, int host);
void training_apply(struct sim *s, int host, const struct trainer_request *a);
/* How many steps of the next round come before the outer step of `round`. */
uint64_t training_overlap(const struct sim *s, uint64_t round);

/* sim_store.c */
extern const struct session_disk_ops sim_disk_ops;
void store_post_step(struct sim *s, int host, struct sim_part *part, const struct fetcher_job *step);
/* The first task is over: the next begins. */
void store_next(struct sim *s, int host);
void store_end(struct sim *s, int host); /* the process is gone */

/* sim_files.c */
/* Files of the state of `w`, in new memory. */
uint8_t *files_snapshot(const struct sim *s, const struct global_state *g, size_t *n);
uint8_t *files_snapshot_of(const struct sim *s, const struct state_id *id, const uint8_t *payload, size_t *n);
uint8_t *files_log(const struct sim *s, const struct state_log_info *info, const uint8_t *payload, size_t *n);
uint8_t *files_replica(const struct sim *s, const struct sim_worker *w, size_t *n);
void files_read_snapshot(const struct sim *s, const uint8_t *bytes, struct global_state *g);
struct rv_hash files_snapshot_chain(const uint8_t *bytes);
/* A log file's reduced bytes, or NULL. */
const uint8_t *files_log_bytes(const struct sim *s, const struct sim_file *f, struct state_log_info *info);
/* A snapshot or log file holds what the run committed. */
bool files_is_the_runs(const struct sim *s, const struct sim_file *f);
void files_replica_info(const uint8_t *bytes, struct state_replica_info *info);
bool files_replica_waits(const struct sim *s, const uint8_t *bytes); /* for the outer step of its round */
void files_read_replica(const struct sim *s, const uint8_t *bytes, struct replica *r);

/* sim_recovery.c */
void recovery_load(struct sim *s, int host, struct recovered *out); /* w->global is theta0 */
void recovery_prune(struct sim *s, int host, const struct checkpoint_named *named);
void recovery_forget_from(struct sim *s, int host, const struct store_job *j);
bool recovery_find_part(const struct sim_disk *d, uint64_t *round);
void recovery_rewind(struct sim *s, int host, uint64_t round);

/* sim_candidates.c: a worker's addresses in its report; those that the coordinator announces */
void candidates_report(const struct sim_worker *w, struct report *rep);
void candidates_confirm(struct sim *s, int host, struct report *rep);

/* sim_peers.c */
extern const struct session_links_ops sim_links_ops;
struct session_reduce peers_seen(const struct sim_worker *w);
/* Of a process that has joined. */
void mesh_open(struct sim *s, int host);
/* Returns the cap on its upload in bytes/s; 0: none. */
double mesh_cap(const struct sim *s, int host);
/* Reads, writes and times out whatever is due. */
void mesh_handle(struct sim *s, int host);
void mesh_leave(struct sim_worker *w); /* as a process that exits: says goodbye */
void mesh_crash(struct sim *s, int host, bool silent);

/* sim_stream.c */
extern const struct stream_ops sim_stream;

/* sim_fetch.c */
void fetch_open(struct sim *s, int host); /* its session begins */
void fetch_end(struct sim_worker *w);     /* the process is gone */
/* A part's step is done by the storage thread. */
void fetch_run_step(struct sim *s, int host);
void fetch_allow(struct sim_worker *w, const struct document *d);
void fetch_link_changed(struct sim *s, int host, int peer);
/* The state transfer's next frame for a member; without `bulk` no piece. */
bool fetch_next(struct sim_worker *w, uint32_t member, bool bulk, struct peers_message *out);
void fetch_receive(struct sim *s, int host, int from, const struct frame_header *h, const uint8_t *body);
int64_t fetch_deadline_us(struct sim_worker *w);

/* ---- oracle (sim_oracle.c) ---- */

struct sim_contribution {
	uint64_t round, boot;
	uint32_t member, attempt;
	int host;
	struct sim_progress progress;
	uint8_t *bytes;
	float *left;     /* (n) what its encoding leaves of the fragment; NULL: no error feedback */
	uint64_t losses; /* of the worker's residual, before it was given */
	struct sim_contribution *next;
};
struct sim_roster {
	uint64_t round;
	uint32_t attempt;
	struct rv_hash hash; /* of everything in the document that concerns it */
	bool announced;
	int n;
	uint32_t members[NET_MAX_ROW], weights[NET_MAX_ROW];
	uint64_t boots[NET_MAX_ROW];
	int8_t owner[SIM_MAX_CHUNKS]; /* host, by chunk of the round's vector */
	bool held[SIM_MAX_CHUNKS];    /* its owner had a residual of it when the attempt began */
	struct sim_roster *next;
};
/* What error feedback must have kept of a worker's contributions. */
struct sim_residual {
	float *left, *next;                 /* (n) after its latest commit; after the encoding under way */
	uint64_t encoded;                   /* the latest round that it encoded */
	uint64_t losses;                    /* how often it had reason to lose it */
	bool had_reason[SIM_MAX_FRAGMENTS]; /* it had one, since the latest commit with it was given */
	bool gone[SIM_MAX_FRAGMENTS];       /* its process lost it since */
	bool unknown[SIM_MAX_FRAGMENTS];    /* rounds were taken back */
};
/* What encoding the committed means left (sim_means.c). By chunk of the whole vector, but
 * may_lose. */
struct sim_means {
	float *kept, *next;           /* (n) after the latest commit; after that under judgement */
	int8_t owner[SIM_MAX_CHUNKS]; /* host, in the latest commit that had the chunk; SIM_NOBODY */
	bool unknown[SIM_MAX_CHUNKS]; /* rounds were taken back: what the owner says */
	uint32_t attempt[SIM_MAX_ROUNDS];
	/* A worker had reason to lose it since the latest commit of that fragment. */
	bool may_lose[SIM_MAX_WORKERS][SIM_MAX_FRAGMENTS];
};
struct sim_oracle {
	struct sim_means means;
	struct global_state global; /* the run as it must be */
	uint64_t n_committed, term;
	uint64_t last_participants; /* of the latest commit: a set of member numbers */
	uint64_t snapshot_round;    /* the latest that was vouched for */
	struct rv_hash digest[SIM_MAX_ROUNDS], full[SIM_MAX_ROUNDS + 1], chain[SIM_MAX_ROUNDS + 1];
	float *theta[SIM_MAX_ROUNDS + 1], *v[SIM_MAX_ROUNDS + 1];
	struct sim_contribution *contributions; /* newest first */
	struct sim_roster *rosters;
	uint64_t last_seq;
	uint8_t *last_document;     /* (NET_MAX_DOCUMENT_BYTES) */
	size_t last_document_bytes; /* 0: none yet */
	struct sim_residual residuals[SIM_MAX_WORKERS];
	uint16_t *counted[SIM_MAX_WORKERS]; /* (step id, fragment) -> round + 1 in whose commit it is */
	size_t cap_counted[SIM_MAX_WORKERS];
	uint32_t member_of[SIM_MAX_WORKERS]; /* as acknowledged; NET_NO_MEMBER: not yet */
};
void oracle_init(struct sim *s);

/* ---- residuals of means (sim_means.c) ---- */
void means_open(struct sim *s, int host); /* a process starts; its state is loaded */
bool means_left(void *ctx, struct blob **out);
void means_commit(void *ctx, uint64_t round, uint32_t attempt);
void means_forget(void *ctx);
void means_oracle_init(struct sim *s);
void means_oracle_release(struct sim *s);
void means_oracle_announced(struct sim *s, const struct document *d, struct sim_roster *r);
void means_begin(struct sim *s, int host, const struct document *d); /* an attempt */
/* Returns what the mean of chunk i of r's round was encoded with: *room, or NULL. */
const struct feedback *means_oracle_of(struct sim *s, const struct sim_roster *r, uint32_t i, struct feedback *room);
void means_oracle_commit(struct sim *s, const struct sim_roster *r);
void means_oracle_rollback(struct sim *s);
void oracle_loses_residual(struct sim *s, int host);   /* its process has none from now on */
void oracle_resumes_residual(struct sim *s, int host); /* another process has what was saved, or none */
void oracle_forgets_residuals(struct sim *s);
void oracle_encoded(struct sim *s, int host);
void oracle_adopts(struct sim *s, int host, uint64_t round); /* takes its contribution for one of the mean */
void oracle_commits_residual(struct sim *s, const struct sim_contribution *c);
void oracle_contribution(struct sim *s, int host);                   /* at the start of an attempt */
void oracle_record(struct sim *s, const struct core_record *rec);    /* became durable */
void oracle_document(struct sim *s, const uint8_t *bytes, size_t n); /* is about to be announced */
void oracle_applied(struct sim *s, int host);                        /* or loaded */
void oracle_installed(struct sim *s, int host);
/* Its state is not the run's, or was not when it told its full hash: it may take itself for
 * wrong. */
bool oracle_is_wrong(const struct sim *s, int host);
void oracle_full_hash(struct sim *s, int host, uint64_t round,
					  const struct rv_hash *hash);                  /* is about to be told to the core */
void oracle_rollback(struct sim *s, const struct core_record *rec); /* became durable */
/* A worker takes itself for wrong. */
void oracle_wrong_state(struct sim *s, int host, const char *text);
void oracle_finished(struct sim *s, int host);
void oracle_named(struct sim *s, uint32_t member); /* by the coordinator: its full hash is not the majority's */
void oracle_member(struct sim *s, int host, uint32_t member); /* was acknowledged */
void oracle_bytes(struct sim *s, int host);                   /* the all-reduce is over; calm universes only */
/* The full hash of `g`: what the run's is where the bits are the same. */
struct rv_hash oracle_full_hash_of(const struct sim *s, const struct global_state *g);
/* Without the files of `host` the run's state can still be had from disks: a snapshot and every log
 * entry since. */
bool oracle_others_hold_the_run(const struct sim *s, int host);
void oracle_release(struct sim *s);

/* sim_oracle_mesh.c: what the mesh may do */
void oracle_frame(struct sim *s, int host, int peer);   /* came, as if from `peer` */
void oracle_link_up(struct sim *s, int host, int peer); /* SIM_NOBODY: of a member that does not exist */
void oracle_link_down(struct sim *s, int host, int peer, enum rv_err why, const char *text);
void oracle_trouble(struct sim *s, int host, enum rv_err why, const char *text); /* something that became no link */
void oracle_mesh_start(struct sim *s);
void oracle_dial(struct sim *s, int host, int peer, const struct sim_where *to);
/* A relay has the host and `peer` dial each other at one moment; the host's mesh dials. */
void oracle_opens(struct sim *s, int host, int peer, int relay, const char *at);
void oracle_punches(struct sim *s, int host, int peer, bool v6);
void oracle_opening_over(struct sim *s, int a, int b);
/* The host takes the relay for one that connects nobody. */
void oracle_bad_relay(struct sim *s, int host, int relay, const char *text);
void oracle_relay_fault(struct sim *s, int host, int relay, const char *text); /* what a relay sends is refused */
void oracle_asks(struct sim *s, int host);                                     /* its mesh asks for another route */
void oracle_written(struct sim *s, int host, size_t n);

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
	uint64_t clipped;                        /* chunks of committed contributions */
	uint64_t named, resynced, faded;         /* workers with a flipped bit */
	uint64_t trace;                          /* a hash over all events: equal for equal seeds */
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

struct sim_identity {
	struct identity id;
	uint64_t *next_number; /* of the universe's streams */
};

struct sim {
	struct sim_options opt;
	struct sim_plan *plan; /* the caller's */
	struct sim_window windows[SIM_HOSTS][SIM_LUCKS];
	int liar;          /* host; SIM_NOBODY: none */
	int false_address; /* host that states addresses of others; SIM_NOBODY: none */
	int withholder, ghost, impostor, impersonated;
	bool had_impostor, had_shared_home;
	uint32_t false_relays; /* set of those that were false at some time */
	uint8_t withheld;      /* enum reduce_type */
	bool unlike;           /* the withholder gives each peer another mean */
	int n_planted;         /* faults that wait for something */
	uint64_t term_wanted;  /* by the operator of FAULT_ROLLBACK */
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
	uint64_t next_number; /* of streams */
	struct sim_pair pairs[SIM_MAX_WORKERS][SIM_MAX_WORKERS];
	bool healed; /* liveness phase */
	bool failed;
	char why[1024];
	bool verbose;
	struct sim_stats stats;
	/* what every worker knows of the run */
	struct global_config global_config;
	struct run_config run; /* what participants read of it */
	struct rv_hash run_hash;
	size_t max_payload; /* encoded bytes of the longest fragment */
	float *theta0, *scratch;
	struct document *doc;           /* scratch */
	struct checkpoint_index *index; /* scratch */
	uint8_t *doc_bytes;             /* scratch (NET_MAX_DOCUMENT_BYTES) */
};

/* sim_options.c */
struct sim_options sim_options_plain(void); /* what a planted universe does not say */
struct sim_options sim_options_of(uint64_t seed);
/* "seed 7: 4 workers (at least 2), ..." */
void sim_options_text(const struct sim_options *opt, char *out, size_t cap);

/* sim_plan.c */
void sim_plan_of(const struct sim_options *opt, struct sim_plan *out); /* everything is chosen */
/* "at 12.345 s w3 is frozen for 2.0 s" */
void sim_fault_text(const struct sim_fault *f, char *out, size_t cap);

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

/* sim_expect.c: what planted universes demand */
/* Returns the row of a name, or -1. */
int expect_find(const char *name);
void expect_check(struct sim *s); /* at the end */

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

#endif
