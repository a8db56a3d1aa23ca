/* meshlink.h: connects the peer links (net/mesh/peers.h) with their users: the all-reduce first,
 * then state for joiners, then contributions for auditors, then the run's text. A peer's fault
 * closes its link and has no other effect. One thread. */
#ifndef RV_WORKER_MESH_MESHLINK_H
#define RV_WORKER_MESH_MESHLINK_H

#include "base/event.h"
#include "worker/audit/auditor.h"
#include "worker/audit/gather.h"
#include "worker/mesh/allreduce.h"
#include "worker/text/text_donor.h"
#include "worker/text/text_members.h"
#include "worker/transfer/donor.h"
#include "worker/transfer/fetcher.h"

struct meshlink_config {
	struct peers_config peers; /* owner is filled in here */
	struct allreduce *reduce;  /* borrowed, as are the others */
	struct donor *donor;
	struct fetcher *fetcher;
	struct text_members *text;     /* what is asked of others; NULL: this worker fetches no text */
	struct text_donor *text_donor; /* NULL: the run has no text of its own */
	struct auditor *auditor;       /* this and the next two NULL: the run has no audits */
	struct gather *gather;         /* whole rounds, for `weigh` */
	struct donor *contributions;   /* gives this worker's own to auditors */
	struct rv_events *events;
	/* peers_owner.on_unreached, with this `ctx` */
	void (*on_unreached)(void *ctx, uint32_t member, enum peers_need need);
	/* peers_owner.on_route_end, with this `ctx` */
	void (*on_route_end)(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed);
	void *ctx;
};

struct meshlink;

/* Makes the mesh. RV_E_NOMEM and the faults of peers_new. */
enum rv_err meshlink_new(const struct meshlink_config *cfg, struct meshlink **out, struct rv_errtext *et);
void meshlink_free(struct meshlink *m); /* NULL is fine */
struct peers *meshlink_peers(struct meshlink *m);

/* Marks the run as done: from now on a peer's end is expected and not logged. */
void meshlink_expect_ends(struct meshlink *m);
/* Applies a new document's members and bans (peers_allow, peers_ban). */
void meshlink_allow(struct meshlink *m, int64_t now_us, const struct document *d);
/* Pauses the links, or ends that: meshlink_allow follows (peers_pause). */
void meshlink_pause(struct meshlink *m, int64_t now_us, bool paused);
/* Reports the existing links to the all-reduce, after allreduce_start. */
void meshlink_announce_links(struct meshlink *m, int64_t now_us);
void meshlink_handle(struct meshlink *m, int64_t now_us, const struct pollfd *fds, int n);
void meshlink_pump(struct meshlink *m, int64_t now_us);

#endif
