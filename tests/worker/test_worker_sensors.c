/* test_worker_sensors.c: trees of files as the kernel documents them (sysfs-class-power, hwmon's
 * sysfs-interface, thermal's sysfs-api, proc_stat(5)), and which of several reports of a person
 * counts. What services report is in test_worker_desktop.c. */
#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/allow/heat.h"
#include "worker/sensors/consoles.h"
#include "worker/sensors/load.h"
#include "worker/sensors/person.h"
#include "worker/sensors/power_supply.h"
#include "worker/sensors/sensors.h"
#include "worker/sensors/temperature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <utime.h>

static char root[SCRATCH_PATH];

static int setup(void **state) {
	(void)state;
	scratch_make(root, sizeof root);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(root);
	return 0;
}

/* Writes ROOT/path, making its directories. */
static void put(const char *path, const char *text) {
	char dir[2 * SCRATCH_PATH];
	(void)snprintf(dir, sizeof dir, "%s%s", root, path);
	for (char *slash = dir + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(dir, 0755);
		*slash = '/';
	}
	char *name = strrchr(dir, '/');
	*name = '\0';
	scratch_write(dir, name + 1, text, strlen(text));
}

/* Writes files below a device: {"type", "Battery", "status", "Full", NULL}. */
static void put_supply(const char *device, const char *const *files) {
	for (; *files; files += 2) {
		char path[128];
		(void)snprintf(path, sizeof path, "/sys/class/power_supply/%s/%s", device, files[0]);
		put(path, files[1]);
	}
}
#define SUPPLY(device, ...) put_supply(device, (const char *const[]){__VA_ARGS__, NULL})

/* ---- batteries ---- */

static struct allow_readings power(void) {
	struct allow_readings r = allow_readings_unknown();
	power_supply_read(root, &r);
	return r;
}

static void test_batteries(void **state) {
	(void)state;
	assert_int_equal(power().on_battery, ALLOW_UNKNOWN); /* this system has no such directory */
	SUPPLY("AC", "type", "Mains\n", "online", "1\n");
	assert_int_equal(power().on_battery, ALLOW_NO); /* a desktop */
	assert_true(isnan(power().battery_percent));
	SUPPLY("BAT0", "type", "Battery\n", "present", "1\n", "status", "Charging\n", "capacity", "40\n");
	assert_int_equal(power().on_battery, ALLOW_NO);
	assert_true(power().battery_percent == 40);
	SUPPLY("AC", "online", "0\n");
	SUPPLY("BAT0", "status", "Discharging\n");
	assert_int_equal(power().on_battery, ALLOW_YES);
	SUPPLY("ucsi-source-psy-1", "type", "USB\n", "online", "1\n"); /* charged by USB, not by mains */
	assert_int_equal(power().on_battery, ALLOW_NO);
	SUPPLY("ucsi-source-psy-1", "online", "0\n");
	SUPPLY("BAT1", "type", "Battery\n", "status", "Full\n", "capacity", "99\n"); /* the second of two is not used yet */
	assert_int_equal(power().on_battery, ALLOW_YES);
	assert_true(power().battery_percent == 40);
}

static void test_other_batteries(void **state) {
	(void)state;
	SUPPLY("hidpp_battery_0", "type", "Battery\n", "scope", "Device\n", "status", "Discharging\n", "capacity", "7\n");
	assert_int_equal(power().on_battery, ALLOW_NO); /* a mouse's */
	assert_true(isnan(power().battery_percent));
	SUPPLY("BAT0", "type", "Battery\n", "present", "0\n", "status", "Discharging\n"); /* an empty bay */
	assert_int_equal(power().on_battery, ALLOW_NO);
	SUPPLY("BAT1", "type", "Battery\n", "status", "Unknown\n", "capacity", "full\n");
	assert_int_equal(power().on_battery, ALLOW_UNKNOWN);
	SUPPLY("BAT1", "status", "Not charging\n"); /* held at its threshold, with mains that do not say so */
	assert_int_equal(power().on_battery, ALLOW_NO);
	SUPPLY("ups", "type", "UPS\n", "status", "Discharging\n", "capacity", "1000\n");
	assert_int_equal(power().on_battery, ALLOW_YES);
	assert_true(isnan(power().battery_percent)); /* neither says a possible number */
}

/* ---- temperatures ---- */

static void test_chips(void **state) {
	(void)state;
	assert_true(isnan(temperature_cpu_celsius(root)));
	put("/sys/class/hwmon/hwmon0/name", "nvme\n");
	put("/sys/class/hwmon/hwmon0/temp1_input", "90000\n");
	assert_true(isnan(temperature_cpu_celsius(root)));
	put("/sys/class/hwmon/hwmon1/name", "coretemp\n");
	put("/sys/class/hwmon/hwmon1/temp1_input", "51000\n");
	put("/sys/class/hwmon/hwmon1/temp1_max", "100000\n");
	put("/sys/class/hwmon/hwmon1/temp2_input", "63500\n");
	put("/sys/class/hwmon/hwmon1/temp3_input", "nonsense\n");
	put("/sys/class/hwmon/hwmon1/temp4_input", "255000\n");
	assert_true(temperature_cpu_celsius(root) == 63.5);
}

/* AMD: the control value counts only where there is no other. */
static void test_control_value(void **state) {
	(void)state;
	put("/sys/class/hwmon/hwmon2/name", "k10temp\n");
	put("/sys/class/hwmon/hwmon2/temp1_input", "77000\n");
	put("/sys/class/hwmon/hwmon2/temp1_label", "Tctl\n");
	assert_true(temperature_cpu_celsius(root) == 77);
	put("/sys/class/hwmon/hwmon2/temp2_input", "50000\n");
	put("/sys/class/hwmon/hwmon2/temp2_label", "Tdie\n");
	assert_true(temperature_cpu_celsius(root) == 50);
}

static void test_zones(void **state) {
	(void)state;
	put("/sys/class/thermal/cooling_device0/type", "Processor\n");
	put("/sys/class/thermal/thermal_zone0/type", "acpitz\n");
	put("/sys/class/thermal/thermal_zone0/temp", "27800\n");
	assert_true(temperature_cpu_celsius(root) == 27.8);
	put("/sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
	put("/sys/class/thermal/thermal_zone1/temp", "48312\n");
	put("/sys/class/thermal/thermal_zone2/type", "gpu-thermal\n");
	put("/sys/class/thermal/thermal_zone2/temp", "99000\n");
	assert_true(temperature_cpu_celsius(root) == 48.312);
}

static void test_hysteresis(void **state) {
	(void)state;
	const double rises_and_falls[] = {70, 79.9, 80, 82, 79, 75, 74.9, 76, 79.9, 80};
	const bool want[] = {false, false, true, true, true, true, false, false, false, true};
	bool hot = false;
	for (size_t i = 0; i < sizeof want; i++)
		assert_int_equal(hot = allow_is_hot(hot, rises_and_falls[i], 80), want[i]);
	assert_false(allow_is_hot(true, NAN, 80));
	assert_false(allow_is_hot(true, 300, 0));
}

/* ---- load ---- */

static void test_load(void **state) {
	(void)state;
	struct load_watch w = {.started = false};
	assert_true(isnan(load_others_percent(&w, root, 0)));
	put("/proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
	assert_true(isnan(load_others_percent(&w, root, 0)));
	put("/proc/stat", "cpu  190 0 110 1050 50 0 0 0 0 0\ncpu0 1 1 1 1\n"); /* 100 of 200 ticks */
	assert_true(load_others_percent(&w, root, 0) == 50);
	put("/proc/stat", "cpu  290 0 110 1150 50 0 0 0 0 0\n"); /* again, and half of it was ours */
	assert_true(load_others_percent(&w, root, 500000) == 25);
	put("/proc/stat", "cpu  300 0 110 1240 50 0 0 0 0 0\n");
	assert_true(load_others_percent(&w, root, 2500000) == 0); /* counted in other steps than ours */
	put("/proc/stat", "cpu  1 2\n");
	assert_true(isnan(load_others_percent(&w, root, 0)));
}

/* ---- people ---- */

static void typed_at(const char *path, int64_t wall_s) {
	char file[2 * SCRATCH_PATH];
	put(path, "");
	(void)snprintf(file, sizeof file, "%s%s", root, path);
	const struct utimbuf t = {.actime = wall_s, .modtime = wall_s + 5000};
	assert_int_equal(utime(file, &t), 0);
}

static void test_terminals(void **state) {
	(void)state;
	const int64_t now_s = 1800000000;
	assert_int_equal(consoles_idle_s(root, now_s * RV_US_PER_S), -1);
	typed_at("/dev/tty", now_s);   /* whichever the asking program has */
	typed_at("/dev/ttyS0", now_s); /* a line */
	typed_at("/dev/pts/ptmx", now_s);
	assert_int_equal(consoles_idle_s(root, now_s * RV_US_PER_S), -1);
	typed_at("/dev/tty2", now_s - 900);
	typed_at("/dev/pts/0", now_s - 300);
	assert_int_equal(consoles_idle_s(root, now_s * RV_US_PER_S), 300);
	typed_at("/dev/pts/11", now_s + 60); /* a clock that was moved back */
	assert_int_equal(consoles_idle_s(root, now_s * RV_US_PER_S), 0);
}

static void test_displays(void **state) {
	(void)state;
	assert_int_equal(unsetenv("DISPLAY"), 0);
	assert_int_equal(unsetenv("WAYLAND_DISPLAY"), 0);
	assert_false(consoles_has_display(root));
	put("/run/user/1000/bus", "");
	assert_false(consoles_has_display(root));
	put("/run/user/1000/wayland-0", "");
	assert_true(consoles_has_display(root));
	scratch_empty(root);
	put("/tmp/.X11-unix/X0", "");
	assert_true(consoles_has_display(root));
}

static void test_which_source_counts(void **state) {
	(void)state;
	static const struct {
		struct person_sources s; /* gnome, x11, logind, terminals; wayland, display */
		int64_t idle_s;
		const char *source;
	} cases[] = {
		{{-1, -1, -1, -1, false, false}, -1, ""},
		{{700, 5, 0, 900, true, true}, 700, "GNOME"}, /* Xwayland and a hint do not count beside it */
		{{-1, 600, 0, 900, false, true}, 600, "X11"},
		{{-1, 600, 0, 3, false, true}, 3, "terminals"}, /* somebody came by SSH */
		{{-1, 600, 400, 900, true, true}, 400, "logind"},
		{{-1, 30, 400, 900, true, true}, 30, "Xwayland"}, /* used, by what it sees */
		{{-1, 600, -1, 900, true, true}, -1, ""},         /* it sees no input of other windows */
		{{-1, 30, -1, 900, true, true}, 30, "Xwayland"},
		{{-1, -1, -1, 900, false, true}, -1, ""}, /* a screen of which nobody reports */
		{{-1, -1, -1, 9, false, true}, 9, "terminals"},
		{{-1, -1, -1, 900, false, false}, 900, "terminals"}, /* a server */
		{{-1, -1, 0, 900, false, false}, 0, "logind"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct allow_readings r = allow_readings_unknown();
		person_combine(&cases[i].s, &r);
		if (r.idle_s != cases[i].idle_s || strcmp(r.idle_source, cases[i].source) != 0)
			fail_msg("case %zu: %lld s by \"%s\"", i, (long long)r.idle_s, r.idle_source);
	}
}

/* ---- the thread ---- */

/* Waits for readings that were begun after now. */
static struct allow_readings fresh(struct sensors *s) {
	const int64_t now_us = rv_clock_monotonic_us();
	const struct timespec pause = {.tv_nsec = 10 * 1000000};
	struct allow_readings first = {0}, r;
	while ((r = sensors_latest(s)).read_us == first.read_us || r.read_us < now_us) {
		if (r.read_us >= now_us)
			first = r;
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

static void test_the_thread(void **state) {
	(void)state;
	struct sensors *s;
	SUPPLY("BAT0", "type", "Battery\n", "status", "Discharging\n", "capacity", "12\n");
	put("/sys/class/hwmon/hwmon1/name", "coretemp\n");
	put("/sys/class/hwmon/hwmon1/temp1_input", "51000\n");
	assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1), 0);
	assert_int_equal(setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent", 1), 0);
	assert_ok(sensors_open(&(struct sensors_config){.root = root}, &s, &et));
	struct allow_readings r = fresh(s);
	assert_true(r.on_battery == ALLOW_YES && r.battery_percent == 12 && r.cpu_celsius == 51);
	assert_true(isnan(r.gpu_celsius) && r.on_metered == ALLOW_UNKNOWN);
	SUPPLY("BAT0", "status", "Charging\n");
	put("/sys/class/hwmon/hwmon1/temp1_input", "52000\n");
	r = fresh(s);
	assert_true(r.on_battery == ALLOW_NO && r.cpu_celsius == 52);
	sensors_close(s);
	sensors_close(NULL);
}

#define IN_A_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		IN_A_TREE(test_batteries),  IN_A_TREE(test_other_batteries),
		IN_A_TREE(test_chips),      IN_A_TREE(test_control_value),
		IN_A_TREE(test_zones),      cmocka_unit_test(test_hysteresis),
		IN_A_TREE(test_load),       IN_A_TREE(test_terminals),
		IN_A_TREE(test_displays),   cmocka_unit_test(test_which_source_counts),
		IN_A_TREE(test_the_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
