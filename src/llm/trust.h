/*
 * llm/trust.h - whose certificates are believed, read once.
 *
 * CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR, which libcurl leaves to its callers, else what it
 * was built with. Left to itself libcurl 7.88 reads the files again for each connection: with
 * Debian's 140 authorities that is 23 ms of CPU, and a thousand connections at once never open.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

struct trust;
struct trust *trust_new(void);   /* reads nothing yet */
void trust_free(struct trust *); /* handles that it was applied to must be gone; NULL is fine */

void trust_apply(struct trust *, CURL *);

/* "SSL_CERT_FILE=/path", as far as it fits; where none is set, "the system's". */
void trust_name(char *out, size_t size);
