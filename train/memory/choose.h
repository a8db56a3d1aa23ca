/* choose.h: which savings a replica takes, by the memory there is. */
#ifndef RV_TRAIN_MEMORY_CHOOSE_H
#define RV_TRAIN_MEMORY_CHOOSE_H

#include "train/memory/fit.h"

/* Savings that a person fixed; the others are chosen. */
struct savings_wish {
	int micro_batch; /* 0: any, up to the run's batch */
	int logits_rows; /* 0: any */
	int recompute;   /* enum recompute; SAVINGS_ANY */
	int moments;     /* enum moments; SAVINGS_ANY */
	int offload;     /* bool; SAVINGS_ANY */
	int stream;      /* the same */
	int zero;        /* enum zero; SAVINGS_ANY */
};
enum { SAVINGS_ANY = -1 };
/* A wish that leaves everything open. */
#define SAVINGS_WISH_ANY                                                                                               \
	((struct savings_wish){.recompute = SAVINGS_ANY,                                                                   \
						   .moments = SAVINGS_ANY,                                                                     \
						   .offload = SAVINGS_ANY,                                                                     \
						   .stream = SAVINGS_ANY,                                                                      \
						   .zero = SAVINGS_ANY})

/* Chooses no savings if training fits the room without swap and without them, or `stream` alone:
 * the others change the last bits of results. Otherwise chooses those with the fastest step
 * (memory_cost) whose plan fits without swap, or if none does, with it; ignores q->savings. Moments
 * of 8 bits train a little differently, so they are taken only where that is 5 % faster. Returns
 * false if nothing fits: *out is then what the person asked for, and nothing else. */
bool savings_choose(const struct memory_request *q, const struct savings_wish *wish, const struct memory_room *room,
					struct savings *out);

/* Sets *out to q->savings, with the most rows of logits that fit, if all do not. */
void savings_choose_logits(const struct memory_request *q, const struct memory_room *room, struct savings *out);

enum { SAVINGS_TEXT_BYTES = 160 };
/* Writes the options that choose these savings: "--recompute norms --micro-batch 2". "": none. */
void savings_text(const struct savings *s, char *out, size_t cap);

#endif
