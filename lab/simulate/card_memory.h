/* card_memory.h: what fits the memory of GPUs, by the memory plan (train/memory): which savings a
 * worker would take, and the largest model. Needs no GPU and no plugin. */
#ifndef RV_LAB_SIMULATE_CARD_MEMORY_H
#define RV_LAB_SIMULATE_CARD_MEMORY_H

#include "base/run_config.h"
#include "train/memory/choose.h"

#include <stdbool.h>
#include <stdio.h>

/* The GPUs of one worker, and its host. */
struct card_room {
	int cards;
	size_t card_bytes; /* of each */
	size_t host_bytes; /* SIZE_MAX: any */
};

/* A model on them. */
struct card_answer {
	struct run_config run;
	struct savings savings;
	bool fits;                     /* else the savings are what was asked for */
	size_t n_params;               /* 0: no model fits */
	size_t device_bytes;           /* of each card at least, with what a driver takes */
	size_t host_bytes;             /* of the worker's process */
	double vector_bytes_per_param; /* weights, gradients and moments on a card */
	double slower;                 /* memory_cost */
	double link_bytes;             /* memory_link_bytes */
};

/* The cards of the table that is printed where none is named: 8 to 24 GB, 2 and 8 of 24, 8 of
 * 80. */
enum { CARD_ROOMS = 7 };
extern const struct card_room card_rooms[CARD_ROOMS];

/* The run of a worker. */
struct card_question {
	const char *model; /* of model_presets */
	int64_t sequences; /* of a step */
	bool strangers;    /* with what preset `strangers` sets, and text that the run hands out */
};
/* Sets *run to that run, in bf16. RV_E_INVALID: no such model. */
enum rv_err card_run_of(const struct card_question *q, struct run_config *run, struct rv_errtext *et);
/* Plans `run` in `room` with the savings that `wish` leaves open chosen as a worker does. The
 * faults of memory_plan_make. */
enum rv_err card_plan(const struct run_config *run, const struct card_room *room, const struct savings_wish *wish,
					  struct card_answer *out, struct rv_errtext *et);
/* Finds the largest GPT-2 that fits, whatever model `q` names: heads of 64 channels, layers as in
 * its paper's sizes, at most 48, and its vocabulary and context. */
enum rv_err card_largest(const struct card_room *room, const struct card_question *q, struct card_answer *out,
						 struct rv_errtext *et);

enum { CARD_ROOM_TEXT_BYTES = 24 };
/* Print a line of the table of rooms, and of the table of a model's savings; `first`: its head
 * before it. JSON: one object a line. RV_E_NOMEM, RV_E_IO. */
enum rv_err card_print_room(const struct card_room *room, const struct card_answer *a, bool first, bool json,
							struct rv_errtext *et);
enum rv_err card_print_savings(const struct card_room *room, const struct card_answer *a, bool chosen, bool first,
							   bool json, struct rv_errtext *et);

#endif
