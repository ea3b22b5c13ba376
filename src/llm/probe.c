/* Whether a provider answers: one request that costs nothing, for its list of models. */
#include <event2/event.h>
#include <rlmd/provider.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/timer.h"
#include "llm/failure.h"
#include "llm/key.h"
#include "llm/provider.h"
#include "net/http.h"

enum {
	ANSWER_MAX = 4 << 20,     /* bytes of a list of models */
	COMPLAINT_MAX = 16 << 10, /* bytes kept of an answer, for what it complains of */
	TIMEOUT_MAX = 86400000,   /* ms: nobody waits longer for a list */
};

struct rlmd_probe {
	struct rlmd_provider *provider; /* a reference; in our loop */
	struct http_transfer *transfer; /* owned; NULL: nothing is asked */
	struct timer *posted;           /* owned: the end, from the loop, where nothing is asked */
	struct evbuffer *answer;        /* owned: its beginning */
	char *url;                      /* owned; NULL: none */
	int status;
	struct rlmd_error error;

	rlmd_probe_done_fn *fn;
	void *owner; /* lent */
};

static void finish(struct rlmd_probe *probe)
{
	struct rlmd_probe_result result = {
		.size = sizeof result,
		.url = probe->url,
		.asked = probe->transfer,
		.status = probe->status,
		.error = probe->error.kind ? &probe->error : NULL,
	};

	probe->fn(probe->owner, &result);
}

static void on_posted(void *arg)
{
	finish(arg);
}

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct rlmd_probe *probe = owner;

	(void)transfer;
	probe->status = status;
}

static void on_data(void *owner, struct http_transfer *transfer, struct rlmd_text data)
{
	struct rlmd_probe *probe = owner;
	size_t room = COMPLAINT_MAX - evbuffer_get_length(probe->answer);

	(void)transfer;
	buffer_add(probe->answer, data.bytes, data.size < room ? data.size : room);
}

/* The provider's own words may quote the key. */
static void explain_status(struct rlmd_probe *probe)
{
	struct failure failure;
	size_t size;

	if (http_refused_by_proxy(probe->transfer, probe->status, &probe->error))
		return;
	failure_of_status(probe->status, text_in(probe->answer), &failure);
	size = key_redact(probe->provider->key, failure.message, strlen(failure.message));
	error_set(&probe->error, failure.kind, "HTTP %d%s%.*s", probe->status, size ? ": " : "",
		  (int)size, failure.message);
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *err)
{
	struct rlmd_probe *probe = owner;

	(void)transfer;
	if (err)
		probe->error = *err;
	else if (probe->status != 200)
		explain_status(probe);
	finish(probe);
}

static void ask(struct rlmd_probe *probe, int64_t timeout_ms)
{
	struct http_request request = {
		.headers = (const char *const *)probe->provider->headers,
		.deadline = clock_ms() + timeout_ms,
		.idle_ms = timeout_ms,
		.max_size = ANSWER_MAX,
	};

	probe->url = provider_probe_url(probe->provider);
	request.url = probe->url;
	probe->transfer = http_start(probe->provider->http, &request, on_status, on_data, on_done,
				     probe);
}

struct rlmd_probe *rlmd_probe_start(struct event_base *base, struct rlmd_provider *provider,
				    int64_t timeout_ms, rlmd_probe_done_fn *fn, void *owner,
				    struct rlmd_error *err)
{
	struct rlmd_probe *probe;

	if (!base || !provider || !fn) {
		error_set(err, RLMD_ERROR_USAGE, "a probe needs a loop, a provider and a callback");
		return NULL;
	}
	if (!provider_bind(provider, base, err))
		return NULL;
	probe = xcalloc(1, sizeof *probe);
	probe->provider = provider_ref(provider);
	timeout_ms = int64_max(int64_min(timeout_ms, TIMEOUT_MAX), 0);
	probe->fn = fn;
	probe->owner = owner;
	probe->answer = buffer_new();
	probe->posted = timer_new(base, on_posted, probe);
	if (provider_open(provider, &probe->error) && provider->url) {
		ask(probe, timeout_ms);
		return probe;
	}
	if (!probe->error.kind)
		error_set(&probe->error, RLMD_ERROR_USAGE, "%s is asked by the host alone",
			  provider->name);
	timer_post(probe->posted);
	return probe;
}

void rlmd_probe_free(struct rlmd_probe *probe)
{
	if (!probe)
		return;
	http_transfer_free(probe->transfer);
	provider_unbind(probe->provider);
	provider_unref(probe->provider);
	timer_free(probe->posted);
	evbuffer_free(probe->answer);
	free(probe->url);
	free(probe);
}
