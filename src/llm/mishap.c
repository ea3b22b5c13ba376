#include "llm/mishap.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "llm/trust.h"

enum { PROXY_AUTH = 407, SERVER_ERROR = 500 };

static const char *os_reason(const struct mishap *mishap)
{
	long number = 0;

	curl_easy_getinfo(mishap->easy, CURLINFO_OS_ERRNO, &number);
	return number ? strerror((int)number) : curl_easy_strerror(mishap->code);
}

void mishap_at_proxy(const struct route *route, struct rlmd_error *err)
{
	error_set(err, RLMD_ERROR_AUTH,
		  "the proxy %s wants another user name and password (status %d); %s may hold "
		  "them, as http://USER:PASSWORD@HOST:PORT",
		  route->proxy, PROXY_AUTH,
		  route->variable ? route->variable : "the proxy's variable");
	err->http_status = PROXY_AUTH;
}

/* The proxy's own answer to CONNECT, 0 where there was none. */
static int tunnel_status(const struct mishap *mishap)
{
	long status = 0;

	curl_easy_getinfo(mishap->easy, CURLINFO_HTTP_CONNECTCODE, &status);
	return mishap->sent || status / 100 == 2 ? 0 : (int)status;
}

static bool explain_tunnel(const struct mishap *mishap, int status, struct rlmd_error *err)
{
	const struct route *route = mishap->route;

	if (status == PROXY_AUTH) {
		mishap_at_proxy(route, err);
		return true;
	}
	error_set(err, RLMD_ERROR_NETWORK,
		  "the proxy %s lets nobody through to %s: it answered with status %d; ask whoever "
		  "runs it, or name the host in no_proxy",
		  route->proxy, route->origin, status);
	return status < SERVER_ERROR;
}

/* No connection came about: to the proxy, or to the server itself. */
static void explain_unreachable(const struct mishap *mishap, const char *why,
				struct rlmd_error *err)
{
	if (mishap->proxied && mishap->code == CURLE_OPERATION_TIMEDOUT)
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach %s by way of the proxy %s: %s",
			  mishap->route->origin, mishap->route->proxy, why);
	else if (mishap->proxied || mishap->code == CURLE_COULDNT_RESOLVE_PROXY)
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach the proxy %s: %s; check %s",
			  mishap->route->proxy, why, mishap->route->variable);
	else if (mishap->code == CURLE_COULDNT_RESOLVE_HOST)
		error_set(err, RLMD_ERROR_NETWORK,
			  "cannot reach %s: %s; check the base URL and the network",
			  mishap->route->origin, why);
	else
		error_set(err, RLMD_ERROR_NETWORK, "cannot reach %s: %s; is the server running?",
			  mishap->route->origin, why);
}

static bool explain_certificate(const struct mishap *mishap, struct rlmd_error *err)
{
	char words[160], trusted[220];

	text_escape(text_of(mishap->words), words, sizeof words);
	trust_name(trusted, sizeof trusted);
	if (mishap->code == CURLE_SSL_CACERT_BADFILE)
		error_set(err, RLMD_ERROR_USAGE, "the certificates to trust, %s, cannot be read",
			  trusted);
	else
		error_set(err, RLMD_ERROR_NETWORK,
			  "the certificate of %s is not trusted (%s); check the base URL, or name "
			  "a file with its authority's certificate in SSL_CERT_FILE",
			  mishap->route->origin, words);
	return true;
}

static void explain_tls(const struct mishap *mishap, struct rlmd_error *err)
{
	char words[160];

	text_escape(text_of(mishap->words), words, sizeof words);
	error_set(err, RLMD_ERROR_NETWORK,
		  "no TLS connection with %s: %s; check that the base URL is one of https and not "
		  "of http",
		  mishap->route->origin, words);
}

/* What is neither a status nor an answer. */
static void explain_broken(const struct mishap *mishap, struct rlmd_error *err)
{
	const char *by = mishap->proxied ? " by way of the proxy " : "";
	const char *proxy = mishap->proxied ? mishap->route->proxy : "";

	if (mishap->lost)
		error_set(err, RLMD_ERROR_NETWORK,
			  "the connection to %s%s%s, kept from an earlier request, broke before "
			  "its answer",
			  mishap->route->origin, by, proxy);
	else if (mishap->unclean)
		error_set(
			err, RLMD_ERROR_NETWORK,
			"on the connection to %s%s%s, kept from an earlier request, was an answer "
			"that nobody had asked for",
			mishap->route->origin, by, proxy);
	else
		error_set(err, RLMD_ERROR_NETWORK, "the connection to %s%s%s broke: %s",
			  mishap->route->origin, by, proxy, curl_easy_strerror(mishap->code));
}

static void explain_no_http(const struct mishap *mishap, struct rlmd_error *err)
{
	if (mishap->sent)
		error_set(err, RLMD_ERROR_BAD_REPLY,
			  "what %s answered is no HTTP; check that the base URL is the provider's "
			  "API",
			  mishap->route->origin);
	else if (mishap->proxied)
		error_set(err, RLMD_ERROR_NETWORK,
			  "what the proxy %s answered is no HTTP; check %s", mishap->route->proxy,
			  mishap->route->variable);
	else
		error_set(err, RLMD_ERROR_USAGE, "%s: %s; check the base URL",
			  mishap->route->origin, curl_easy_strerror(mishap->code));
}

bool mishap_explain(const struct mishap *mishap, struct rlmd_error *err)
{
	int status = tunnel_status(mishap);
	char late[64];

	if (status)
		return explain_tunnel(mishap, status, err);
	switch ((int)mishap->code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		explain_unreachable(mishap, "no such host", err);
		return false;
	case CURLE_COULDNT_CONNECT:
		explain_unreachable(mishap, os_reason(mishap), err);
		return false;
	case CURLE_OPERATION_TIMEDOUT:
		snprintf(late, sizeof late, "no connection within %d s", mishap->connect_ms / 1000);
		explain_unreachable(mishap, late, err);
		return false;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return explain_certificate(mishap, err);
	case CURLE_SSL_CONNECT_ERROR:
		explain_tls(mishap, err);
		return false;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL: /* also a first line that is no status line of HTTP */
	case CURLE_WEIRD_SERVER_REPLY:
		explain_no_http(mishap, err);
		return false;
	case CURLE_WRITE_ERROR:
		error_set(err, RLMD_ERROR_BAD_REPLY, "the answer of %s is larger than %zu bytes",
			  mishap->route->origin, mishap->max_size);
		return false;
	default:
		explain_broken(mishap, err);
		return false;
	}
}
