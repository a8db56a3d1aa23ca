/* device.c: see device.h. */
#include "kernels/device.h"

#include "base/assert.h"
#include "base/parallel.h"
#include "kernels/plugin.h"
#include "kernels/plugins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN(name) ", " #name ", " #name ":0,1,..."
static const char kinds[] = "auto, cpu, cpu:N, ref"
#include "kernels/plugins.def"
	;
#undef PLUGIN

static enum rv_err fail_text(const char *text, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "device = %.40s: must be %s", text, kinds);
}

/* Reads a number without sign; *end is behind it. */
static bool read_index(const char *at, const char **end, int *out) {
	int n = 0, digits = 0;
	for (; *at >= '0' && *at <= '9' && digits < 6; at++, digits++)
		n = 10 * n + (*at - '0');
	*end = at;
	*out = n;
	return digits > 0;
}

static enum rv_err parse_count(const char *text, const char *at, struct device_choice *c, struct rv_errtext *et) {
	if (!read_index(at, &at, &c->n) || *at)
		return fail_text(text, et);
	if (c->n < 1 || c->n > DEVICE_MAX)
		return rv_fail(et, RV_E_RANGE, "device = %.40s: must be 1 to %d replicas", text, DEVICE_MAX);
	for (int i = 0; i < c->n; i++)
		c->index[i] = i;
	return RV_OK;
}

static bool has_index(const struct device_choice *c, int index) {
	for (int i = 0; i < c->n; i++)
		if (c->index[i] == index)
			return true;
	return false;
}

static enum rv_err parse_list(const char *text, const char *at, struct device_choice *c, struct rv_errtext *et) {
	c->n = 0;
	for (;; at++) {
		int index;
		if (!read_index(at, &at, &index) || (*at && *at != ','))
			return fail_text(text, et);
		if (has_index(c, index))
			return rv_fail(et, RV_E_INVALID, "device = %.40s: %d is given twice", text, index);
		if (c->n == DEVICE_MAX)
			return rv_fail(et, RV_E_RANGE, "device = %.40s: at most %d devices", text, DEVICE_MAX);
		c->index[c->n++] = index;
		if (!*at)
			return RV_OK;
	}
}

enum rv_err device_parse(const char *text, struct device_choice *out, struct rv_errtext *et) {
	*out = (struct device_choice){.backend = "cpu", .n = 1};
	out->automatic = strcmp(text, "auto") == 0;
	if (out->automatic || strcmp(text, "cpu") == 0)
		return RV_OK;
	if (strncmp(text, "cpu:", 4) == 0)
		return parse_count(text, text + 4, out, et);
	out->backend = "ref";
	if (strcmp(text, "ref") == 0)
		return RV_OK;
	for (int i = 0; plugin_entries[i]; i++) {
		const size_t n = strlen(plugin_entries[i]->name);
		out->backend = plugin_entries[i]->name;
		if (strcmp(text, out->backend) == 0)
			return RV_OK;
		if (strncmp(text, out->backend, n) == 0 && text[n] == ':')
			return parse_list(text, text + n + 1, out, et);
	}
	return fail_text(text, et);
}

void device_planned_gpus(int n, struct device_choice *out) {
	RV_ASSERT(n >= 1 && n <= DEVICE_MAX);
	*out = (struct device_choice){.backend = plugin_entries[0]->name, .n = n};
	for (int i = 0; i < n; i++)
		out->index[i] = i;
}

bool device_is_gpu(const struct device_choice *c) {
	return backend_is_gpu(c->backend);
}

const char *device_maker(const struct device_choice *c) {
	const struct plugin_entry *entry = plugin_entry_of(c->backend);
	return entry ? entry->maker : NULL;
}

void device_kind(const struct device_choice *c, char out[DEVICE_TEXT_BYTES]) {
	const bool gpu = device_is_gpu(c);
	int n = snprintf(out, DEVICE_TEXT_BYTES, "%s", c->backend);
	if (c->n > 1 && !gpu)
		(void)snprintf(out + n, DEVICE_TEXT_BYTES - (size_t)n, ":%d", c->n);
	for (int i = 0; gpu && c->n > 1 && i < c->n; i++)
		n += snprintf(out + n, DEVICE_TEXT_BYTES - (size_t)n, "%c%d", i ? ',' : ':', i);
}

/* Checks that all GPUs of c can be used. */
static enum rv_err look_for(const struct device_choice *c, struct rv_errtext *et) {
	const struct backend_plugin *p;
	struct plugin_device d;
	int there = 0;
	RV_TRY(plugin_load(c->backend, &p, et));
	RV_TRY(p->devices(&there, et));
	for (int i = 0; i < c->n; i++) {
		if (c->index[i] >= there)
			return rv_fail(et, RV_E_RANGE, "GPU %d does not exist: this computer has %d, counted from 0", c->index[i],
						   there);
		RV_TRY(p->device(c->index[i], &d, et));
	}
	return RV_OK;
}

/* Makes of `auto` the first GPU that can be used, of the first kind that has one; or the CPU, with
 * every kind's reason. */
static void choose_by_itself(struct device_choice *c) {
	struct device_choice gpu = *c;
	size_t used = 0;
	for (int i = 0; plugin_entries[i]; i++) {
		struct rv_errtext why = {0};
		gpu.backend = plugin_entries[i]->name;
		if (look_for(&gpu, &why) == RV_OK) {
			c->backend = gpu.backend;
			c->why_not_gpu[0] = 0;
			return;
		}
		const size_t room = sizeof c->why_not_gpu - used;
		const int n = snprintf(c->why_not_gpu + used, room, "%s%s", i ? "; " : "", why.text);
		used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
	}
}

enum rv_err device_choose(const char *text, struct device_choice *out, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	RV_TRY(device_parse(text, out, et));
	if (out->automatic)
		choose_by_itself(out);
	if (out->automatic || !device_is_gpu(out))
		return RV_OK;
	enum rv_err e = look_for(out, &why);
	if (e == RV_OK)
		return RV_OK;
	return rv_fail(et, e, "device = %.40s: %.400s; --device cpu trains on the processor instead", text, why.text);
}

bool device_has_gpu(void) {
	bool has = false;
	for (int i = 0; plugin_entries[i] && !has; i++) {
		const struct backend_plugin *p;
		int there = 0;
		has = plugin_load(plugin_entries[i]->name, &p, NULL) == RV_OK && p->devices(&there, NULL) == RV_OK && there > 0;
	}
	return has;
}

static int share_of_threads(const struct device_choice *c, int threads) {
	if (c->n == 1)
		return threads;
	if (threads == 0)
		threads = parallel_cores();
	return threads / c->n > 0 ? threads / c->n : 1;
}

enum rv_err device_open(const struct device_choice *c, int i, const struct backend_options *options,
						struct backend **out, struct rv_errtext *et) {
	RV_ASSERT(i >= 0 && i < c->n);
	struct backend_options o = *options;
	o.device = c->index[i];
	o.threads = share_of_threads(c, options->threads);
	return backend_open(c->backend, &o, out, et);
}

const char *device_libraries(const struct device_choice *c) {
	const struct backend_plugin *p;
	return plugin_load(c->backend, &p, NULL) == RV_OK ? p->libraries() : NULL;
}

size_t device_free_bytes(const struct device_choice *c) {
	const struct backend_plugin *p;
	size_t least = SIZE_MAX;
	if (plugin_load(c->backend, &p, NULL) != RV_OK)
		return SIZE_MAX;
	for (int i = 0; i < c->n; i++) {
		struct plugin_device d;
		if (p->device(c->index[i], &d, NULL) == RV_OK && d.free_bytes < least)
			least = d.free_bytes;
	}
	return least;
}
