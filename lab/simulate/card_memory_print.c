/* card_memory_print.c: tables of card_memory.h as text and as JSON lines. */
#include "lab/simulate/card_memory.h"

#include "base/short_number.h"
#include "lab/simulate/print.h"

#include <inttypes.h>
#include <jansson.h>

#define GB_OF(bytes) ((double)(bytes) / 1e9)

/* Writes "8 x 24 GB". */
static void card_room_text(const struct card_room *room, char out[CARD_ROOM_TEXT_BYTES]) {
	if (room->cards == 1)
		(void)snprintf(out, CARD_ROOM_TEXT_BYTES, "%.4g GB", GB_OF(room->card_bytes));
	else
		(void)snprintf(out, CARD_ROOM_TEXT_BYTES, "%d x %.4g GB", room->cards, GB_OF(room->card_bytes));
}

static const char *savings_or_none(const struct savings *s, char out[SAVINGS_TEXT_BYTES]) {
	savings_text(s, out, SAVINGS_TEXT_BYTES);
	return out[0] ? out : "none";
}

static enum rv_err print_json(const char *event, const struct card_room *room, const struct card_answer *a, bool chosen,
							  struct rv_errtext *et) {
	char savings[SAVINGS_TEXT_BYTES];
	savings_text(&a->savings, savings, sizeof savings);
	return simulate_print_line(json_pack("{ss si sI sb sb sI sI sI ss sI sI sf sf sf}", "event", event, "cards",
										 room->cards, "card_bytes", (json_int_t)room->card_bytes, "fits", (int)a->fits,
										 "chosen", (int)chosen, "params", (json_int_t)a->n_params, "n_layer",
										 (json_int_t)a->run.n_layer, "n_embd", (json_int_t)a->run.n_embd, "savings",
										 savings, "device_bytes", (json_int_t)a->device_bytes, "host_bytes",
										 (json_int_t)a->host_bytes, "bytes_per_param", a->vector_bytes_per_param,
										 "slower", a->slower, "link_bytes", a->link_bytes),
							   et);
}

enum rv_err card_print_room(const struct card_room *room, const struct card_answer *a, bool first, bool json,
							struct rv_errtext *et) {
	char card[CARD_ROOM_TEXT_BYTES], params[RV_SHORT_NUMBER_BYTES], shape[32], savings[SAVINGS_TEXT_BYTES];
	if (json)
		return print_json("card_memory", room, a, a->fits, et);
	if (first)
		printf("The largest GPT-2 that fits, by the memory plan: steps of %" PRId64 " x %" PRId64 " tokens in bf16.\n\n"
			   "%-12s%10s%12s%10s%12s%12s%12s%9s  %s\n",
			   a->run.batch, a->run.context, "cards", "params", "shape", "B/param", "a card", "host", "link/step",
			   "slower", "savings");
	card_room_text(room, card);
	(void)snprintf(shape, sizeof shape, "%" PRId64 " x %" PRId64, a->run.n_layer, a->run.n_embd);
	if (a->n_params == 0)
		printf("%-12s%10s\n", card, "none");
	else
		printf("%-12s%10s%12s%10.2f%9.1f GB%9.1f GB%9.1f GB%7.0f %%  %s\n", card,
			   rv_short_number((double)a->n_params, params), shape, a->vector_bytes_per_param, GB_OF(a->device_bytes),
			   GB_OF(a->host_bytes), GB_OF(a->link_bytes), 100 * a->slower, savings_or_none(&a->savings, savings));
	return RV_OK;
}

static void print_savings_head(const struct card_room *room, const struct card_answer *a) {
	char card[CARD_ROOM_TEXT_BYTES], params[RV_SHORT_NUMBER_BYTES];
	card_room_text(room, card);
	printf("%s parameters in steps of %" PRId64 " x %" PRId64 " tokens on %s%s: the largest micro-batch of each "
		   "combination of savings.\nWhat a worker takes by itself is marked.\n\n"
		   "%-2s%-64s%12s%12s%10s%12s%9s\n",
		   rv_short_number((double)a->n_params, params), a->run.batch, a->run.context, card,
		   room->cards > 1 ? " together" : "", "", "savings", "a card", "host", "B/param", "link/step", "slower");
}

enum rv_err card_print_savings(const struct card_room *room, const struct card_answer *a, bool chosen, bool first,
							   bool json, struct rv_errtext *et) {
	char savings[SAVINGS_TEXT_BYTES];
	if (json)
		return print_json("card_savings", room, a, chosen, et);
	if (first)
		print_savings_head(room, a);
	printf("%-2s%-64s%9.1f GB%9.1f GB%10.2f%9.1f GB", chosen ? "*" : "", savings_or_none(&a->savings, savings),
		   GB_OF(a->device_bytes), GB_OF(a->host_bytes), a->vector_bytes_per_param, GB_OF(a->link_bytes));
	if (a->fits)
		printf("%7.0f %%\n", 100 * a->slower);
	else
		printf("%9s\n", "too much");
	return RV_OK;
}
