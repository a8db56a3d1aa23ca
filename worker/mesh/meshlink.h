/* meshlink.h: joins the mesh of peer links (net/mesh/peers.h) with what travels on them: the all-reduce first, then state
 * for joiners. Faults of a peer cost it its link and nothing else. One thread.
 */
#ifndef RV_WORKER_MESH_MESHLINK_H
#define RV_WORKER_MESH_MESHLINK_H

#include "base/event.h"
#include "worker/mesh/allreduce.h"
#include "worker/transfer/donor.h"
#include "worker/transfer/fetcher.h"

struct meshlink_config {
	struct peers_config peers; /* owner is filled in here */
	struct allreduce *reduce;  /* borrowed, as are the others */
	struct donor *donor;
	struct fetcher *fetcher;
	struct rv_events *events;
};

struct meshlink;

/* RV_E_NOMEM, and what peers_new refuses. */
enum rv_err meshlink_new(const struct meshlink_config *cfg, struct meshlink **out, struct rv_errtext *et);
void meshlink_free(struct meshlink *m); /* NULL is fine */
struct peers *meshlink_peers(struct meshlink *m);

/* The run is done: from now on peers may end before us, which is no trouble, and is not told. */
void meshlink_expect_ends(struct meshlink *m);
/* peers_ban and peers_allow, of a new document. */
void meshlink_allow(struct meshlink *m, int64_t now_us, const struct document *d);
/* After allreduce_start: tells the core of the links there are. */
void meshlink_announce_links(struct meshlink *m, int64_t now_us);
void meshlink_handle(struct meshlink *m, int64_t now_us, const struct pollfd *fds, int n);
void meshlink_pump(struct meshlink *m, int64_t now_us);

#endif
