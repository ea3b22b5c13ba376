/*
 * net/trust.h - whose certificates are believed, read once by libcurl.
 *
 * CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR, which libcurl leaves to its callers, else the
 * file that it was built with, or, where that is not here, another system's. libcurl keeps what it
 * has read of a file for a day, in its multi handle, unless it is to look into a directory too:
 * then it reads the file for each connection, which with Debian's 140 authorities is 23 ms of CPU.
 * So a directory is added to what it keeps.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

void trust_apply(CURL *);

/* "SSL_CERT_FILE=/path", as far as it fits; where none is set, "the system's". */
void trust_name(char *out, size_t size);
