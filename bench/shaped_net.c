/* shaped_net.c: the internet between a few network namespaces, for benchmarks on one machine: each site has a line of a
 * given rate, up and down, and every packet takes a given time. In user space, over TUN devices, because not every
 * kernel has netem.
 *
 *     shaped_net RATE_BITS_PER_S DELAY_MS NAMESPACE...      (root; rate 0: unlimited)
 *
 * Site i is the i-th namespace (from 1) and gets the device wan0, to be given the address 10.86.0.i/24 and MTU 1500.
 * Site 1 is where the coordinator is: its line is unlimited. The line is a virtual clock: a packet leaves when the
 * uplink has sent what came before it, arrives after the delay, when the receiver's downlink is free; a queue of more
 * than BUFFER_US drops. "ready" is printed once; SIGTERM ends it, and with it the devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SITES = 17, MTU = 1500, ETHERNET_BYTES = 14, QUEUE = 1 << 14, READS_PER_WAKE = 64, BUFFER_US = 100000 };

struct packet {
	int64_t deliver_ns;
	uint16_t bytes;
	uint8_t data[MTU];
};

struct site {
	int fd;
	double ns_per_byte; /* 0: unlimited */
	int64_t up_free_ns, down_free_ns;
	struct packet *queue; /* a ring of what is on the way to this site, in order of delivery */
	uint32_t head, tail;
};

struct net {
	struct site sites[MAX_SITES];
	int n;
	int64_t delay_ns;
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

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

/* Opens wan0 in the namespace; the process stays in it, which harms nothing: it uses no other network. */
static int open_device(const char *name_space) {
	char path[256];
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	(void)snprintf(path, sizeof path, "/var/run/netns/%s", name_space);
	(void)snprintf(request.ifr_name, sizeof request.ifr_name, "wan0");
	int ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) {
		perror(path);
		exit(1);
	}
	close(ns);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
		perror("/dev/net/tun");
		exit(1);
	}
	return fd;
}

/* From the uplink of `from` to the queue of the site that the IPv4 destination's last byte names. */
static void carry(struct net *net, struct site *from, const uint8_t *data, uint16_t bytes, int64_t now) {
	bool ours = bytes >= 20 && data[0] >> 4 == 4 && data[16] == 10 && data[17] == 86;
	int to = ours ? data[19] - 1 : -1;
	if (to < 0 || to >= net->n)
		return;
	struct site *dest = &net->sites[to];
	int64_t start = later(now, from->up_free_ns);
	if (start - now > BUFFER_US * INT64_C(1000) || dest->tail - dest->head == QUEUE)
		return;
	int on_line = bytes + ETHERNET_BYTES;
	from->up_free_ns = start + (int64_t)(from->ns_per_byte * on_line);
	dest->down_free_ns =
		later(from->up_free_ns + net->delay_ns, dest->down_free_ns + (int64_t)(dest->ns_per_byte * on_line));
	struct packet *p = &dest->queue[dest->tail++ % QUEUE];
	p->deliver_ns = dest->down_free_ns;
	p->bytes = bytes;
	memcpy(p->data, data, bytes);
}

/* Delivers what is due; returns when the next packet is. */
static int64_t deliver(struct net *net, int64_t now) {
	int64_t next = now + INT64_C(1000000000);
	for (struct site *s = net->sites; s < net->sites + net->n; s++) {
		for (; s->head != s->tail && s->queue[s->head % QUEUE].deliver_ns <= now; s->head++) {
			const struct packet *p = &s->queue[s->head % QUEUE];
			if (write(s->fd, p->data, p->bytes) < 0 && errno != EIO) /* EIO: the device is not up yet */
				perror("wan0");
		}
		if (s->head != s->tail && s->queue[s->head % QUEUE].deliver_ns < next)
			next = s->queue[s->head % QUEUE].deliver_ns;
	}
	return next;
}

static void run(struct net *net) {
	struct pollfd fds[MAX_SITES];
	uint8_t data[MTU];
	for (int i = 0; i < net->n; i++)
		fds[i] = (struct pollfd){.fd = net->sites[i].fd, .events = POLLIN};
	while (!stopped) {
		int64_t now = now_ns(), wait = deliver(net, now) - now;
		struct timespec timeout = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
		if (ppoll(fds, (nfds_t)net->n, &timeout, NULL) <= 0)
			continue;
		now = now_ns();
		for (int i = 0; i < net->n; i++)
			for (int k = 0; fds[i].revents && k < READS_PER_WAKE; k++) {
				ssize_t n = read(net->sites[i].fd, data, sizeof data);
				if (n <= 0)
					break;
				carry(net, &net->sites[i], data, (uint16_t)n, now);
			}
	}
}

int main(int argc, char **argv) {
	static struct net net;
	if (argc < 5 || argc - 3 > MAX_SITES) {
		(void)fprintf(stderr, "usage: shaped_net RATE_BITS_PER_S DELAY_MS NAMESPACE NAMESPACE... (at most %d)\n",
					  MAX_SITES);
		return 2;
	}
	double rate = strtod(argv[1], NULL);
	net.delay_ns = (int64_t)(strtod(argv[2], NULL) * 1e6);
	net.n = argc - 3;
	for (int i = 0; i < net.n; i++) {
		net.sites[i] = (struct site){.fd = open_device(argv[i + 3]),
									 .ns_per_byte = i > 0 && rate > 0 ? 8e9 / rate : 0,
									 .queue = calloc(QUEUE, sizeof(struct packet))};
		if (!net.sites[i].queue)
			return 1;
	}
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	(void)prctl(PR_SET_TIMERSLACK, 1);
	puts("ready");
	(void)fflush(stdout);
	run(&net);
	return 0;
}
