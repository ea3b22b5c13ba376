#include "bench/bare_curl.h"

#include <curl/curl.h>
#include <stddef.h>
#include <stdlib.h>

#include "bench/measure.h"

static size_t on_write(char *bytes, size_t one, size_t size, void *ret_size)
{
	(void)bytes, (void)one;
	*(size_t *)ret_size += size;
	return size;
}

static void post(CURL *easy)
{
	CURLcode code = curl_easy_perform(easy);

	if (code)
		measure_fail("%s", curl_easy_strerror(code));
}

double bare_curl_cost(const char *url, const char *body, int calls)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *easy = curl_easy_init();
	size_t size = 0;
	double start;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	if (getenv("SSL_CERT_FILE")) /* libcurl itself does not look */
		curl_easy_setopt(easy, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &size);
	post(easy); /* the connection opens */
	start = measure_cpu();
	for (int i = 0; i < calls; i++)
		post(easy);
	start = measure_cpu() - start;
	if (!size)
		measure_fail("answers without a byte");
	curl_easy_cleanup(easy);
	curl_slist_free_all(headers);
	return start / calls;
}
