/* options.c: the checks of rivulet-worker's options. */
#include "worker/options/options.h"

#include "net/address.h"
#include "net/mesh/rate.h"
#include "worker/allow/hours.h"
#include "worker/options/input_checks.h"
#include "worker/options/link.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum rv_err worker_options_relay_rate(const struct worker_options *o, int64_t *out, struct rv_errtext *et) {
	static const struct rv_option rate[] = {{"relay-for-others", RV_OPT_RATE, 0, 0, "0", RATE_LEAST_BYTES_PER_S,
											 (double)RATE_MAX_BYTES_PER_S, NULL, NULL, NULL},
											{.name = NULL}};
	*out = 0;
	if (o->relay_for_others[0] == '\0' || strcmp(o->relay_for_others, "none") == 0)
		return RV_OK;
	if (strcmp(o->relay_for_others, "unlimited") == 0)
		return rv_fail(et, RV_E_INVALID, "relay-for-others: must be a rate such as 5mbit, or none");
	return rv_options_set(rate, out, "relay-for-others", o->relay_for_others, et);
}

enum rv_err worker_options_check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct worker_options *o = opts;
	struct address a;
	RV_TRY(worker_link_check(o, args, et));
	if (!o->dir[0])
		return rv_fail(et, RV_E_INVALID, "dir: must not be empty");
	struct device_choice device;
	RV_TRY(device_parse(o->device, &device, et));
	enum rv_err e = o->listen[0] ? address_parse(o->listen, &a, et) : RV_OK;
	if (e != RV_OK)
		return rv_fail_context(et, e, "listen");
	int64_t rate;
	RV_TRY(worker_options_relay_rate(o, &rate, et));
	struct allow_hours hours;
	e = allow_hours_parse(o->hours, &hours, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "hours");
	if (!o->advertise[0])
		return RV_OK;
	e = address_parse(o->advertise, &a, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "advertise");
}

/* Checks --data; skips a URL, and what --dir remembers, which was checked when it was given. A run
 * may hand out its text: only its configuration says whether none is a mistake. */
static enum rv_err check_data(const struct worker_options *o, struct rv_errtext *et) {
	if (!o->data[0] || strstr(o->data, "://"))
		return RV_OK;
	enum rv_err e = input_check_data(o->data, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "--data");
}

enum rv_err worker_options_check_files(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct worker_options *o = opts;
	char remembered[sizeof o->dir + 16];
	(void)snprintf(remembered, sizeof remembered, "%s/run.link", o->dir);
	if (!worker_link_is_given(o, args) && access(remembered, R_OK) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "no invite link was given, and %s remembers none", o->dir);
	struct device_choice device;
	RV_TRY(device_choose(o->device, &device, et));
	RV_TRY(check_data(o, et));
	RV_TRY(input_check_weights(o->init, et));
	return input_check_tokenizer(o->tokenizer, et);
}
