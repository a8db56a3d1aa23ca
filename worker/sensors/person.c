/* person.c: see person.h. */
#include "worker/sensors/person.h"

#include <stdio.h>

struct source {
	int64_t idle_s;
	const char *name;
};

static struct source of_display(const struct person_sources *s) {
	if (s->gnome >= 0)
		return (struct source){s->gnome, "GNOME"};
	if (s->x11 >= 0 && !s->wayland)
		return (struct source){s->x11, "X11"};
	return (struct source){s->logind, "logind"};
}

static struct source later_use(struct source a, struct source b) {
	return a.idle_s >= 0 && (b.idle_s < 0 || a.idle_s <= b.idle_s) ? a : b;
}

void person_combine(const struct person_sources *s, struct allow_readings *out) {
	enum { JUST_NOW_S = 60 };
	const struct source terminals = {s->terminals, "terminals"}, xwayland = {s->x11, "Xwayland"};
	const struct source display = of_display(s);
	struct source seen = later_use(display, terminals);
	if (s->wayland && s->gnome < 0)
		seen = later_use(seen, xwayland);
	const bool known = display.idle_s >= 0 || !s->display;
	out->idle_s = known || (seen.idle_s >= 0 && seen.idle_s < JUST_NOW_S) ? seen.idle_s : -1;
	(void)snprintf(out->idle_source, sizeof out->idle_source, "%s", out->idle_s >= 0 ? seen.name : "");
}
