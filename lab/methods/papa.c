/* papa.c: PAPA (Jolicoeur-Martineau et al., Population Parameter Averaging, arXiv 2304.03094):
 * every H steps each replica is pulled towards the mean of all: theta_i <- mix theta_i + (1 - mix)
 * mean. mix = 0 is FedAvg, mix = 1 leaves the replicas alone. They exchange outer gradients against
 * the last mean, so that every codec serves. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

const struct lab_method lab_method_papa = {
	.name = "papa", .prescribes_outer = true, .prescribed_outer = OUTER_average, SYNCHRONOUS_METHOD};
