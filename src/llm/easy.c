#include "llm/easy.h"

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "llm/trust.h"

enum { KEPT_MAX = 256 }; /* of some kilobytes each */

struct easies {
	CURLSH *share;       /* owned: addresses and TLS sessions, which all handles use */
	struct trust *trust; /* owned */
	struct easy *kept;   /* owned: those that nobody uses */
	size_t count;        /* of them */
};

static void *must(void *allocated)
{
	if (!allocated)
		abort();
	return allocated;
}

struct easies *easies_new(void)
{
	struct easies *easies = xcalloc(1, sizeof *easies);

	easies->trust = trust_new();
	easies->share = must(curl_share_init());
	curl_share_setopt(easies->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
	curl_share_setopt(easies->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	return easies;
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

void easies_free(struct easies *easies)
{
	struct easy *easy;

	if (!easies)
		return;
	while ((easy = easies->kept)) {
		easies->kept = easy->next;
		easy_free(easy);
	}
	curl_share_cleanup(easies->share);
	trust_free(easies->trust);
	free(easies);
}

static void configure(struct easies *easies, struct easy *easy)
{
	CURL *curl = easy->curl;

	curl_easy_setopt(curl, CURLOPT_SHARE, easies->share);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	/* libcurl 7.88 loses requests on reused HTTP/2 connections; and we need no multiplexing. */
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	/* A cancelled transfer must not wait for the resolver's thread. */
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "rlmd/" RLMD_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, easy->words);
	trust_apply(easies->trust, curl);
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
	easy->headers = must(curl_slist_append(NULL, "Expect:"));
	while (*headers)
		easy->headers = must(curl_slist_append(easy->headers, *headers++));
	curl_easy_setopt(easy->curl, CURLOPT_HTTPHEADER, easy->headers);
}

/* Given as a text, libcurl reads it again for each request. What it cannot read is given as a text
 * all the same, so that it says why. */
static void set_url(struct easy *easy, const char *url)
{
	if (easy->url && !strcmp(easy->url, url))
		return;
	free(easy->url);
	easy->url = xstrdup(url);
	route_init(&easy->route, url);
	curl_url_cleanup(easy->parsed);
	easy->parsed = curl_url();
	if (curl_url_set(easy->parsed, CURLUPART_URL, url,
			 CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)) {
		curl_url_cleanup(easy->parsed);
		easy->parsed = NULL;
	}
	curl_easy_setopt(easy->curl, CURLOPT_CURLU, easy->parsed);
	curl_easy_setopt(easy->curl, CURLOPT_URL, easy->parsed ? NULL : url);
}

struct easy *easies_take(struct easies *easies, const char *url, const char *const *headers)
{
	struct easy *easy = easies->kept;

	if (easy) {
		easies->kept = easy->next;
		easies->count--;
	} else {
		easy = xcalloc(1, sizeof *easy);
		easy->curl = must(curl_easy_init());
		configure(easies, easy);
	}
	set_headers(easy, headers);
	set_url(easy, url);
	return easy;
}

void easy_ask_nothing(struct easy *easy, bool nothing)
{
	curl_easy_setopt(easy->curl, CURLOPT_NOBODY, (long)nothing);
	curl_easy_setopt(easy->curl, CURLOPT_TIMECONDITION,
			 (long)(nothing ? CURL_TIMECOND_IFMODSINCE : CURL_TIMECOND_NONE));
	curl_easy_setopt(easy->curl, CURLOPT_TIMEVALUE_LARGE,
			 nothing ? (curl_off_t)INT64_MAX : (curl_off_t)0);
}

void easies_give(struct easies *easies, struct easy *easy)
{
	if (easies->count == KEPT_MAX) {
		easy_free(easy);
		return;
	}
	easy->next = easies->kept;
	easies->kept = easy;
	easies->count++;
}
