/* presets.c: see presets.h.
 *
 * covenant-72b  arXiv 2603.08163: 72 billion parameters, 70 peers, rounds of 30 inner steps; of
 *               each 4096 values the 64 largest as 2 bits; lines of 500 Mbit/s down and 110
 *               Mbit/s up; 94.5 % of the time computing, 70 s of exchange a round. It follows that
 *               a round computes for 70 s * 0.945 / 0.055 = 1203 s, 40.1 s a step. Layers: the
 *               model's card. Latency, and what an exchange takes beside its line, are ours. */
#include "lab/simulate/presets.h"

#include <stddef.h>

const struct rv_preset simulate_presets[] = {
	{"covenant-72b", "72B parameters, 70 peers, 500/110 Mbit/s (arXiv 2603.08163)",
	 "params = 72B\nlayers = 80\nworkers = 70\nsteps-per-round = 30\nstep-time-ms = 40100\n"
	 "codec = topk64\nmean-codec = topk64\nrate = 110mbit\nrate-down = 500mbit\n"
	 "beside = The paper: 94.50 % computing, 70 s of exchange a round, gathered through object storage "
	 "(arXiv 2603.08163).\n"},
	{NULL, NULL, NULL},
};
