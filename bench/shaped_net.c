/* shaped_net.c: the internet between a few network namespaces, for benchmarks on one machine: each
 * site has a line of a given rate, up and down, and every packet takes a given time. In user space,
 * over TUN devices, because not every kernel has netem.
 *
 *     shaped_net RATE_BITS_PER_S DELAY_MS NAMESPACE...      (root; rate 0: unlimited)
 *
 * Site i is the i-th namespace (from 1) and gets the device wan0, to be given MTU 1500 and
 * addresses whose last byte is i: in 10.86.0.0/16, in 11.86.0.0/16 (a public range, for homes with
 * routers) or in 2a11:86::/32. Site 1 is where the coordinator is: its line is unlimited. A line is
 * a virtual clock per direction: a packet leaves when what came before it has left; more than
 * `buffer` of queue drops (a home router's, drop-tail). Between the sender's uplink and the
 * receiver's downlink lies the delay. Linux hands over TCP uncut (segments.h): each segment passes
 * the lines, queues and losses by itself, but those that follow each other within RUN_NS are
 * carried on as one, when the last of them has come, as a network card that moderates its
 * interrupts does; and the relay looks at most once in WAKE_NS. Both add delay, together at most
 * their sum, and save system calls. "ready" is printed once; SIGTERM ends it, and with it the
 * devices.
 *
 * Commands on stdin, one a line; each is answered by one line ("ok", or what is wrong):
 *     rate SITE UP DOWN     bits per second, 0: unlimited
 *     buffer SITE MS        of queue, each way (100)
 *     loss SITE PERCENT     of its packets, at random, each way, behind the line
 *     delay SITE MS         of that site to the middle         cut SITE | heal SITE
 *     stats                 {"us":NOW,"up":[...],"down":[...],"up_wire":[...],"down_wire":[...],
 *                           "dropped":[...]}: IP bytes that each line took; bytes that left it,
 *                           with what Ethernet adds; packets lost */
#include "bench/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_SITES = 40,
	ETHERNET_BYTES = 14,
	MAX_FRAME_BYTES = SEGMENTS_VNET_BYTES + 65535,
	RUN_NS = 1000000,
	WAKE_NS = 250000,
	MAX_PACKETS = 1 << 16, /* under way, all together */
	READS_PER_WAKE = 64,
	BUFFER_MS = 100,
	COMMAND_BYTES = 256
};

/* One packet, or successive segments of one. */
struct packet {
	int64_t first_ns, at_ns; /* arrival of the first and the last segment at the downlink, then at its end */
	uint64_t order;
	struct segments segments;
	uint32_t bytes; /* of data */
	uint8_t to;
	bool passed; /* the downlink, too */
	uint8_t data[];
};

struct line {
	double ns_per_byte; /* 0: unlimited */
	int64_t free_ns;
	uint64_t bytes, wire_bytes;
	uint64_t left_bytes; /* part of wire_bytes that is not queued, at the last look */
};

struct site {
	int fd;
	struct line up, down;
	int64_t delay_ns, buffer_ns;
	double loss; /* part of the packets */
	bool cut;
	uint64_t dropped;
};

struct net {
	struct site sites[MAX_SITES];
	int n;
	struct packet *heap[MAX_PACKETS]; /* a binary heap by (at_ns, order) */
	int n_heap;
	uint64_t order, random;
	struct packet *fresh; /* what was just read; room for MAX_FRAME_BYTES */
	char command[COMMAND_BYTES];
	size_t command_bytes;
	bool commands_end;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal_number) {
	(void)signal_number;
	stopped = 1;
}

static int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Opens wan0 in the namespace; the process stays in it, which is harmless: it uses no other
 * network. */
static int open_device(const char *name_space) {
	char path[256];
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	(void)snprintf(path, sizeof path, "/var/run/netns/%s", name_space);
	(void)snprintf(request.ifr_name, sizeof request.ifr_name, "wan0");
	int ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) {
		perror(path);
		exit(1);
	}
	close(ns);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int vnet_bytes = SEGMENTS_VNET_BYTES;
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0 || ioctl(fd, TUNSETVNETHDRSZ, &vnet_bytes) != 0 ||
		ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) {
		perror("/dev/net/tun");
		exit(1);
	}
	return fd;
}

/* ---- packets on their way ---- */

static bool before(const struct packet *a, const struct packet *b) {
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct net *net, struct packet *p) {
	int i = net->n_heap++;
	p->order = net->order++;
	for (; i > 0 && before(p, net->heap[(i - 1) / 2]); i = (i - 1) / 2)
		net->heap[i] = net->heap[(i - 1) / 2];
	net->heap[i] = p;
}

static struct packet *pop(struct net *net) {
	struct packet *first = net->heap[0], *last = net->heap[--net->n_heap];
	int i = 0;
	for (int child; (child = 2 * i + 1) < net->n_heap; i = child) {
		if (child + 1 < net->n_heap && before(net->heap[child + 1], net->heap[child]))
			child++;
		if (!before(net->heap[child], last))
			break;
		net->heap[i] = net->heap[child];
	}
	net->heap[i] = last;
	return first;
}

/* Returns when the packet that comes at `now` has passed the line; -1: its queue is full. */
static int64_t pass(struct line *l, int64_t now, uint32_t bytes, int64_t buffer_ns) {
	int64_t start = now > l->free_ns ? now : l->free_ns;
	if (l->ns_per_byte > 0 && start - now > buffer_ns)
		return -1;
	l->free_ns = start + (int64_t)(l->ns_per_byte * (bytes + ETHERNET_BYTES));
	l->bytes += bytes;
	l->wire_bytes += bytes + ETHERNET_BYTES;
	return l->free_ns;
}

/* Returns true if the packet is lost at random: xorshift64 (Marsaglia, 2003). */
static bool is_lost(struct net *net, const struct site *s) {
	net->random ^= net->random << 13;
	net->random ^= net->random >> 7;
	net->random ^= net->random << 17;
	return (double)(net->random >> 11) * 0x1p-53 < s->loss;
}

/* Returns the index of the site that the last byte of a packet's destination names; -1: the
 * destination is in none of the ranges. */
static int destination(const struct packet *p) {
	static const uint8_t range6[] = {0x2a, 0x11, 0x00, 0x86};
	const uint8_t *d = p->data + SEGMENTS_VNET_BYTES;
	uint32_t bytes = p->segments.all_bytes;
	if (bytes >= 20 && d[0] >> 4 == 4 && (d[16] == 10 || d[16] == 11) && d[17] == 86)
		return d[19] - 1;
	if (bytes >= 40 && d[0] >> 4 == 6 && memcmp(d + 24, range6, sizeof range6) == 0)
		return d[39] - 1;
	return -1;
}

/* Successive segments of a packet that have passed a line. */
struct run {
	uint32_t first, n;
	int64_t first_ns, last_ns; /* of leaving the line */
};

/* Sends a run of `p` on, as a packet of its own; without memory it is lost. */
static void send_on(struct net *net, struct site *s, const struct packet *p, const struct run *run, int64_t delay_ns) {
	uint32_t bytes = segments_copy_bytes(&p->segments, run->first, run->n);
	struct packet *out = net->n_heap < MAX_PACKETS ? malloc(sizeof *out + bytes) : NULL;
	if (out == NULL) {
		s->dropped += run->n;
		return;
	}
	*out = (struct packet){.first_ns = run->first_ns + delay_ns,
						   .at_ns = run->last_ns + delay_ns,
						   .to = p->to,
						   .passed = p->passed,
						   .bytes = bytes};
	segments_copy(&p->segments, p->data, run->first, run->n, out->data);
	out->segments = segments_of(out->data, bytes);
	push(net, out);
}

/* Returns when segment i came: they are evenly spaced. */
static int64_t arrival(const struct packet *p, uint32_t i) {
	uint32_t gaps = p->segments.n - 1;
	return gaps == 0 ? p->at_ns : p->first_ns + (p->at_ns - p->first_ns) * i / gaps;
}

/* Takes the segments of `p` through a line of `s`, one by one, and sends on those that are not
 * lost. */
static void cross(struct net *net, struct site *s, struct line *l, const struct packet *p, int64_t delay_ns) {
	struct run run = {.n = 0};
	for (uint32_t i = 0; i < p->segments.n; i++) {
		int64_t out = pass(l, arrival(p, i), segments_ip_bytes(&p->segments, i), s->buffer_ns);
		bool lost = out < 0 || is_lost(net, s);
		if (run.n > 0 && (lost || out - run.first_ns > RUN_NS)) {
			send_on(net, s, p, &run, delay_ns);
			run.n = 0;
		}
		if (lost)
			s->dropped++;
		else
			run = run.n > 0 ? (struct run){run.first, run.n + 1, run.first_ns, out} : (struct run){i, 1, out, out};
	}
	if (run.n > 0)
		send_on(net, s, p, &run, delay_ns);
}

/* Carries a packet, read at `now`, from the uplink of `from` to the site of its destination. */
static void carry(struct net *net, struct site *from, struct packet *p, int64_t now) {
	int to = destination(p);
	if (to < 0 || to >= net->n)
		return;
	if (from->cut) {
		from->dropped += p->segments.n;
		return;
	}
	p->to = (uint8_t)to;
	p->passed = false;
	p->first_ns = p->at_ns = now;
	cross(net, from, &from->up, p, from->delay_ns + net->sites[to].delay_ns);
}

/* Moves a packet whose time has come: into the downlink, or out of it. */
static void arrive(struct net *net, struct packet *p) {
	struct site *s = &net->sites[p->to];
	if (s->cut) {
		s->dropped += p->segments.n;
	} else if (!p->passed) {
		p->passed = true;
		cross(net, s, &s->down, p, 0);
	} else if (write(s->fd, p->data, p->bytes) < 0 && errno != EIO) { /* EIO: the device is not up yet */
		perror("wan0");
	}
	free(p);
}

/* Delivers all packets that are due; returns when the next one is. */
static int64_t deliver(struct net *net, int64_t now) {
	while (net->n_heap > 0 && net->heap[0]->at_ns <= now)
		arrive(net, pop(net));
	return net->n_heap > 0 ? net->heap[0]->at_ns : now + INT64_C(1000000000);
}

/* ---- commands ---- */

static void print_list(const struct net *net, const char *name, size_t offset) {
	printf(",\"%s\":[", name);
	for (int i = 0; i < net->n; i++) {
		uint64_t value;
		memcpy(&value, (const char *)&net->sites[i] + offset, sizeof value);
		printf("%s%llu", i > 0 ? "," : "", (unsigned long long)value);
	}
	putchar(']');
}

/* Returns the bytes that have left the line, without those in its queue. */
static uint64_t left_line(const struct line *l, int64_t now) {
	int64_t queued_ns = l->free_ns > now ? l->free_ns - now : 0;
	return l->ns_per_byte > 0 ? l->wire_bytes - (uint64_t)((double)queued_ns / l->ns_per_byte) : l->wire_bytes;
}

static void print_stats(struct net *net) {
	int64_t now = now_ns();
	for (int i = 0; i < net->n; i++) {
		net->sites[i].up.left_bytes = left_line(&net->sites[i].up, now);
		net->sites[i].down.left_bytes = left_line(&net->sites[i].down, now);
	}
	printf("{\"us\":%lld", (long long)(now / 1000));
	print_list(net, "up", offsetof(struct site, up.bytes));
	print_list(net, "down", offsetof(struct site, down.bytes));
	print_list(net, "up_wire", offsetof(struct site, up.left_bytes));
	print_list(net, "down_wire", offsetof(struct site, down.left_bytes));
	print_list(net, "dropped", offsetof(struct site, dropped));
	puts("}");
}

static double ns_per_byte(double bits_per_s) {
	return bits_per_s > 0 ? 8e9 / bits_per_s : 0;
}

static bool set_site(struct site *s, const char *what, double a, double b) {
	if (strcmp(what, "rate") == 0) {
		s->up.ns_per_byte = ns_per_byte(a);
		s->down.ns_per_byte = ns_per_byte(b);
	} else if (strcmp(what, "delay") == 0) {
		s->delay_ns = (int64_t)(a * 1e6);
	} else if (strcmp(what, "buffer") == 0) {
		s->buffer_ns = (int64_t)(a * 1e6);
	} else if (strcmp(what, "loss") == 0) {
		s->loss = a / 100;
	} else if (strcmp(what, "cut") == 0 || strcmp(what, "heal") == 0) {
		s->cut = what[0] == 'c';
	} else {
		return false;
	}
	return true;
}

static void obey(struct net *net, const char *line) {
	char what[16] = "";
	int site = 0;
	double a = 0, b = 0;
	int n = sscanf(line, "%15s %d %lf %lf", what, &site, &a, &b);
	if (n == 1 && strcmp(what, "stats") == 0)
		print_stats(net);
	else if (n >= 2 && site >= 1 && site <= net->n && set_site(&net->sites[site - 1], what, a, b))
		puts("ok");
	else
		printf("cannot do '%s'\n", line);
	(void)fflush(stdout);
}

static void read_commands(struct net *net) {
	ssize_t n = read(STDIN_FILENO, net->command + net->command_bytes, sizeof net->command - 1 - net->command_bytes);
	if (n <= 0) {
		net->commands_end = true;
		return;
	}
	net->command_bytes += (size_t)n;
	net->command[net->command_bytes] = '\0';
	char *line = net->command;
	for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		obey(net, line);
	}
	net->command_bytes = strlen(line);
	if (net->command_bytes == sizeof net->command - 1)
		net->command_bytes = 0;
	memmove(net->command, line, net->command_bytes);
}

/* ---- the loop ---- */

static void read_site(struct net *net, struct site *s, int64_t now) {
	struct packet *p = net->fresh;
	for (int k = 0; k < READS_PER_WAKE && net->n_heap < MAX_PACKETS; k++) {
		ssize_t n = read(s->fd, p->data, MAX_FRAME_BYTES);
		if (n <= SEGMENTS_VNET_BYTES)
			return;
		p->bytes = (uint32_t)n;
		p->segments = segments_of(p->data, p->bytes);
		carry(net, s, p, now);
	}
}

static struct timespec timespec_of(int64_t ns) {
	return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Sleeps until WAKE_NS after `last_ns`. Returns the time then. */
static int64_t rest(int64_t last_ns) {
	int64_t left = last_ns + WAKE_NS - now_ns();
	struct timespec sleep = timespec_of(left);
	if (left > 0)
		(void)nanosleep(&sleep, NULL);
	return now_ns();
}

static void run(struct net *net) {
	struct pollfd fds[MAX_SITES + 1];
	for (int i = 0; i < net->n; i++)
		fds[i] = (struct pollfd){.fd = net->sites[i].fd, .events = POLLIN};
	for (int64_t now = now_ns(); !stopped; now = rest(now)) {
		fds[net->n] = (struct pollfd){.fd = net->commands_end ? -1 : STDIN_FILENO, .events = POLLIN};
		struct timespec timeout = timespec_of(deliver(net, now) - now);
		if (ppoll(fds, (nfds_t)net->n + 1, &timeout, NULL) <= 0)
			continue;
		int64_t read_ns = now_ns();
		for (int i = 0; i < net->n; i++)
			if (fds[i].revents)
				read_site(net, &net->sites[i], read_ns);
		if (fds[net->n].revents)
			read_commands(net);
	}
}

int main(int argc, char **argv) {
	static struct net net;
	if (argc < 5 || argc - 3 > MAX_SITES) {
		(void)fprintf(stderr, "usage: shaped_net RATE_BITS_PER_S DELAY_MS NAMESPACE NAMESPACE... (at most %d)\n",
					  MAX_SITES);
		return 2;
	}
	double per_byte = ns_per_byte(strtod(argv[1], NULL)), delay_ns = strtod(argv[2], NULL) * 1e6;
	net.n = argc - 3;
	net.random = UINT64_C(88172645463325252);
	if ((net.fresh = malloc(sizeof *net.fresh + MAX_FRAME_BYTES)) == NULL) {
		perror("shaped_net");
		return 1;
	}
	for (int i = 0; i < net.n; i++) {
		struct line line = {.ns_per_byte = i > 0 ? per_byte : 0};
		net.sites[i] = (struct site){.fd = open_device(argv[i + 3]),
									 .up = line,
									 .down = line,
									 .delay_ns = (int64_t)(delay_ns / 2),
									 .buffer_ns = BUFFER_MS * INT64_C(1000000)};
	}
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	(void)prctl(PR_SET_TIMERSLACK, 1);
	puts("ready");
	(void)fflush(stdout);
	run(&net);
	return 0;
}
