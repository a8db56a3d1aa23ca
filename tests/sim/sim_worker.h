/* sim_worker.h: a worker: its machine, its process, and the platforms around its cores. */
#ifndef RV_TESTS_SIM_SIM_WORKER_H
#define RV_TESTS_SIM_SIM_WORKER_H

#include "net/mesh/peers.h"
#include "net/reduce/grid.h"
#include "outer/committer.h"
#include "outer/mean_residual.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_plan.h"
#include "tests/sim/sim_text.h"
#include "train/participant/participant.h"
#include "worker/join/control_client.h"
#include "worker/mesh/house.h"
#include "worker/mesh/receipts.h"
#include "worker/session/core.h"
#include "worker/state/checkpoint_index.h"
#include "worker/state/means_recovery.h"
#include "worker/state/recovery.h"
#include "worker/transfer/donor.h"
#include "worker/transfer/fetcher.h"

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
	float *laid_by; /* its gradient's memory, in real replicas */
	float *began;   /* local before the steps that it contains, where the participant keeps a start of its own */
	uint64_t step;  /* global: the next one */
	uint64_t next;  /* number of the next sequence that it reads */
	struct reading reading; /* of a run with leases: what it may read */
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

/* Audits that its document orders, and when it has their results. */
struct sim_audits {
	int n;
	struct audit_order orders[NET_MAX_AUDITS];
	int64_t due_us[NET_MAX_AUDITS];
};

/* The sums that it was given as a final owner, by round (sim_sums.c). */
enum { SIM_SUMS_ROUNDS = 16 };
struct sim_sums {
	struct blob *of[SIM_SUMS_ROUNDS]; /* NULL: none */
	uint64_t round[SIM_SUMS_ROUNDS];
	int turn;
	int64_t again_us;
};

/* An audit of training that its document orders, and its result; verdict 0: none yet. */
struct sim_score {
	struct score_order order;
	int64_t due_us, patient_us;
	struct score_result found;
};
struct sim_scores {
	int n;
	struct sim_score of[NET_MAX_SCORES];
};

/* What one peer has given a member that fetches for ever, and what that asked for last. */
struct sim_greed {
	struct frame_fetch asked;
	bool waits;
	int64_t next_us; /* not before this does it ask again */
	uint64_t given;  /* bytes, by this process of the peer */
};

struct sim_worker {
	/* the machine */
	struct sim_disk disk;
	double speed; /* of training */
	bool dark;    /* power cut: nothing answers */
	bool paused;  /* by its owner */
	struct sim_sums kept_sums;
	struct sim_text *text; /* in runs with leases; NULL: none yet */
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
	bool turns;       /* a turn is due soon */
	uint64_t term;    /* as stored on its disk */
	uint64_t boot;    /* its wall clock at the start */
	uint32_t version; /* of the protocol: the highest that it speaks */
	struct control_client *control;
	struct sim_call calls[HTTP_WHATS];
	uint32_t last_call;
	bool finished, ended_banned; /* ended_banned: the coordinator refuses it for good */
	int64_t evidence_us;         /* not before this is evidence shown again */
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
	/* The latest roster of its own round that it was told of, and whether that has it. */
	uint64_t told_round;
	uint32_t told_attempt;
	bool told_in;
	uint64_t parted; /* hosts that it lets no link come up with (sim_again.c) */
	struct global_state global;
	struct replica replica;
	struct participant participant;
	struct committer committer; /* of the last encoding */
	struct sim_audits audits;
	struct sim_scores scores;
	struct mean_residual means;
	struct receipts receipts;
	struct sim_request requests[SIM_MAX_REQUESTS];
	int n_requests;
	uint64_t working;    /* number of the trainer's event under way: an earlier one is void */
	uint64_t steps_left; /* of the TRAIN under way */
	bool read_out;       /* its leases ended before these */
	struct sim_task *tasks;
	struct store_thread store_thread;
	uint8_t *reduced, *flags;
	uint8_t *recoded; /* its contribution by another codec; NULL: none yet */
	/* Trees: of that (NULL: none yet), of what is sent; leaves of NET_MAX_ROW contributions, and of
	 * the means (NULL: none yet). */
	struct rv_hash *recoded_nodes, *leaves;
	const struct rv_hash *own_nodes;
	uint8_t false_seal[SEAL_BYTES]; /* of a member that lies */
	uint8_t own_codec;              /* id; 0: the run's */
	uint8_t *held;                  /* NET_MAX_ROW contributions; NULL: none yet */
	uint8_t *sums;                  /* of a roster in rows; NULL: none yet */
	struct sim_progress own_progress;
	struct peers *mesh;      /* NULL: not open */
	struct fetcher *fetcher; /* of its session */
	struct donor *donor;
	void *fetcher_memory, *fetch_core_memory, *donor_memory;
	struct sim_part *parts;
	struct sim_greed greed[SIM_ORDINARY];
	uint8_t greedy_body[FRAME_FETCH_BYTES];
	uint8_t *served; /* what the donor gives of: valid until it looks for something else */
	struct sim_link links[SIM_MAX_WORKERS];
	struct sim_ends ends; /* of connections */
	struct sim_reach reach;
	struct house house;
	struct sim_dials asks; /* of its mesh for routes */
	int reads_from;        /* host: whose bytes the mesh reads */
	uint64_t expected_tx;  /* bytes, when nothing goes wrong in this all-reduce */
	bool lost_a_link;      /* since it began: what was on it is sent again */
	/* the oracle's */
	struct sim_dials dials[SIM_MAX_WORKERS];
	int replaced[SIM_MAX_WORKERS]; /* links to a peer, by newer ones */
	double over_cap;               /* bytes */
	int64_t wrote_us;
	int64_t timer_us;
	int strange; /* dials of addresses that are nobody's, by this process; since: */
	int64_t life_us;
	int comebacks; /* of the coordinator, since then: it dials everybody again */
	int spins;     /* turns in a row that were due at once */
};

/* sim_process.c */
void worker_start(struct sim *s, int host);
/* Joined: its session begins. */
void worker_open(struct sim *s, int host, uint32_t member);
/* Ends the process. `silent`: peers learn nothing (power cut); else the kernel closes its
 * connections. */
void worker_crash(struct sim *s, int host, bool silent);
/* A person asks it to stop. */
void worker_crash_and_return(struct sim *s, int host); /* killed, and started again soon */
void worker_leave(struct sim *s, int host);
/* Its owner pauses it, or ends that. */
void worker_pause(struct sim *s, int host, bool paused);
/* Its session has ended: the process exits, and is started again where it is needed. */
void worker_end(struct sim *s, int host);
void worker_release(struct sim_worker *w);

/* sim_worker.c */
extern const struct session_control_ops sim_control_ops;
void worker_receive(struct sim *s, const struct packet *p);
/* Whatever the worker's cores want done now. After every event. */
void worker_turn(struct sim *s, int host);
/* The same, after data have come: at once, or in a large universe a little later. */
void worker_turn_soon(struct sim *s, int host);

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
/* Returns false if its leases end before this step. */
bool training_step(struct sim *s, int host, uint64_t round);
bool training_time_is_up(const struct sim *s, const struct sim_worker *w);
/* Whatever is encoded next; false: it comes to nothing. */
bool training_encode(struct sim *s, int host, struct commitment *commitment);
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
/* The coordinator starts; a record became durable: no member's address is announced anew without
 * end. */
void moves_begin(struct sim *s);
void moves_record(struct sim *s, const struct core_record *rec);

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

/* sim_audits.c */
void audits_follow(struct sim *s, int host, const struct document *d);
void audits_report(struct sim *s, int host, struct report *rep);
void audits_forget(struct sim_worker *w); /* its process has ended */
void audits_event(struct sim *s, const struct core_event *ev);
void audits_watch(struct sim *s); /* the coordinator runs */
/* Returns true if it shows the coordinator no sums. */
bool audits_hides_sums(const struct sim *s, int host);
/* sim_sums.c: it votes; it has a turn; it is no more */
void sums_keep(struct sim_worker *w);
void sums_show(struct sim *s, int host);
void sums_release(struct sim_worker *w);
bool audits_banished(const struct sim *s, int host);
/* Returns true if the adversary shows what it contributed to the first auditor of a round only, and
 * hides it from this one. */
bool audits_hides_from(struct sim *s, int host, uint64_t round);
void audits_end(struct sim *s);

/* sim_scores.c: the same of training */
void scores_follow(struct sim *s, int host, const struct document *d);
void scores_report(struct sim *s, int host, struct report *rep);
/* Names the inner states of the host's contribution, in a universe whose audits repeat. */
void scores_commit(const struct sim *s, int host, uint64_t round, struct commitment *c);
void scores_forget(struct sim_worker *w);
void scores_event(struct sim *s, const struct core_event *ev);
void scores_watch(struct sim *s);
/* Returns true if the host is, or was, in quarantine. */
bool scores_keeps_out(const struct sim *s, int host);
void scores_end(struct sim *s); /* the universe is over */

#endif
