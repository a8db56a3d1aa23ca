/* loss_curve.c: see loss_curve.h. */
#include "worker/local/loss_curve.h"

#include <math.h>
#include <stdbool.h>

enum { MOST = LOCAL_CHART_POINTS - 1 };

static void halve(struct loss_curve *c) {
	int n = 0;
	for (int i = 0; i < c->n; i += 2)
		c->at[n++] = c->at[i];
	c->n = n;
	c->halved++;
}

static bool is_kept(const struct loss_curve *c) {
	return (c->seen & ((UINT64_C(1) << c->halved) - 1)) == 0;
}

void loss_curve_rewind(struct loss_curve *c, uint64_t round) {
	while (c->n > 0 && c->at[c->n - 1].round > round)
		c->n--;
	if (c->seen > 0 && c->last.round > round && c->n > 0)
		c->last.round = c->at[c->n - 1].round, c->last.loss = c->at[c->n - 1].loss;
	if (c->n == 0)
		*c = (struct loss_curve){.n = 0};
}

void loss_curve_add(struct loss_curve *c, uint64_t round, double loss) {
	if (!isfinite(loss))
		return;
	if (c->seen > 0 && c->last.round >= round)
		loss_curve_rewind(c, round > 0 ? round - 1 : 0);
	if (is_kept(c) && c->n == MOST)
		halve(c);
	if (is_kept(c)) {
		c->at[c->n].round = round;
		c->at[c->n++].loss = loss;
	}
	c->last.round = round;
	c->last.loss = loss;
	c->seen++;
}

static int add_point(json_t *list, uint64_t round, double loss) {
	return json_array_append_new(list, json_pack("[I, f]", (json_int_t)round, loss));
}

json_t *loss_curve_json(const struct loss_curve *c) {
	json_t *list = json_array();
	int bad = list ? 0 : -1;
	for (int i = 0; i < c->n && bad == 0; i++)
		bad = add_point(list, c->at[i].round, c->at[i].loss);
	if (bad == 0 && c->seen > 0 && (c->n == 0 || c->at[c->n - 1].round < c->last.round))
		bad = add_point(list, c->last.round, c->last.loss);
	if (bad == 0)
		return list;
	json_decref(list);
	return NULL;
}
