#include "llm/trust.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

enum {
	BELIEVED_MS = 24 * 60 * 60 * 1000
}; /* then the files are looked at again, as libcurl does */

struct trust {
	X509_STORE *store; /* owned; NULL: not read yet */
	int64_t read_ms;
};

static const char *const bundle_variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* A file; NULL: no variable names one. */
static const char *find_bundle(const char **ret_variable)
{
	for (size_t i = 0; i < sizeof bundle_variables / sizeof *bundle_variables; i++)
		if (environment(bundle_variables[i])) {
			*ret_variable = bundle_variables[i];
			return environment(bundle_variables[i]);
		}
	return NULL;
}

struct trust *trust_new(void)
{
	return xcalloc(1, sizeof(struct trust));
}

void trust_free(struct trust *trust)
{
	if (!trust)
		return;
	X509_STORE_free(trust->store);
	free(trust);
}

/* As libcurl sets one up: what a file or a directory has is believed, also where it is not the last
 * link of a chain. NULL: the file cannot be read. */
static X509_STORE *read_store(void)
{
	const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
	const char *variable, *bundle = find_bundle(&variable);
	const char *directory = environment("SSL_CERT_DIR");
	X509_STORE *store = X509_STORE_new();

	if (!store)
		abort();
	if (!bundle)
		bundle = built->cainfo;
	if (!directory)
		directory = built->capath;
	X509_STORE_set_flags(store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
	if ((!bundle || X509_STORE_load_file(store, bundle)) &&
	    (!directory || X509_STORE_load_path(store, directory)))
		return store;
	X509_STORE_free(store);
	return NULL;
}

/* A connection is about to be made. */
static CURLcode on_curl_context(CURL *curl, void *context, void *arg)
{
	struct trust *trust = arg;
	int64_t now = clock_ms();

	(void)curl;
	if (trust->store && now - trust->read_ms > BELIEVED_MS) {
		X509_STORE_free(trust->store);
		trust->store = NULL;
	}
	if (!trust->store) {
		trust->store = read_store();
		trust->read_ms = now;
	}
	if (!trust->store)
		return CURLE_SSL_CACERT_BADFILE;
	SSL_CTX_set1_cert_store(context, trust->store);
	return CURLE_OK;
}

/* By another library's TLS: libcurl reads the files. */
static void apply_files(CURL *curl)
{
	const char *directory = environment("SSL_CERT_DIR"), *variable;
	const char *bundle = find_bundle(&variable);

	if (bundle) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, bundle);
		curl_easy_setopt(curl, CURLOPT_PROXY_CAINFO, bundle);
	}
	if (directory) {
		curl_easy_setopt(curl, CURLOPT_CAPATH, directory);
		curl_easy_setopt(curl, CURLOPT_PROXY_CAPATH, directory);
	}
}

void trust_apply(struct trust *trust, CURL *curl)
{
	static const CURLoption files[] = {CURLOPT_CAINFO, CURLOPT_CAPATH, CURLOPT_PROXY_CAINFO,
					   CURLOPT_PROXY_CAPATH};
	const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;

	if (!library || strncmp(library, "OpenSSL/", 8)) {
		apply_files(curl);
		return;
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		curl_easy_setopt(curl, files[i], NULL);
	curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_curl_context);
	curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, trust);
}

void trust_name(char *out, size_t size)
{
	const char *variable, *bundle = find_bundle(&variable);
	char path[200];

	if (!bundle) {
		snprintf(out, size, "the system's");
		return;
	}
	text_escape(text_of(bundle), path, sizeof path);
	snprintf(out, size, "%s=%s", variable, path);
}
