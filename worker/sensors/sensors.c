/* sensors.c: the thread that reads. */
#include "worker/sensors/sensors.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/os_file.h"
#include "worker/sensors/consoles.h"
#include "worker/sensors/desktop.h"
#include "worker/sensors/load.h"
#include "worker/sensors/nvml.h"
#include "worker/sensors/person.h"
#include "worker/sensors/power_supply.h"
#include "worker/sensors/sysfs.h"
#include "worker/sensors/temperature.h"
#include "worker/sensors/x11.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EVERY_MS = 1000 };

/* Shared by the owner and the thread: the last of them frees it. */
struct sensors {
	char root[SYSFS_PATH_BYTES / 2];
	bool gpu;
	atomic_int holders;
	int owner_fd, thread_fd; /* a pipe; the thread ends when its owner's end is closed */
	pthread_mutex_t lock;    /* guards `latest` */
	struct allow_readings latest;
};

/* What the thread reads with. */
struct instruments {
	struct bus *system, *session;
	struct x11 *x11;
	struct nvml *nvml; /* NULL: GPUs are left alone, as asking wakes one that sleeps */
	struct load_watch load;
};

static struct instruments open_instruments(const struct sensors *s) {
	return (struct instruments){.system = bus_new(BUS_SYSTEM),
								.session = bus_new(BUS_SESSION),
								.x11 = x11_new(),
								.nvml = s->gpu ? nvml_new() : NULL};
}

static void close_instruments(struct instruments *i) {
	bus_free(i->system);
	bus_free(i->session);
	x11_free(i->x11);
	nvml_free(i->nvml);
}

static void read_person(struct instruments *i, const char *root, struct allow_readings *out) {
	const struct person_sources s = {.gnome = desktop_gnome_idle_s(i->session),
									 .x11 = x11_idle_s(i->x11),
									 .logind = desktop_logind_idle_s(i->system, rv_clock_monotonic_us()),
									 .terminals = consoles_idle_s(root, rv_clock_wall_us()),
									 .wayland = getenv("WAYLAND_DISPLAY") != NULL,
									 .display = consoles_has_display(root)};
	person_combine(&s, out);
}

/* The kernel's and UPower's answers: on battery if one of them says so. */
static enum allow_answer either(enum allow_answer a, enum allow_answer b) {
	return a > b ? a : b;
}

static struct allow_readings read_all(struct instruments *i, const char *root) {
	struct allow_readings r = allow_readings_unknown();
	power_supply_read(root, &r);
	r.on_battery = either(r.on_battery, desktop_on_battery(i->system));
	r.on_metered = desktop_on_metered(i->system);
	read_person(i, root, &r);
	r.cpu_celsius = temperature_cpu_celsius(root);
	r.gpu_celsius = nvml_celsius(i->nvml);
	r.others_percent = load_others_percent(&i->load, root, rv_clock_process_us());
	r.read_us = rv_clock_monotonic_us();
	return r;
}

/* ---- the thread ---- */

static void drop(struct sensors *s) {
	const int before = atomic_fetch_sub(&s->holders, 1);
	RV_ASSERT(before > 0);
	if (before > 1)
		return;
	if (s->thread_fd >= 0)
		(void)close(s->thread_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void publish(struct sensors *s, const struct allow_readings *r) {
	pthread_mutex_lock(&s->lock);
	s->latest = *r;
	pthread_mutex_unlock(&s->lock);
}

/* Waits for the time of the next reading. Returns false once the owner has closed its end. */
static bool goes_on(const struct sensors *s) {
	struct pollfd end = {.fd = s->thread_fd, .events = POLLIN};
	int n;
	do
		n = poll(&end, 1, EVERY_MS);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

static void *main_of_thread(void *arg) {
	struct sensors *s = arg;
	struct instruments i = open_instruments(s);
	do {
		const struct allow_readings r = read_all(&i, s->root);
		publish(s, &r);
	} while (goes_on(s));
	close_instruments(&i);
	drop(s);
	return NULL;
}

/* ---- its owner ---- */

static enum rv_err open_pipe(struct sensors *s, struct rv_errtext *et) {
	int fds[2];
	if (os_file_pipe(fds) != 0)
		return rv_fail_errno(et, errno, "cannot open a pipe for the sensors");
	s->thread_fd = fds[0];
	s->owner_fd = fds[1];
	return RV_OK;
}

static enum rv_err start_thread(struct sensors *s, struct rv_errtext *et) {
	pthread_t thread;
	atomic_fetch_add(&s->holders, 1);
	const int refused = pthread_create(&thread, NULL, main_of_thread, s);
	if (refused != 0) {
		drop(s);
		return rv_fail_errno(et, refused, "cannot start the thread of the sensors");
	}
	(void)pthread_detach(thread);
	return RV_OK;
}

enum rv_err sensors_open(const struct sensors_config *cfg, struct sensors **out, struct rv_errtext *et) {
	struct sensors *s = calloc(1, sizeof *s);
	if (!s)
		return rv_fail(et, RV_E_NOMEM, "no memory for the sensors");
	(void)snprintf(s->root, sizeof s->root, "%s", cfg->root);
	s->gpu = cfg->gpu;
	atomic_init(&s->holders, 1);
	s->owner_fd = s->thread_fd = -1;
	s->latest = allow_readings_unknown();
	pthread_mutex_init(&s->lock, NULL);
	enum rv_err e = open_pipe(s, et);
	if (e == RV_OK)
		e = start_thread(s, et);
	if (e == RV_OK)
		*out = s;
	else
		sensors_close(s);
	return e;
}

struct allow_readings sensors_latest(struct sensors *s) {
	pthread_mutex_lock(&s->lock);
	const struct allow_readings r = s->latest;
	pthread_mutex_unlock(&s->lock);
	return r;
}

void sensors_close(struct sensors *s) {
	if (!s)
		return;
	if (s->owner_fd >= 0)
		(void)close(s->owner_fd);
	drop(s);
}
