#include "llm/provider.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "llm/key.h"

enum { REMEMBERED_MAX = 64 }; /* models are named by foreign code */

/* "https://host:port", new; NULL where it is no such URL. */
static char *origin_of(const char *url)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *origin = NULL;
	CURLU *parsed = curl_url();

	if (parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
	    !curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
	    !curl_url_get(parsed, CURLUPART_HOST, &host, 0) &&
	    !curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
	    (!strcmp(scheme, "http") || !strcmp(scheme, "https")))
		origin = xasprintf("%s://%s:%s", scheme, host, port);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parsed);
	return origin;
}

static const char *environment_url(const struct adapter *adapter)
{
	for (const char *const *name = adapter->base_url_env; name && *name; name++) {
		const char *value = getenv(*name);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* A base URL as the adapter wants it, without a slash at its end; new. */
static char *normal_base(const struct adapter *adapter, const char *given, struct rlmd_error *err)
{
	char *base = adapter->base_url ? adapter->base_url(given, err) : xstrdup(given);
	auto_free char *origin = NULL;

	if (!base) {
		error_context(err, "base URL '%s'", given);
		return NULL;
	}
	for (size_t size = strlen(base); size && base[size - 1] == '/';)
		base[--size] = '\0';
	origin = origin_of(base);
	if (origin)
		return base;
	error_set(err, RLMD_ERROR_USAGE, "the base URL '%s' is no http or https URL", given);
	free(base);
	return NULL;
}

static bool same_origin(const struct adapter *adapter, const char *base, const char *other)
{
	auto_free char *normal = other ? normal_base(adapter, other, NULL) : NULL;
	auto_free char *left = origin_of(base);
	auto_free char *right = normal ? origin_of(normal) : NULL;

	return left && right && !strcasecmp(left, right);
}

static bool provider_choose_key(struct provider *provider, const struct llm_config *config,
				const char *base, char *from_environment, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;
	bool at_home = same_origin(adapter, base, adapter->default_base_url);

	if (config->key_file) {
		key_free(from_environment);
		provider->key = key_read_file(config->key_file, err);
		return provider->key;
	}
	if (from_environment && (at_home || same_origin(adapter, base, environment_url(adapter)))) {
		provider->key = from_environment;
		return key_check(provider->key, "the environment", err);
	}
	key_free(from_environment);
	if (at_home && adapter->key_required)
		return error_set(err, RLMD_ERROR_AUTH,
				 "no key for %s; set %s, or give --key-file FILE", provider->name,
				 adapter->key_env[0]);
	return true;
}

static void provider_make_headers(struct provider *provider)
{
	const struct adapter *adapter = provider->adapter;
	size_t count = 0;

	while (adapter->headers && adapter->headers[count])
		count++;
	provider->headers = xcalloc(count + 3, sizeof *provider->headers);
	for (size_t i = 0; i < count; i++)
		provider->headers[i] = xstrdup(adapter->headers[i]);
	provider->headers[count++] = xstrdup("Content-Type: application/json");
	if (provider->key && adapter->key_header) {
		const char *place = strstr(adapter->key_header, "%s");

		provider->headers[count] = xasprintf("%.*s%s%s", (int)(place - adapter->key_header),
						     adapter->key_header, provider->key, place + 2);
	}
}

/* Loopback, the addresses of private networks (RFC 1918), and names that only those know. */
static bool is_near(const char *base)
{
	static const char *const places[] = {"127.", "10.", "192.168.", "[::1]", "[f"};
	const char *host = strstr(base, "://") + strlen("://");
	size_t size = strcspn(host, host[0] == '[' ? "]" : ":/");
	int second = 0;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (!strncmp(host, places[i], strlen(places[i])))
			return true;
	if (sscanf(host, "172.%d.", &second) == 1)
		return second >= 16 && second <= 31;
	return !memchr(host, '.', size) || (size > 6 && !strncasecmp(host + size - 6, ".local", 6));
}

static bool provider_open(struct provider *provider, const struct llm_config *config,
			  char *from_environment, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;
	const char *given = config->base_url ? config->base_url : environment_url(adapter);
	auto_free char *base = normal_base(adapter, given ? given : adapter->default_base_url, err);

	if (!base) {
		key_free(from_environment);
		return false;
	}
	if (!provider_choose_key(provider, config, base, from_environment, err))
		return false;
	provider->near = is_near(base);
	provider->url = xasprintf("%s%s", base, adapter->path);
	provider_make_headers(provider);
	provider->gate = gate_new(config->max_retries, config->patience_ms);
	provider->http = http_new(provider->base, err);
	return provider->http;
}

static bool provider_read_prices(struct provider *provider, const char *given,
				 struct rlmd_error *err)
{
	auto_free char *path = file_shipped("share", "prices.json");

	struct rlmd_error missing = {0};

	provider->shipped = price_table_read(path, &missing);
	if (!provider->shipped)
		provider_warn(provider, "prices are unknown: %s", missing.text);
	if (given)
		provider->given = price_table_read(given, err);
	return !given || provider->given;
}

bool provider_init(struct provider *provider, struct event_base *base,
		   const struct llm_config *config, struct rlmd_error *err)
{
	bool replay = !strcmp(config->provider, "replay");
	const struct adapter *adapter = adapter_find(config->provider);
	char *key = NULL;

	if (!adapter && !replay)
		return error_set(err, RLMD_ERROR_USAGE,
				 "unknown provider '%s'; there are %s, replay", config->provider,
				 adapter_names());
	if (replay && !config->replay_dir)
		return error_set(err, RLMD_ERROR_USAGE, "provider replay needs --replay DIR");
	provider->base = base;
	provider->adapter = adapter;
	provider->name = adapter ? adapter->name : "replay";
	provider->no_stream = config->no_stream;
	provider->quirks = json_object();
	provider->warnings = json_array();
	provider->warned = json_object();
	if (config->model && *config->model)
		provider->default_model = xstrdup(config->model);
	else
		provider->default_model = xstrdup(adapter ? adapter->default_model : "replay");
	if (adapter && adapter->key_env)
		key = key_take_environment(adapter->key_env);
	if (!provider_read_prices(provider, config->price_table, err)) {
		key_free(key);
		return false;
	}
	if (!config->replay_dir && !config->offline)
		return provider_open(provider, config, key, err);
	key_free(key);
	return true;
}

void provider_done(struct provider *provider)
{
	http_free(provider->http);
	gate_free(provider->gate);
	for (char **header = provider->headers; header && *header; header++)
		key_free(*header);
	free(provider->headers);
	key_free(provider->key);
	free(provider->url);
	free(provider->default_model);
	price_table_free(provider->shipped);
	price_table_free(provider->given);
	json_decref(provider->quirks);
	json_decref(provider->warnings);
	json_decref(provider->warned);
}

bool provider_price(const struct provider *provider, const char *model, struct price *ret)
{
	const struct price_table *tables[] = {provider->given, provider->shipped};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (tables[i] && price_find(tables[i], provider->name, model, ret))
			return true;
	return false;
}

bool provider_is_local(const struct provider *provider, const char *model)
{
	struct price price;

	return provider->adapter->local ||
	       (provider->near && !provider_price(provider, model, &price));
}

bool provider_cost(const struct provider *provider, const char *model,
		   const struct llm_usage *usage, int64_t *ret_cost)
{
	struct price price;

	*ret_cost = 0;
	if (!provider->adapter || provider->adapter->local)
		return true;
	if (!provider_price(provider, model, &price))
		return false;
	*ret_cost = price_cost(&price, usage);
	return true;
}

bool provider_charge(struct provider *provider, const char *model, const char *resolved,
		     int64_t reported, const struct llm_usage *usage, int64_t *ret_cost)
{
	bool local = provider->adapter && provider->adapter->local;

	if (reported >= 0 && !local) {
		*ret_cost = reported;
		return true;
	}
	if (provider_cost(provider, model, usage, ret_cost) ||
	    provider_cost(provider, resolved, usage, ret_cost))
		return true;
	provider_warn_unpriced(provider, model);
	return false;
}

void provider_warn_unpriced(struct provider *provider, const char *model)
{
	provider_warn(provider,
		      "the price of model '%.100s' is not known: its cost is neither counted nor "
		      "limited, but --max-tokens and --max-time hold; --price-table can give it",
		      model);
}

void provider_warn(struct provider *provider, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (json_object_size(provider->warned) >= REMEMBERED_MAX ||
	    json_object_get(provider->warned, text))
		return;
	json_object_set_new_nocheck(provider->warned, text, json_true());
	json_array_append_new(provider->warnings, json_from_text(text_of(text)));
}

unsigned provider_quirks(const struct provider *provider, const char *model)
{
	unsigned quirks = (unsigned)json_get_integer(provider->quirks, model, 0);

	return quirks | (provider->no_stream ? QUIRK_NO_STREAM : 0);
}

unsigned provider_learn(struct provider *provider, const char *model, unsigned quirks,
			unsigned quirk)
{
	if (quirk == QUIRK_OLD_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_NEW_MAX_TOKENS;
	if (quirk == QUIRK_NEW_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_OLD_MAX_TOKENS;
	if (quirk == QUIRK_NO_TEMPERATURE || quirk == QUIRK_NO_STOP)
		provider_warn(provider, "model '%.100s' refuses %s: it is asked without", model,
			      quirk == QUIRK_NO_STOP ? "stop texts" : "a temperature");
	quirks |= quirk;
	if (json_object_size(provider->quirks) < REMEMBERED_MAX ||
	    json_object_get(provider->quirks, model))
		json_object_set_new_nocheck(provider->quirks, model, json_integer(quirks));
	return quirks;
}
