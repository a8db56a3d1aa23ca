/* temperature.c: drivers' names are in Documentation/hwmon and drivers/thermal. */
#include "worker/sensors/temperature.h"

#include "worker/sensors/sysfs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Chips of processors: Intel, AMD, VIA; device trees; IBM. */
static const char *const chips[] = {"coretemp",    "k10temp",     "k8temp",      "zenpower",     "via_cputemp",
									"cpu_thermal", "cpu-thermal", "soc_thermal", "scpi_sensors", NULL};
/* Thermal zones of processors begin with one of these; acpitz is a board's, as a last resort. */
static const char *const zones[] = {"x86_pkg_temp", "cpu", "soc", "bigcore", "littlecore", NULL};
static const char *const last_zones[] = {"acpitz", NULL};

/* Sensors of broken boards report such values. */
enum { LEAST_CELSIUS = -40, MOST_CELSIUS = 150 };

static double hotter(double a, double b) {
	return isnan(a) || b > a ? b : a;
}

static double celsius_of(const char *dir, const char *name) {
	int64_t milli;
	if (!sysfs_number(dir, name, &milli) || milli < LEAST_CELSIUS * 1000 || milli > MOST_CELSIUS * 1000)
		return NAN;
	return (double)milli / 1000;
}

static bool begins_with_any(const char *text, const char *const *names) {
	for (; *names; names++)
		if (strncmp(text, *names, strlen(*names)) == 0)
			return true;
	return false;
}

/* ---- hwmon ---- */

/* AMD's Tctl is a control value, on some processors up to 27 degrees above the real one, Tdie: it
 * counts only where nothing else does. */
struct chip {
	double hottest, control;
};

static bool is_input(const char *name) {
	const size_t n = strlen(name);
	return strncmp(name, "temp", 4) == 0 && n > 6 && strcmp(name + n - 6, "_input") == 0;
}

static void take_input(void *ctx, const char *path, const char *name) {
	struct chip *c = ctx;
	char dir[SYSFS_PATH_BYTES], file[SYSFS_TEXT_BYTES], label[SYSFS_TEXT_BYTES];
	if (!is_input(name) || strlen(name) >= sizeof file)
		return;
	(void)snprintf(dir, sizeof dir, "%.*s", (int)(strlen(path) - strlen(name) - 1), path);
	(void)snprintf(file, sizeof file, "%.*s_label", (int)(strlen(name) - strlen("_input")), name);
	(void)sysfs_text(dir, file, label);
	double *to = strcmp(label, "Tctl") == 0 ? &c->control : &c->hottest;
	*to = hotter(*to, celsius_of(dir, name));
}

static void take_chip(void *ctx, const char *path, const char *name) {
	(void)name;
	double *hottest = ctx;
	char chip[SYSFS_TEXT_BYTES];
	struct chip c = {NAN, NAN};
	if (!sysfs_text(path, "name", chip) || !begins_with_any(chip, chips))
		return;
	(void)sysfs_each(path, take_input, &c);
	*hottest = hotter(*hottest, isnan(c.hottest) ? c.control : c.hottest);
}

/* ---- thermal zones ---- */

struct zones {
	const char *const *names;
	double hottest;
};

static void take_zone(void *ctx, const char *path, const char *name) {
	struct zones *z = ctx;
	char type[SYSFS_TEXT_BYTES];
	if (strncmp(name, "thermal_zone", strlen("thermal_zone")) == 0 && sysfs_text(path, "type", type) &&
		begins_with_any(type, z->names))
		z->hottest = hotter(z->hottest, celsius_of(path, "temp"));
}

static double hottest_zone(const char *root, const char *const *names) {
	struct zones z = {names, NAN};
	char dir[SYSFS_PATH_BYTES];
	(void)snprintf(dir, sizeof dir, "%s/sys/class/thermal", root);
	(void)sysfs_each(dir, take_zone, &z);
	return z.hottest;
}

double temperature_cpu_celsius(const char *root) {
	double hottest = NAN;
	char dir[SYSFS_PATH_BYTES];
	(void)snprintf(dir, sizeof dir, "%s/sys/class/hwmon", root);
	(void)sysfs_each(dir, take_chip, &hottest);
	if (isnan(hottest))
		hottest = hottest_zone(root, zones);
	return isnan(hottest) ? hottest_zone(root, last_zones) : hottest;
}
