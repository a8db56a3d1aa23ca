/* method_papa.c: PAPA (Jolicoeur-Martineau et al., Population Parameter Averaging, arXiv 2304.03094): every H steps each
 * replica is pulled towards the mean of all: theta_i <- mix theta_i + (1 - mix) mean. mix = 0 is FedAvg, mix = 1 leaves
 * the replicas alone. What is exchanged are outer gradients against the last mean, so that every codec serves. */
#include "lab/averaging.h"
#include "lab/synchronous.h"

#include <stdio.h>

static void configure(struct lab_config *c) {
	snprintf(c->run.outer, sizeof c->run.outer, "average");
}

const struct lab_method lab_method_papa = {
	.name = "papa",
	.averages = true,
	.configure = configure,
	.n_replicas = averaging_replicas,
	.round = synchronous_round,
	.theta = averaging_theta,
	.state_hash = averaging_state_hash,
	.payload_bytes = averaging_payload_bytes,
};
