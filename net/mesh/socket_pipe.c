/* socket_pipe.c: TCP sockets as pipes, with the options that the mesh's traffic needs
 * (net/mesh/pipe.h). */
#include "net/mesh/pipe.h"

#include "base/os_sockets.h"
#include "net/mesh/socket_route.h"
#include "net/stranded.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

enum {
	/* Bytes of bulk that control may queue behind in the kernel: not sent yet; beyond them the
	 * socket is not writable. */
	NOTSENT_BYTES = 1 << 17,
	BACKLOG = 64,
	KEEPALIVE_IDLE_S = 15, /* also keeps the mappings of home routers alive */
	KEEPALIVE_INTERVAL_S = 5,
	KEEPALIVE_COUNT = 3,
	USER_TIMEOUT_MS = 20000 /* time without an acknowledgement after which the link is dead (RFC 5482) */
};

static void set_int(int fd, int level, int option, int value) {
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

static enum rv_err start_listening(void *ctx, const char *listen_on, int receive_bytes, int *out_fd, uint16_t *port,
								   struct rv_errtext *et) {
	(void)ctx;
	struct address a;
	RV_TRY(address_parse(listen_on, &a, et));
	*out_fd = address_listen(&a, receive_bytes, BACKLOG, &a);
	*port = a.port;
	if (*out_fd >= 0) {
		/* Only now: another program that listens on this port is still refused, but this one may
		 * dial from it. */
		set_int(*out_fd, SOL_SOCKET, SO_REUSEPORT, 1);
		return RV_OK;
	}
	if (errno == EINVAL)
		return rv_fail(et, RV_E_INVALID, "listen \"%s\": the host must be a numeric address, or empty for all",
					   listen_on);
	return rv_fail_errno(et, errno, "cannot listen for peers on %s%s", listen_on,
						 errno == EADDRINUSE ? " (choose another port)" : "");
}

static int accept_one(void *ctx, int listener, struct address *from) {
	(void)ctx;
	struct sockaddr_storage sa;
	int fd = os_socket_accept(listener, &sa);
	if (fd >= 0)
		address_of_socket(&sa, from);
	return fd;
}

static void tune(void *ctx, int fd) {
	(void)ctx;
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	os_socket_limit_unsent(fd, NOTSENT_BYTES);
	os_socket_limit_unacknowledged(fd, USER_TIMEOUT_MS);
	os_socket_keep_alive(fd, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);
}

static void control_congestion(void *ctx, int fd, const char *congestion, char used[16]) {
	(void)ctx;
	os_socket_control_congestion(fd, congestion, used);
}

static ssize_t read_some(void *ctx, int fd, void *out, size_t cap) {
	(void)ctx;
	return recv(fd, out, cap, 0);
}

static ssize_t write_some(void *ctx, int fd, const void *data, size_t n) {
	(void)ctx;
	return os_socket_send(fd, data, n);
}

static void look(void *ctx, int fd, struct pipe_info *out) {
	struct os_socket_facts f;
	(void)ctx;
	os_socket_look(fd, &f);
	*out = (struct pipe_info){.waiting = f.waiting,
							  .delivered = f.delivered,
							  .least_rtt_us = f.least_rtt_us,
							  .rtt_us = f.rtt_us,
							  .sent = f.sent,
							  .resent = f.resent,
							  .doubled = f.doubled};
}

static bool is_stranded(void *ctx, int fd) {
	(void)ctx;
	return socket_is_stranded(fd);
}

/* A connection that is closed in order leaves TIME_WAIT, and connect(2) from and to the same
 * addresses fails for a minute. */
static void end_at_close(void *ctx, int fd) {
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	(void)ctx;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void close_one(void *ctx, int fd) {
	(void)ctx;
	close(fd);
}

const struct pipe_ops socket_pipe = {.listen = start_listening,
									 .accept = accept_one,
									 .connect = socket_route_connect,
									 .connected = socket_route_connected,
									 .read = read_some,
									 .write = write_some,
									 .info = look,
									 .tune = tune,
									 .control_congestion = control_congestion,
									 .is_stranded = is_stranded,
									 .end_at_close = end_at_close,
									 .close = close_one};
