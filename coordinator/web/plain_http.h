/* plain_http.h: the answer to plain HTTP on the port of HTTPS, as people type http:// for https://.
 * One attempt to send some hundred bytes, no memory, no waiting: it costs less than a handshake. */
#ifndef RV_COORDINATOR_PLAIN_HTTP_H
#define RV_COORDINATOR_PLAIN_HTTP_H

#include <openssl/types.h>

/* Sends 400 with the address of HTTPS, if `ssl`, a server's whose handshake has just failed, got
 * the begin of an HTTP request. `place`: HOST:PORT. The caller closes the socket. */
void plain_http_answer(const SSL *ssl, const char *place);

#endif
