#include "net/easy.h"

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "net/curl_check.h"
#include "net/trust.h"

enum { KEPT_MAX = 256 }; /* of some kilobytes each */

struct easy_pool {
	CURLSH *share;     /* owned: addresses and TLS sessions, which all handles use */
	struct easy *kept; /* owned: those that nobody uses */
	size_t count;      /* of them */
};

struct easy_pool *easy_pool_new(void)
{
	struct easy_pool *pool = xcalloc(1, sizeof *pool);

	pool->share = xpresent(curl_share_init());
	if (curl_share_setopt(pool->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_NOMEM ||
	    curl_share_setopt(pool->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) ==
		    CURLSHE_NOMEM)
		alloc_failed();
	return pool;
}

static void headers_free(struct curl_slist *list)
{
	for (struct curl_slist *each = list; each; each = each->next)
		explicit_bzero(each->data, strlen(each->data));
	curl_slist_free_all(list);
}

static void easy_free(struct easy *easy)
{
	curl_easy_cleanup(easy->curl);
	headers_free(easy->headers);
	curl_url_cleanup(easy->parsed);
	free(easy->url);
	free(easy);
}

void easy_pool_free(struct easy_pool *pool)
{
	struct easy *easy;

	if (!pool)
		return;
	while ((easy = pool->kept)) {
		pool->kept = easy->next;
		easy_free(easy);
	}
	curl_share_cleanup(pool->share);
	free(pool);
}

static void configure(struct easy_pool *pool, struct easy *easy)
{
	CURL *curl = easy->curl;

	curl_set(curl, CURLOPT_SHARE, pool->share);
	curl_set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	/* libcurl 7.88 loses requests on reused HTTP/2 connections; and we need no multiplexing. */
	curl_set(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_set(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_set(curl, CURLOPT_NOSIGNAL, 1L);
	curl_set(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	/* A cancelled transfer must not wait for the resolver's thread. */
	curl_set(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_set(curl, CURLOPT_USERAGENT, "rlmd/" RLMD_VERSION);
	curl_set(curl, CURLOPT_ERRORBUFFER, easy->words);
	trust_apply(curl);
}

static bool headers_equal(const struct curl_slist *list, const char *const *headers)
{
	list = list->next; /* the first one is our own */
	while (list && *headers && !strcmp(list->data, *headers)) {
		list = list->next;
		headers++;
	}
	return !list && !*headers;
}

static void set_headers(struct easy *easy, const char *const *headers)
{
	if (easy->headers && headers_equal(easy->headers, headers))
		return;
	headers_free(easy->headers);
	/* Without it libcurl waits up to a second for "100 Continue" before larger bodies. */
	easy->headers = xpresent(curl_slist_append(NULL, "Expect:"));
	while (*headers)
		easy->headers = xpresent(curl_slist_append(easy->headers, *headers++));
	curl_set(easy->curl, CURLOPT_HTTPHEADER, easy->headers);
}

/* Given as a text, libcurl reads it again for each request. A certificate that we cannot read is
 * given as a text all the same, so that libcurl says why. */
static void set_url(struct easy *easy, const char *url)
{
	if (easy->url && !strcmp(easy->url, url))
		return;
	free(easy->url);
	easy->url = xstrdup(url);
	route_init(&easy->route, url);
	curl_url_cleanup(easy->parsed);
	easy->parsed = xpresent(curl_url());
	if (curl_check_url(curl_url_set(easy->parsed, CURLUPART_URL, url,
					CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME))) {
		curl_url_cleanup(easy->parsed);
		easy->parsed = NULL;
	}
	curl_set(easy->curl, CURLOPT_CURLU, easy->parsed);
	curl_set(easy->curl, CURLOPT_URL, easy->parsed ? NULL : url);
}

struct easy *easy_pool_take(struct easy_pool *pool, const char *url, const char *const *headers)
{
	struct easy *easy = pool->kept;

	if (easy) {
		pool->kept = easy->next;
		pool->count--;
	} else {
		easy = xcalloc(1, sizeof *easy);
		easy->curl = xpresent(curl_easy_init());
		configure(pool, easy);
	}
	set_headers(easy, headers);
	set_url(easy, url);
	return easy;
}

void easy_ask_nothing(struct easy *easy, bool nothing)
{
	curl_set(easy->curl, CURLOPT_NOBODY, (long)nothing);
	curl_set(easy->curl, CURLOPT_TIMECONDITION,
		 (long)(nothing ? CURL_TIMECOND_IFMODSINCE : CURL_TIMECOND_NONE));
	curl_set(easy->curl, CURLOPT_TIMEVALUE_LARGE,
		 nothing ? (curl_off_t)INT64_MAX : (curl_off_t)0);
}

void easy_pool_give(struct easy_pool *pool, struct easy *easy)
{
	if (pool->count == KEPT_MAX) {
		easy_free(easy);
		return;
	}
	easy->next = pool->kept;
	pool->kept = easy;
	pool->count++;
}
