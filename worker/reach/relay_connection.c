/* relay_connection.c: see relay_connection.h. */
#include "worker/reach/relay_connection.h"

#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

void relay_connection_init(struct relay_connection *c, const struct relay_connection_owner *owner,
						   const struct relay_dial_shared *shared, SSL_CTX *tls) {
	memset(c, 0, sizeof *c);
	c->owner = *owner;
	c->shared = shared;
	c->tls = tls;
	c->dial.fd = -1;
}

void relay_connection_end(struct relay_connection *c) {
	size_t n;
	if (c->is_secured && c->n_out > 0)
		(void)SSL_write_ex(c->ssl, c->out, c->n_out, &n);
	ERR_clear_error();
	SSL_free(c->ssl);
	c->ssl = NULL;
	c->is_secured = false;
	c->n_in = c->n_out = 0;
	relay_dial_end(&c->dial);
}

static void lost(struct relay_connection *c, const char *why) {
	c->n_out = 0;
	c->failed_in_a_row += !c->is_secured;
	relay_connection_end(c);
	c->owner.lost(c->owner.ctx, why);
}

/* ---- connecting ---- */

void relay_connection_begin(struct relay_connection *c, int64_t now_us, const struct relay_ref *to) {
	const struct relay_dial_to dial = {.addr = to->addr, .family = RELAY_DIAL_ANY, .turn = c->failed_in_a_row};
	relay_connection_end(c);
	memcpy(c->key, to->key, sizeof c->key);
	c->waits_for = POLLOUT;
	relay_dial_begin(&c->dial, c->shared, now_us, &dial);
}

static void begin_tls(struct relay_connection *c) {
	c->ssl = SSL_new(c->tls);
	if (c->ssl == NULL || SSL_set_fd(c->ssl, c->dial.fd) != 1) {
		lost(c, "no memory");
		return;
	}
	SSL_set_connect_state(c->ssl);
}

/* Returns true if the operation shall be tried again when the socket is ready; else the connection
 * is lost. */
static bool waits(struct relay_connection *c, int rc) {
	int why = SSL_get_error(c->ssl, rc);
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		c->waits_for = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return true;
	}
	lost(c, why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL ? "it closed the connection" : tls_error_text());
	return false;
}

static void secure(struct relay_connection *c) {
	uint8_t key[NET_KEY_BYTES];
	ERR_clear_error();
	int rc = SSL_do_handshake(c->ssl);
	if (rc <= 0) {
		(void)waits(c, rc);
		return;
	}
	if (!tls_peer_key(c->ssl, key) || memcmp(key, c->key, NET_KEY_BYTES) != 0) {
		lost(c, "it does not hold the key that the document names");
		return;
	}
	c->is_secured = true;
	c->failed_in_a_row = 0;
	c->waits_for = POLLIN;
	c->owner.secured(c->owner.ctx);
}

/* ---- frames ---- */

void relay_connection_send(struct relay_connection *c, const struct relay_frame *m) {
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	size_t n = relay_frame_encode(m, bytes);
	if (!c->is_secured || c->n_out + n > sizeof c->out)
		return;
	memcpy(c->out + c->n_out, bytes, n);
	c->n_out += n;
}

void relay_connection_flush(struct relay_connection *c) {
	while (c->is_secured && c->n_out > 0) {
		size_t n = 0;
		ERR_clear_error();
		int rc = SSL_write_ex(c->ssl, c->out, c->n_out, &n);
		if (rc <= 0) {
			(void)waits(c, rc);
			return;
		}
		c->n_out -= n;
		memmove(c->out, c->out + n, c->n_out);
	}
	c->waits_for = c->is_secured ? POLLIN : c->waits_for;
}

/* Takes the frames that are whole. Returns false when the connection is gone. */
static bool take_frames(struct relay_connection *c) {
	size_t used = 1;
	while (used > 0) {
		struct relay_frame m;
		struct rv_errtext et;
		if (relay_frame_decode(c->in, c->n_in, &m, &used, &et) != RV_OK) {
			lost(c, et.text);
			return false;
		}
		if (used == 0)
			break;
		c->n_in -= used;
		memmove(c->in, c->in + used, c->n_in);
		if (!c->owner.frame(c->owner.ctx, &m))
			return false;
	}
	return true;
}

static void receive(struct relay_connection *c) {
	bool goes_on = true;
	while (goes_on && c->is_secured) {
		size_t n = 0;
		ERR_clear_error();
		int rc = SSL_read_ex(c->ssl, c->in + c->n_in, sizeof c->in - c->n_in, &n);
		if (rc <= 0) {
			(void)waits(c, rc);
			return;
		}
		c->n_in += n;
		goes_on = take_frames(c);
	}
}

/* ---- the loop ---- */

bool relay_connection_pollfd(const struct relay_connection *c, struct pollfd *out) {
	if (c->dial.fd < 0)
		return false;
	*out = (struct pollfd){.fd = c->dial.fd, .events = (short)(c->waits_for | (c->is_secured ? POLLIN : 0))};
	return true;
}

void relay_connection_handle(struct relay_connection *c, int64_t now_us, short revents) {
	if (c->dial.state == RELAY_DIAL_NONE)
		return;
	if (c->ssl == NULL) {
		relay_dial_step(&c->dial, c->shared, now_us, revents != 0);
		if (c->dial.state == RELAY_DIAL_FAILED) {
			char why[sizeof c->dial.why];
			memcpy(why, c->dial.why, sizeof why);
			lost(c, why);
			return;
		}
		if (c->dial.state == RELAY_DIAL_OPEN)
			begin_tls(c);
	}
	if (revents != 0 && c->ssl != NULL && !c->is_secured)
		secure(c);
	if (revents != 0 && c->is_secured)
		receive(c);
}
