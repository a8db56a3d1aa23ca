// watch.cpp: keeps the file that shows the device to other processes (emu/watch.h).
#include "tests/emu/watch.h"
#include "tests/emu/host.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emu {

// Returns the file named in the environment, mapped until the process ends; null: none is.
static emu_watch *open_watch() {
	const char *path = getenv(EMU_WATCH_ENV);
	if (!path || !path[0])
		return nullptr;
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *at = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, sizeof(emu_watch)) == 0)
		at = mmap(nullptr, sizeof(emu_watch), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		perror(path);
		exit(EMU_FAULT_STATUS);
	}
	(void)close(fd);
	return static_cast<emu_watch *>(at);
}

static emu_watch *watch() {
	static emu_watch *const w = open_watch();
	return w;
}

static void put(uint64_t *field, uint64_t value) {
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

uint64_t watch_now() {
	timespec t = {};
	if (watch())
		(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void watch_kernel(const char *kernel) {
	emu_watch *w = watch();
	if (w && strstr(kernel, "embed_backward"))
		put(&w->batches, w->batches + 1);
}

void watch_read(size_t bytes) {
	if (emu_watch *w = watch())
		put(&w->read_bytes, w->read_bytes + bytes);
}

void watch_launch(uint64_t began_ns) {
	emu_watch *w = watch();
	if (!w)
		return;
	const uint64_t now = watch_now();
	put(&w->busy_ns, w->busy_ns + now - began_ns);
	put(&w->ended_ns, now);
	put(&w->launches, w->launches + 1);
}

void watch_memory() {
	emu_watch *w = watch();
	if (!w)
		return;
	if (device.allocated == 0)
		put(&w->peak_bytes, 0);
	else if (device.allocated > w->peak_bytes)
		put(&w->peak_bytes, device.allocated);
	put(&w->device_bytes, device.allocated);
	put(&w->pinned_bytes, device.pinned);
}

} // namespace emu
