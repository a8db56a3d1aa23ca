/* reduce_points.h: the failpoints of what an all-reduce sends: the first, the middle and the last
 * chunk of each kind, by the ownership map of the attempt. Nothing without RV_FAILPOINTS. */
#ifndef RV_WORKER_MESH_REDUCE_POINTS_H
#define RV_WORKER_MESH_REDUCE_POINTS_H

#ifdef RV_FAILPOINTS
#include "net/reduce/reduce.h"

struct reduce_points {
	uint32_t scatter, n_scatter, gather, n_gather; /* sent so far, and in all if nothing is resumed */
};
/* Marks the begin of a (later) attempt. */
void reduce_points_begin(struct reduce_points *p, const struct document *d, uint32_t self_member);
/* Reaches the failpoint of a message that is about to be sent, if it has one. */
void reduce_points_sending(struct reduce_points *p, const struct reduce_msg *m);
#define REDUCE_POINTS_FIELD             struct reduce_points points;
#define REDUCE_POINTS_BEGIN(p, d, self) reduce_points_begin(p, d, self)
#define REDUCE_POINTS_SENDING(p, m)     reduce_points_sending(p, m)
#else
#define REDUCE_POINTS_FIELD
#define REDUCE_POINTS_BEGIN(p, d, self) ((void)0)
#define REDUCE_POINTS_SENDING(p, m)     ((void)0)
#endif

#endif
