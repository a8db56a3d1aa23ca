/* test_worker_desktop.c: what services report, asked by the real libraries: a private dbus-daemon
 * with the services of python-dbusmock (UPower, logind) or objects put into it; an X server (Xvfb)
 * at which xdotool is the person; a stand-in of NVIDIA's library. Where a judge is missing the test
 * says so and is skipped. */
#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/process.h"
#include "tests/common/scratch.h"
#include "worker/sensors/desktop.h"
#include "worker/sensors/nvml.h"
#include "worker/sensors/x11.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVICES_MAX = 8 };

static struct {
	char dir[SCRATCH_PATH], address[2 * SCRATCH_PATH], started[2 * SCRATCH_PATH];
	struct process daemon, services[SERVICES_MAX];
	int n_services;
	struct bus *bus;
} scene;

static void write_file(const char *name, const char *text) {
	scratch_write(scene.dir, name, text, strlen(text));
}

/* A bus that would start UPower's service if it were asked to: it leaves a file. */
static void write_config(void) {
	char text[4096];
	(void)snprintf(text, sizeof text,
				   "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
				   "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
				   "<busconfig><type>session</type><listen>%s</listen><servicedir>%s</servicedir>"
				   "<policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>"
				   "<allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n",
				   scene.address, scene.dir);
	write_file("bus.conf", text);
	(void)snprintf(text, sizeof text, "[D-BUS Service]\nName=org.freedesktop.UPower\nExec=/usr/bin/touch %s\n",
				   scene.started);
	write_file("org.freedesktop.UPower.service", text);
}

static int open_bus(void **state) {
	(void)state;
	char config[2 * SCRATCH_PATH], socket[2 * SCRATCH_PATH], option[3 * SCRATCH_PATH];
	memset(&scene, 0, sizeof scene);
	scratch_make(scene.dir, sizeof scene.dir);
	(void)snprintf(socket, sizeof socket, "%s/bus", scene.dir);
	(void)snprintf(scene.address, sizeof scene.address, "unix:path=%s/bus", scene.dir);
	(void)snprintf(scene.started, sizeof scene.started, "%s/started", scene.dir);
	(void)snprintf(config, sizeof config, "%s/bus.conf", scene.dir);
	(void)snprintf(option, sizeof option, "--config-file=%s", config);
	(void)snprintf(scene.daemon.log, sizeof scene.daemon.log, "%s/daemon.log", scene.dir);
	assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", scene.address, 1), 0);
	assert_int_equal(setenv("DBUS_SESSION_BUS_ADDRESS", scene.address, 1), 0);
	if (access("/usr/bin/dbus-daemon", X_OK) != 0)
		return 0;
	write_config();
	const char *const argv[] = {"/usr/bin/dbus-daemon", "--nofork", "--nopidfile", option, NULL};
	process_start(&scene.daemon, argv, NULL);
	for (struct deadline d = deadline_in(60, "the bus"); access(socket, F_OK) != 0;)
		deadline_pause(&d);
	return 0;
}

static int close_bus(void **state) {
	(void)state;
	bus_free(scene.bus);
	for (int i = 0; i < scene.n_services; i++)
		process_kill(&scene.services[i]);
	process_kill(&scene.daemon);
	scratch_remove(scene.dir);
	return 0;
}

static void need_bus(void) {
	char out[256];
	const char *const import[] = {"/usr/bin/python3", "-c", "import dbusmock", NULL};
	void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
	if (library && access("/usr/bin/dbus-daemon", X_OK) == 0 && access("/usr/bin/dbus-send", X_OK) == 0 &&
		access(import[0], X_OK) == 0 && process_run(out, sizeof out, import) == 0)
		return;
	print_message("no bus to ask: services of the desktop were not asked "
				  "(apt-get install dbus python3-dbusmock libsystemd0)\n");
	skip();
}

/* Starts `python3 -m dbusmock ARGUMENTS` and waits until its name is on the bus. */
static void serve(const char *name, const char *const *arguments) {
	const char *argv[16] = {"/usr/bin/python3", "-m", "dbusmock"};
	char out[256], log[2 * SCRATCH_PATH];
	struct process *p = &scene.services[scene.n_services];
	for (int n = 3; *arguments; arguments++)
		argv[n++] = *arguments;
	(void)snprintf(log, sizeof log, "%s/service%d.log", scene.dir, scene.n_services++);
	(void)snprintf(p->log, sizeof p->log, "%s", log);
	process_start(p, argv, NULL);
	for (struct deadline d = deadline_in(60, name);
		 process_shell(out, sizeof out,
					   "dbus-send --bus=%s --print-reply --dest=org.freedesktop.DBus / "
					   "org.freedesktop.DBus.GetNameOwner string:%s",
					   scene.address, name) != 0;) {
		assert_false(process_has_ended(p));
		deadline_pause(&d);
	}
}
#define SERVE(name, ...) serve(name, (const char *const[]){__VA_ARGS__, NULL})

static void send_to(const char *destination, const char *path, const char *rest_of_line) {
	char out[1024];
	if (process_shell(out, sizeof out, "dbus-send --bus=%s --print-reply --dest=%s %s %s", scene.address, destination,
					  path, rest_of_line) != 0)
		fail_msg("%s", out);
}

static void set_property(const char *service, const char *path, const char *interface, const char *property,
						 const char *value) {
	char line[512];
	(void)snprintf(line, sizeof line, "org.freedesktop.DBus.Properties.Set string:%s string:%s variant:%s", interface,
				   property, value);
	send_to(service, path, line);
}

/* ---- D-Bus ---- */

static void test_upower(void **state) {
	(void)state;
	need_bus();
	scene.bus = bus_new(BUS_SYSTEM);
	assert_int_equal(desktop_on_battery(scene.bus), ALLOW_UNKNOWN);
	SERVE("org.freedesktop.UPower", "--system", "-t", "upower", "-p", "{\"OnBattery\": true}");
	assert_int_equal(desktop_on_battery(scene.bus), ALLOW_YES);
	set_property("org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower", "OnBattery",
				 "boolean:false");
	assert_int_equal(desktop_on_battery(scene.bus), ALLOW_NO);
	assert_int_not_equal(access(scene.started, F_OK), 0); /* a service that did not run was not started */
}

static void test_network_manager(void **state) {
	(void)state;
	static const struct {
		const char *value;
		enum allow_answer want;
	} cases[] = {{"uint32:0", ALLOW_UNKNOWN}, {"uint32:1", ALLOW_YES}, {"uint32:2", ALLOW_NO},
				 {"uint32:3", ALLOW_YES},     {"uint32:4", ALLOW_NO},  {"uint32:99", ALLOW_UNKNOWN}};
	static const char path[] = "/org/freedesktop/NetworkManager", name[] = "org.freedesktop.NetworkManager";
	need_bus();
	scene.bus = bus_new(BUS_SYSTEM);
	SERVE(name, "--system", name, path, name);
	assert_int_equal(desktop_on_metered(scene.bus), ALLOW_UNKNOWN); /* an old one, without the property */
	send_to(name, path,
			"org.freedesktop.DBus.Mock.AddProperty string:org.freedesktop.NetworkManager string:Metered "
			"variant:uint32:0");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		set_property(name, path, name, "Metered", cases[i].value);
		assert_int_equal(desktop_on_metered(scene.bus), cases[i].want);
	}
	set_property(name, path, name, "Metered", "string:yes"); /* of another type */
	assert_int_equal(desktop_on_metered(scene.bus), ALLOW_UNKNOWN);
}

static void test_logind(void **state) {
	(void)state;
	static const char path[] = "/org/freedesktop/login1", name[] = "org.freedesktop.login1",
					  manager[] = "org.freedesktop.login1.Manager";
	const int64_t now_us = (int64_t)1000 * RV_US_PER_S;
	need_bus();
	scene.bus = bus_new(BUS_SYSTEM);
	assert_int_equal(desktop_logind_idle_s(scene.bus, now_us), -1);
	SERVE(name, "--system", "-t", "logind", "-p", "{\"IdleHint\": false, \"IdleSinceHintMonotonic\": 400000000}");
	assert_int_equal(desktop_logind_idle_s(scene.bus, now_us), 0);
	set_property(name, path, manager, "IdleHint", "boolean:true");
	assert_int_equal(desktop_logind_idle_s(scene.bus, now_us), 600);
	set_property(name, path, manager, "IdleSinceHintMonotonic", "uint64:1000000001"); /* later than now */
	assert_int_equal(desktop_logind_idle_s(scene.bus, now_us), 0);
}

static void test_gnome(void **state) {
	(void)state;
	static const char path[] = "/org/gnome/Mutter/IdleMonitor/Core", name[] = "org.gnome.Mutter.IdleMonitor";
	need_bus();
	scene.bus = bus_new(BUS_SESSION);
	assert_int_equal(desktop_gnome_idle_s(scene.bus), -1);
	SERVE(name, "--session", name, path, name);
	send_to(name, path,
			"org.freedesktop.DBus.Mock.AddMethod string:org.gnome.Mutter.IdleMonitor string:GetIdletime string: "
			"string:t 'string:ret = dbus.UInt64(90500)'");
	assert_int_equal(desktop_gnome_idle_s(scene.bus), 90);
}

/* A bus that ends leaves everything unknown, and is asked again once it is back. */
static void test_a_bus_that_ends(void **state) {
	(void)state;
	need_bus();
	scene.bus = bus_new(BUS_SYSTEM);
	SERVE("org.freedesktop.UPower", "--system", "-t", "upower", "-p", "{\"OnBattery\": true}");
	assert_int_equal(desktop_on_battery(scene.bus), ALLOW_YES);
	process_kill(&scene.daemon);
	assert_int_equal(desktop_on_battery(scene.bus), ALLOW_UNKNOWN);
	assert_int_equal(desktop_on_battery(NULL), ALLOW_UNKNOWN);
}

/* ---- the X server ---- */

static void need_x(void) {
	if (access("/usr/bin/Xvfb", X_OK) == 0 && access("/usr/bin/xdotool", X_OK) == 0 &&
		dlopen("libxcb.so.1", RTLD_NOW | RTLD_LOCAL))
		return;
	print_message("no X server here: its idle time was not asked (apt-get install xvfb xdotool)\n");
	skip();
}

/* Starts an X server on a number that is free and sets DISPLAY. */
static void start_x(struct process *x) {
	char command[3 * SCRATCH_PATH], number[2 * SCRATCH_PATH], display[32];
	(void)snprintf(number, sizeof number, "%s/number", scene.dir);
	(void)snprintf(x->log, sizeof x->log, "%s/x.log", scene.dir);
	(void)snprintf(command, sizeof command, "exec /usr/bin/Xvfb -displayfd 3 -nolisten tcp 3>%s", number);
	const char *const argv[] = {"/bin/sh", "-c", command, NULL};
	process_start(x, argv, NULL);
	int status;
	assert_true(process_await_file(x, number, &status));
	char *text = scratch_read(number, NULL);
	assert_non_null(text);
	(void)snprintf(display, sizeof display, ":%d", atoi(text));
	free(text);
	assert_int_equal(setenv("DISPLAY", display, 1), 0);
}

static void await_idle(struct x11 *x, int64_t least_s) {
	for (struct deadline d = deadline_in(60, "an idle X server"); x11_idle_s(x) < least_s;)
		deadline_pause(&d);
}

/* Returns the moment of the last input, or up to a second later; an earlier one if this process
 * waited for the processor in between. */
static int64_t last_input_us(struct x11 *x) {
	const int64_t now_us = rv_clock_monotonic_us(), idle_s = x11_idle_s(x);
	assert_true(idle_s >= 0);
	return now_us - idle_s * RV_US_PER_S;
}

/* Gives the server input by xdotool after two seconds without any, and waits until the last input
 * is one that came after them: however long that takes, an earlier one is never taken for it. */
static void give_input(struct x11 *x, const char *command) {
	char out[256];
	await_idle(x, 2);
	const int64_t before_us = rv_clock_monotonic_us();
	assert_int_equal(process_shell(out, sizeof out, "xdotool %s", command), 0);
	for (struct deadline d = deadline_in(60, "input that counts"); last_input_us(x) < before_us - RV_US_PER_S / 2;)
		deadline_pause(&d);
}

static void test_a_person_at_the_x_server(void **state) {
	(void)state;
	struct process server = {0};
	need_x();
	struct x11 *x = x11_new();
	assert_int_equal(unsetenv("DISPLAY"), 0);
	assert_int_equal(x11_idle_s(x), -1);
	start_x(&server);
	give_input(x, "mousemove 100 100");
	give_input(x, "key a");
	process_kill(&server);
	assert_int_equal(x11_idle_s(x), -1);
	x11_free(x);
}

/* ---- NVIDIA's library ---- */

static void test_nvml(void **state) {
	(void)state;
	struct nvml *n = nvml_new();
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library) {
		print_message("a real libnvidia-ml.so.1 is here: the stand-in was not used\n");
		skip();
	}
	assert_true(isnan(nvml_celsius(n)));
	nvml_free(n);
	library = dlopen(NVML_STAND_IN, RTLD_NOW | RTLD_LOCAL); /* found by its name from here on */
	assert_non_null(library);
	void (*set)(unsigned) = NULL;
	int (*is_up)(void) = NULL;
	*(void **)&set = dlsym(library, "stand_in_set");
	*(void **)&is_up = dlsym(library, "stand_in_is_up");
	n = nvml_new();
	assert_true(nvml_celsius(n) == 55);
	set(38);
	assert_true(nvml_celsius(n) == 40);
	set(91);
	assert_true(nvml_celsius(n) == 91);
	assert_int_equal(is_up(), 1);
	nvml_free(n);
	assert_int_equal(is_up(), 0);
	nvml_free(NULL);
}

#define ON_A_BUS(test) cmocka_unit_test_setup_teardown(test, open_bus, close_bus)

int main(void) {
	const struct CMUnitTest tests[] = {
		ON_A_BUS(test_upower),       ON_A_BUS(test_network_manager), ON_A_BUS(test_logind),
		ON_A_BUS(test_gnome),        ON_A_BUS(test_a_bus_that_ends), ON_A_BUS(test_a_person_at_the_x_server),
		cmocka_unit_test(test_nvml),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
