#include "net/http_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "net/trust.h"

enum { PROXY_AUTH = 407, SERVER_ERROR = 500 };

static const char *os_reason(const struct http_error *failed)
{
	long number = 0;

	curl_easy_getinfo(failed->easy, CURLINFO_OS_ERRNO, &number);
	return number ? strerror((int)number) : curl_easy_strerror(failed->code);
}

void http_error_at_proxy(const struct route *route, struct rlmd_error *err)
{
	error_set(err, RLMD_ERROR_AUTH,
		  "the proxy %s wants another user name and password (status %d); %s may hold "
		  "them, as http://USER:PASSWORD@HOST:PORT",
		  route->proxy, PROXY_AUTH,
		  route->variable ? route->variable : "the proxy's variable");
	err->http_status = PROXY_AUTH;
}

/* The proxy's own answer to CONNECT, 0 where there was none. */
static int tunnel_status(const struct http_error *failed)
{
	long status = 0;

	curl_easy_getinfo(failed->easy, CURLINFO_HTTP_CONNECTCODE, &status);
	return failed->sent || status / 100 == 2 ? 0 : (int)status;
}

static bool explain_tunnel(const struct http_error *failed, int status, struct rlmd_error *err)
{
	const struct route *route = failed->route;

	if (status == PROXY_AUTH) {
		http_error_at_proxy(route, err);
		return true;
	}
	error_set(err, RLMD_ERROR_NETWORK,
		  "the proxy %s lets nobody through to %s: it answered with status %d; ask whoever "
		  "runs it, or name the host in no_proxy",
		  route->proxy, route->origin, status);
	return status < SERVER_ERROR;
}

/* No connection came about: to the proxy, or to the server itself. */
static void explain_unreachable(const struct http_error *failed, const char *why,
				struct rlmd_error *err)
{
	if (failed->proxied && failed->code == CURLE_OPERATION_TIMEDOUT)
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach %s by way of the proxy %s: %s",
			  failed->route->origin, failed->route->proxy, why);
	else if (failed->proxied || failed->code == CURLE_COULDNT_RESOLVE_PROXY)
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach the proxy %s: %s; check %s",
			  failed->route->proxy, why, failed->route->variable);
	else if (failed->code == CURLE_COULDNT_RESOLVE_HOST)
		error_set(err, RLMD_ERROR_NETWORK,
			  "cannot reach %s: %s; check the base URL and the network",
			  failed->route->origin, why);
	else
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach %s: %s; is the server running?",
			  failed->route->origin, why);
}

static bool explain_certificate(const struct http_error *failed, struct rlmd_error *err)
{
	char words[160], trusted[220];

	text_escape(text_of(failed->words), words, sizeof words);
	trust_name(trusted, sizeof trusted);
	if (failed->code == CURLE_SSL_CACERT_BADFILE)
		error_set(err, RLMD_ERROR_USAGE,
			  "the certificates to trust, %s, cannot be read; install the system's "
			  "(ca-certificates), or name a file of them in SSL_CERT_FILE",
			  trusted);
	else
		error_set(err, RLMD_ERROR_NETWORK,
			  "the certificate of %s is not trusted (%s); check the base URL, or name "
			  "a file with its authority's certificate in SSL_CERT_FILE",
			  failed->route->origin, words);
	return true;
}

static void explain_tls(const struct http_error *failed, struct rlmd_error *err)
{
	char words[160];

	text_escape(text_of(failed->words), words, sizeof words);
	error_set(err, RLMD_ERROR_NETWORK,
		  "no TLS connection with %s: %s; check that the base URL is one of https and not "
		  "of http",
		  failed->route->origin, words);
}

/* Explains a reply that is neither a status nor an answer. */
static void explain_broken(const struct http_error *failed, struct rlmd_error *err)
{
	const char *by = failed->proxied ? " by way of the proxy " : "";
	const char *proxy = failed->proxied ? failed->route->proxy : "";

	if (failed->lost)
		error_set(err, RLMD_ERROR_NETWORK,
			  "the connection to %s%s%s, kept from an earlier request, broke before "
			  "its answer",
			  failed->route->origin, by, proxy);
	else if (failed->unclean)
		error_set(
			err, RLMD_ERROR_NETWORK,
			"on the connection to %s%s%s, kept from an earlier request, was an answer "
			"that nobody had asked for",
			failed->route->origin, by, proxy);
	else
		error_set(err, RLMD_ERROR_NETWORK, "the connection to %s%s%s broke: %s",
			  failed->route->origin, by, proxy, curl_easy_strerror(failed->code));
}

static void explain_no_http(const struct http_error *failed, struct rlmd_error *err)
{
	if (failed->sent)
		error_set(err, RLMD_ERROR_BAD_REPLY,
			  "what %s answered is no HTTP; check that the base URL is the provider's "
			  "API",
			  failed->route->origin);
	else if (failed->proxied)
		error_set(err, RLMD_ERROR_NETWORK,
			  "what the proxy %s answered is no HTTP; check %s", failed->route->proxy,
			  failed->route->variable);
	else
		error_set(err, RLMD_ERROR_USAGE, "%s: %s; check the base URL",
			  failed->route->origin, curl_easy_strerror(failed->code));
}

/* Whether so many descriptors cannot be opened now; errno says why. */
static bool lacks_descriptors(int count)
{
	int fd = open("/", O_PATH | O_CLOEXEC);
	bool lacks = fd < 0 ? error_kind_of(errno, RLMD_ERROR_NETWORK) == RLMD_ERROR_MACHINE
			    : count > 1 && lacks_descriptors(count - 1);

	if (fd >= 0)
		close(fd);
	return lacks;
}

/* libcurl tells neither of a resolver nor of a file why it could not be opened. Certificates are
 * read while the connection has a descriptor, which it has no more. */
static bool explain_want(const struct http_error *failed, struct rlmd_error *err)
{
	if (failed->code == CURLE_OUT_OF_MEMORY)
		return error_set(
			err, RLMD_ERROR_MACHINE,
			"no memory or no descriptor was left for a connection to %s; raise "
			"ulimit -n, or do less at once",
			failed->route->origin);
	errno = failed->socket_errno;
	if (failed->code == CURLE_COULDNT_CONNECT && errno)
		return error_errno(err, RLMD_ERROR_NETWORK, "no socket for a connection to %s",
				   failed->route->origin);
	return !lacks_descriptors(failed->code == CURLE_SSL_CACERT_BADFILE ? 2 : 1) ||
	       error_errno(err, RLMD_ERROR_MACHINE, "no descriptor for a connection to %s",
			   failed->route->origin);
}

bool http_error_explain(const struct http_error *failed, struct rlmd_error *err)
{
	int status = tunnel_status(failed);
	char late[64];

	if (status)
		return explain_tunnel(failed, status, err);
	if (!explain_want(failed, err))
		return false;
	switch ((int)failed->code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		explain_unreachable(failed, "no such host", err);
		return false;
	case CURLE_COULDNT_CONNECT:
		explain_unreachable(failed, os_reason(failed), err);
		return false;
	case CURLE_OPERATION_TIMEDOUT:
		snprintf(late, sizeof late, "no connection within %d s", failed->connect_ms / 1000);
		explain_unreachable(failed, late, err);
		return false;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return explain_certificate(failed, err);
	case CURLE_SSL_CONNECT_ERROR:
		explain_tls(failed, err);
		return false;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL: /* also a first line that is no status line of HTTP */
	case CURLE_WEIRD_SERVER_REPLY:
		explain_no_http(failed, err);
		return false;
	case CURLE_WRITE_ERROR:
		error_set(err, RLMD_ERROR_BAD_REPLY, "the answer of %s is larger than %zu bytes",
			  failed->route->origin, failed->max_size);
		return false;
	default:
		explain_broken(failed, err);
		return false;
	}
}
