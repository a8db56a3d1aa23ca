/* ca_file.h: whose certificates of web servers are believed: those of the system's authorities, or
 * those of the file that SSL_CERT_FILE of the environment names, as OpenSSL's own programs do. (The
 * coordinator and members are known by their keys instead: net/tls.h.) */
#ifndef RV_NET_CA_FILE_H
#define RV_NET_CA_FILE_H

#include <curl/curl.h>

/* Sets the file for a transfer; nothing where the environment names none. Returns what
 * curl_easy_setopt() returns. The transfer fails if the file cannot be read. */
CURLcode ca_file_use(CURL *easy);

#endif
