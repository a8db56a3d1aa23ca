/* power_supply.c: on battery means that a battery of the system discharges and no mains is online.
 * Mains alone do not tell: laptops that charge by USB have no "Mains", and "online" of a docking
 * station's may be 0 while another one feeds. */
#include "worker/sensors/power_supply.h"

#include "worker/sensors/sysfs.h"

#include <stdio.h>
#include <string.h>

struct supplies {
	int batteries;           /* of the system */
	int discharging, silent; /* of them: that discharge, and that do not say what they do */
	int online;              /* mains and chargers that feed */
	double emptiest;         /* percent; NaN: none says */
};

static void take_battery(struct supplies *s, const char *path) {
	char status[SYSFS_TEXT_BYTES], scope[SYSFS_TEXT_BYTES];
	int64_t percent, present = 1;
	(void)sysfs_text(path, "scope", scope);
	(void)sysfs_number(path, "present", &present);
	if (strcmp(scope, "Device") == 0 || present == 0)
		return;
	s->batteries++;
	(void)sysfs_text(path, "status", status);
	s->discharging += strcmp(status, "Discharging") == 0;
	s->silent += status[0] == '\0' || strcmp(status, "Unknown") == 0;
	if (sysfs_number(path, "capacity", &percent) && percent >= 0 && percent <= 100 &&
		!((double)percent >= s->emptiest)) /* NaN at first */
		s->emptiest = (double)percent;
}

static void take(void *ctx, const char *path, const char *name) {
	(void)name;
	struct supplies *s = ctx;
	char type[SYSFS_TEXT_BYTES];
	int64_t online = 0;
	if (!sysfs_text(path, "type", type))
		return;
	if (strcmp(type, "Battery") == 0 || strcmp(type, "UPS") == 0)
		take_battery(s, path);
	else if (sysfs_number(path, "online", &online)) /* 1: fixed, 2: programmable voltage */
		s->online += online > 0;
}

static enum allow_answer verdict(const struct supplies *s) {
	if (s->batteries == 0 || s->online > 0)
		return ALLOW_NO;
	if (s->discharging > 0)
		return ALLOW_YES;
	return s->silent > 0 ? ALLOW_UNKNOWN : ALLOW_NO; /* full or charging */
}

void power_supply_read(const char *root, struct allow_readings *out) {
	struct supplies s = {.emptiest = NAN};
	char dir[SYSFS_PATH_BYTES];
	(void)snprintf(dir, sizeof dir, "%s/sys/class/power_supply", root);
	const bool there = sysfs_each(dir, take, &s);
	out->on_battery = there ? verdict(&s) : ALLOW_UNKNOWN;
	out->battery_percent = s.emptiest;
}
