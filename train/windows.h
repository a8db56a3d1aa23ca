/* windows.h: sections of weights and gradients that a device holds while it computes with them,
 * where several devices divide them: ZeRO-2 divides gradients, ZeRO-3 weights as well (arXiv
 * 1910.02054).
 *
 * A device owns a slice (comm_slice_of) of the block of parameters. All else is in windows: one for
 * the section before the layers, one for that behind them, and two for layers in turns, so that one
 * is on its way while another is computed with:
 *
 *   - before a layer is used its weights are gathered from their owners, and the next layer's are
 *     on their way;
 *   - when a layer's gradients are final they are summed to their owners, while the layer before it
 *     is computed; the owner adds them to its slice, over all micro-batches.
 *
 * All devices make the same calls in the same order: one that has no micro-batch left makes an idle
 * pass. Each window is an allocation of its own. */
#ifndef RV_TRAIN_WINDOWS_H
#define RV_TRAIN_WINDOWS_H

#include "train/comm.h"
#include "train/model/model.h"
#include "train/savings.h"

enum { WINDOWS = 4 };
/* Returns the floats of each window: of weights, and again of gradients. */
void windows_sizes(const struct model_layout *l, size_t floats[WINDOWS]);

struct windows;

/* Allocates the windows of a device that owns `slice`. `m` and its backend are borrowed; theta and
 * grad (backend memory) are those of the slice. theta NULL: weights are whole. RV_E_NOMEM. */
enum rv_err windows_new(struct model *m, struct comm_slice slice, const float *theta, float *grad, struct windows **out,
						struct rv_errtext *et);
void windows_free(struct windows *w); /* NULL is fine */
/* Sets the member that exchanges, `rank` of `n`. */
void windows_join(struct windows *w, struct comm *comm, int n, int rank);
/* Lists the windows of weights in params; with whole weights none. */
void windows_weights(const struct windows *w, const float *params[WEIGHT_ALLOCATIONS]);

/* Begins a step: weights are gathered anew, and the first micro-batch's gradients replace the
 * slice's. */
void windows_begin_step(struct windows *w);
/* Begin and end a micro-batch's pass, in which the model calls the holder. With `careful` the host
 * waits for each exchange, as the first step of a process needs, whose operations wait for results
 * of the device, and every evaluation. windows_end returns false if an exchange failed: the step
 * starts again, on all devices. */
void windows_begin(struct windows *w, bool careful);
bool windows_end(struct windows *w);
/* Makes the exchanges of a pass without a micro-batch; its gradients are zero. Without `backward`
 * only those of a forward pass. */
void windows_idle(struct windows *w, bool backward);

#endif
