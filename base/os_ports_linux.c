/* os_ports_linux.c: the socket's inode in /proc/net/tcp*, and the process that has it open. */
#include "base/os_ports.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TCP_STATE_LISTEN = 0x0a };

/* Returns the inode of a socket that listens on `port`; 0: not found. */
static unsigned long find_inode(const char *table, uint16_t port) {
	FILE *f = fopen(table, "re");
	char line[512];
	unsigned long found = 0;
	while (f != NULL && found == 0 && fgets(line, sizeof line, f) != NULL) {
		unsigned local_port = 0, state = 0;
		unsigned long inode = 0;
		/* sl local:port remote:port state queues timer retransmits uid timeout inode */
		int n = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*d %lu", &local_port, &state,
					   &inode);
		if (n == 3 && local_port == port && state == TCP_STATE_LISTEN)
			found = inode;
	}
	if (f != NULL)
		(void)fclose(f);
	return found;
}

static bool process_has(const char *pid, unsigned long inode) {
	char dir[300], want[64];
	(void)snprintf(dir, sizeof dir, "/proc/%s/fd", pid);
	(void)snprintf(want, sizeof want, "socket:[%lu]", inode);
	DIR *d = opendir(dir);
	bool has = false;
	for (struct dirent *e; d != NULL && !has && (e = readdir(d)) != NULL;) {
		char link[64] = {0};
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
		has = n > 0 && strcmp(link, want) == 0;
	}
	if (d != NULL)
		(void)closedir(d);
	return has;
}

/* Reads the first line of /proc/PID/file, to its first NUL. */
static bool read_proc(const char *pid, const char *file, char *out, int cap) {
	char path[300];
	(void)snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
	FILE *f = fopen(path, "re");
	bool ok = f != NULL && fgets(out, cap, f) != NULL;
	if (f != NULL)
		(void)fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

static void describe_process(const char *pid, char *out, size_t cap) {
	char name[64] = "a process", command[512];
	(void)read_proc(pid, "comm", name, sizeof name);
	/* The kernel keeps 15 characters of a name; the command line has it whole, unless it is an
	 * interpreter's. */
	if (read_proc(pid, "cmdline", command, sizeof command)) {
		const char *slash = strrchr(command, '/'), *program = slash != NULL ? slash + 1 : command;
		if (strncmp(program, name, strlen(name)) == 0)
			(void)snprintf(name, sizeof name, "%s", program);
	}
	(void)snprintf(out, cap, "%s (process %s)", name, pid);
}

void os_port_holder(uint16_t port, char *out, size_t cap) {
	(void)snprintf(out, cap, "another process");
	unsigned long inode = find_inode("/proc/net/tcp", port);
	if (inode == 0)
		inode = find_inode("/proc/net/tcp6", port);
	DIR *d = inode != 0 ? opendir("/proc") : NULL;
	bool found = false;
	for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
		found = strspn(e->d_name, "0123456789") == strlen(e->d_name) && process_has(e->d_name, inode);
		if (found)
			describe_process(e->d_name, out, cap);
	}
	if (d != NULL)
		(void)closedir(d);
}
