/* desktop.c: names of services, and what their values mean. */
#include "worker/sensors/desktop.h"

#include "base/clock.h"

enum allow_answer desktop_on_battery(struct bus *system) {
	static const struct bus_place upower = {"org.freedesktop.UPower", "/org/freedesktop/UPower",
											"org.freedesktop.UPower"};
	uint64_t on;
	if (!bus_property(system, &upower, "OnBattery", 'b', &on))
		return ALLOW_UNKNOWN;
	return on ? ALLOW_YES : ALLOW_NO;
}

/* NMMetered (nm-dbus-types): the last two are guesses, such as of a telephone that tethers. */
enum { NM_METERED_YES = 1, NM_METERED_NO = 2, NM_METERED_GUESS_YES = 3, NM_METERED_GUESS_NO = 4 };

enum allow_answer desktop_on_metered(struct bus *system) {
	static const struct bus_place manager = {"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
											 "org.freedesktop.NetworkManager"};
	uint64_t metered;
	if (!bus_property(system, &manager, "Metered", 'u', &metered))
		return ALLOW_UNKNOWN;
	if (metered == NM_METERED_YES || metered == NM_METERED_GUESS_YES)
		return ALLOW_YES;
	return metered == NM_METERED_NO || metered == NM_METERED_GUESS_NO ? ALLOW_NO : ALLOW_UNKNOWN;
}

int64_t desktop_gnome_idle_s(struct bus *session) {
	static const struct bus_place monitor = {"org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core",
											 "org.gnome.Mutter.IdleMonitor"};
	uint64_t idle_ms;
	if (!bus_call(session, &monitor, "GetIdletime", 't', &idle_ms))
		return -1;
	return (int64_t)(idle_ms / 1000 & INT32_MAX);
}

int64_t desktop_logind_idle_s(struct bus *system, int64_t now_us) {
	static const struct bus_place manager = {"org.freedesktop.login1", "/org/freedesktop/login1",
											 "org.freedesktop.login1.Manager"};
	uint64_t idle, since_us;
	if (!bus_property(system, &manager, "IdleHint", 'b', &idle))
		return -1;
	if (!idle || !bus_property(system, &manager, "IdleSinceHintMonotonic", 't', &since_us) ||
		since_us > (uint64_t)now_us)
		return 0;
	return (now_us - (int64_t)since_us) / RV_US_PER_S;
}
