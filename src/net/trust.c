#include "net/trust.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "net/curl_check.h"

static const char *const bundle_variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};

/* Where systems keep theirs, for a libcurl that was built on another one: Debian and Arch, Fedora,
 * SUSE, Alpine. The list of Go's crypto/x509, root_linux.go, is the source. */
static const char *const system_bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
					     "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

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

/* The one that libcurl was built with, or else another system's that is here; NULL: none is. */
static const char *find_system_bundle(const curl_version_info_data *built)
{
	if (built->cainfo && !access(built->cainfo, R_OK))
		return built->cainfo;
	for (size_t i = 0; i < sizeof system_bundles / sizeof *system_bundles; i++)
		if (!access(system_bundles[i], R_OK))
			return system_bundles[i];
	return NULL;
}

static const char *find_directory(void)
{
	const char *directory = environment("SSL_CERT_DIR");

	return directory ? directory : curl_version_info(CURLVERSION_NOW)->capath;
}

/* A connection is about to be made. The store is libcurl's, which keeps it for others; a directory
 * that it has already is not added again. */
static CURLcode on_curl_context(CURL *curl, void *context, void *arg)
{
	const char *directory = find_directory();

	(void)curl;
	(void)arg;
	return !directory || X509_STORE_load_path(SSL_CTX_get_cert_store(context), directory)
		       ? CURLE_OK
		       : CURLE_SSL_CACERT_BADFILE;
}

void trust_apply(CURL *curl)
{
	const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
	bool is_openssl = built->ssl_version && !strncmp(built->ssl_version, "OpenSSL/", 8);
	const char *variable, *bundle = find_bundle(&variable);

	if (!bundle)
		bundle = find_system_bundle(built);
	/* There need be none where a variable names a directory; else libcurl says what it misses.
	 */
	if (!bundle && !environment("SSL_CERT_DIR"))
		bundle = built->cainfo;
	curl_set(curl, CURLOPT_CAINFO, bundle);
	curl_set(curl, CURLOPT_PROXY_CAINFO, bundle);
	curl_set(curl, CURLOPT_CAPATH, is_openssl ? NULL : find_directory());
	curl_set(curl, CURLOPT_PROXY_CAPATH, is_openssl ? NULL : find_directory());
	if (is_openssl)
		curl_set(curl, CURLOPT_SSL_CTX_FUNCTION, on_curl_context);
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
