#include "net/gate.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
	/* ms; the longest wait that is honoured of a server that is not busy, or that others join
	 */
	DELAY_MAX = 120000,
	LAST_MS = 1000, /* before the end of a call's time no last attempt is worth it */
	BELIEVED = 20,  /* times that a provider may name whatever wait it likes, after which ... */
	HURRY = 1000,   /* ... it is asked no sooner, in ms */
	BACKOFF_MAX = 30000, /* ms */
	DOUBLINGS = 6,       /* of the first wait, until that */
};

struct gate {
	int max_retries;
	int64_t patience_ms;
	int64_t open_at;          /* nothing starts before it */
	int64_t slowed_at;        /* when that was decided */
	int64_t spread;           /* those who waited start within so many ms after it */
	int64_t busy_until;       /* who found it busy asks it again then */
	struct rlmd_error broken; /* RLMD_ERROR_NONE: not broken */
};

struct gate *gate_new(int max_retries, int64_t patience_ms)
{
	struct gate *gate = xcalloc(1, sizeof *gate);

	gate->max_retries = max_retries;
	gate->patience_ms = patience_ms;
	return gate;
}

void gate_free(struct gate *gate)
{
	free(gate);
}

bool gate_admit(struct gate *gate, int64_t now, double jitter, int64_t *ret_at,
		struct rlmd_error *err)
{
	if (gate->broken.kind) {
		if (err)
			*err = gate->broken;
		return false;
	}
	*ret_at = now < gate->open_at ? gate->open_at + (int64_t)(jitter * (double)gate->spread)
				      : now;
	return true;
}

int64_t gate_busy_until(const struct gate *gate)
{
	return gate->open_at > gate->busy_until ? gate->open_at : gate->busy_until;
}

/* --- how long to wait ------------------------------------------------------------------- */

/* Reads "1.5" at the start and goes on to what follows it; no signs, no exponents. */
static bool read_decimal(const char **string, double *ret)
{
	size_t size = strspn(*string, "0123456789.");
	char *end;

	*ret = strtod(*string, &end);
	if (!size || end != *string + size)
		return false;
	*string = end;
	return true;
}

/* Seconds, or a Go duration as in x-ratelimit-reset-tokens: "6m0s", "20ms". In ms. */
static bool read_duration(const char *string, double *ret)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ms", 1}, {"us", 1e-3}, {"ns", 1e-6}, {"h", 3600e3}, {"m", 60e3}, {"s", 1e3}};
	double sum = 0, part;

	if (strspn(string, "0123456789.") == strlen(string)) {
		if (!read_decimal(&string, &part))
			return false;
		*ret = part * 1000;
		return true;
	}
	do {
		size_t i = 0;

		if (!read_decimal(&string, &part))
			return false;
		while (i < sizeof units / sizeof *units &&
		       strncmp(string, units[i].unit, strlen(units[i].unit)))
			i++;
		if (i == sizeof units / sizeof *units)
			return false;
		sum += part * units[i].ms;
		string += strlen(units[i].unit);
	} while (*string);
	*ret = sum;
	return true;
}

static bool read_date(const char *string, int64_t wall_ms, double *ret)
{
	time_t date = curl_getdate(string, NULL);

	if (date < 0)
		return false;
	*ret = (double)date * 1000 - (double)wall_ms;
	return true;
}

int64_t gate_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		   int64_t wall_ms, double jitter)
{
	double delay = 0;
	bool named = false;

	if (retry_after_ms)
		named = read_decimal(&retry_after_ms, &delay) && !*retry_after_ms;
	if (!named && retry_after)
		named = read_duration(retry_after, &delay) ||
			read_date(retry_after, wall_ms, &delay);
	if (named && delay > 0)
		return (int64_t)ceil(fmin(delay, (double)GATE_TOLD_MAX));
	delay = attempt <= DOUBLINGS ? 500.0 * (1 << (attempt > 1 ? attempt - 1 : 0)) : BACKOFF_MAX;
	delay = delay < BACKOFF_MAX ? delay : BACKOFF_MAX;
	return (int64_t)(delay * (1 - 0.25 * jitter));
}

/* --- whether there is another attempt --------------------------------------------------- */

/* Ours, or the one for a proxy. A 403 may concern one model only, so it does not break the gate. */
static bool concerns_key(const struct rlmd_error *error)
{
	return error->kind == RLMD_ERROR_BILLING ||
	       (error->kind == RLMD_ERROR_AUTH &&
		(error->http_status == 401 || error->http_status == 407));
}

static bool may_retry(const struct gate_failure *failure)
{
	enum rlmd_error_kind kind = failure->error->kind;

	if (kind == RLMD_ERROR_BILLING || kind == RLMD_ERROR_AUTH)
		return false;
	if (failure->should_retry && !strcmp(failure->should_retry, "true"))
		return true;
	if (failure->should_retry && !strcmp(failure->should_retry, "false"))
		return false;
	return failure->retry;
}

/* Attempts that were under way when the gate closed tell nothing new, unless the server says so. */
static void gate_slow(struct gate *gate, const struct gate_failure *failure, int64_t now,
		      int64_t delay)
{
	bool named = failure->retry_after || failure->retry_after_ms;

	if (failure->started <= gate->slowed_at && now < gate->open_at && !named)
		return;
	gate->slowed_at = now;
	if (now + delay > gate->open_at) {
		gate->open_at = now + delay;
		gate->spread = delay / 4;
	}
}

enum { REASON_SIZE = 120 };

static void give_up(struct rlmd_error *err, const struct rlmd_error *why, const char *reason)
{
	char text[sizeof why->text];

	if (!err)
		return;
	*err = *why;
	if (!*reason)
		return;
	/* The provider's words may be long, ours must stay whole. */
	memcpy(text, why->text, sizeof text);
	snprintf(err->text, sizeof err->text, "%.*s; %s",
		 (int)(sizeof err->text - strlen(reason) - 3), text, reason);
}

static int retries_after(const struct gate *gate, const struct gate_failure *failure)
{
	bool more = failure->broken && gate->max_retries && gate->max_retries < GATE_BROKEN;

	return more ? GATE_BROKEN : gate->max_retries;
}

/* Why there is no further attempt, in words; or "". */
static void judge_count(const struct gate *gate, const struct gate_failure *failure, bool patient,
			char reason[static REASON_SIZE])
{
	char waited[16];

	*reason = '\0';
	clock_format(failure->waited, waited);
	if (patient && failure->waited >= gate->patience_ms)
		snprintf(reason, REASON_SIZE, "gave up after waiting %s", waited);
	else if (!patient && failure->attempt > retries_after(gate, failure) &&
		 failure->attempt > 1)
		snprintf(reason, REASON_SIZE, "gave up after %d attempts", failure->attempt);
}

/* Where our own wait would outlast the call, there is a last attempt halfway to its end. */
static int64_t cut_short(const struct gate_failure *failure, int64_t now, int64_t delay)
{
	int64_t left = failure->deadline - now;
	bool named = failure->retry_after || failure->retry_after_ms;

	return named || delay < left || left < 2 * LAST_MS ? delay : left / 2;
}

/* A provider that says "at once" for ever is not asked as fast as it answers. */
static int64_t drawn_out(const struct gate_failure *failure, int64_t now, int64_t delay)
{
	int64_t half = (failure->deadline - now) / 2;
	int64_t least = half < HURRY ? half : HURRY;

	return failure->attempt <= BELIEVED || delay > least ? delay : least;
}

static void note_busy(struct gate *gate, int64_t until)
{
	if (gate->busy_until < until)
		gate->busy_until = until;
}

bool gate_retry(struct gate *gate, const struct gate_failure *failure, int64_t now,
		int64_t wall_now, double jitter, int64_t *ret_at, struct rlmd_error *err)
{
	const struct rlmd_error *error = failure->error;
	bool shared = error->http_status == 429 || error->http_status == 529 ||
		      error->kind == RLMD_ERROR_THROTTLED;
	bool patient = failure->busy && gate->patience_ms;
	char reason[REASON_SIZE] = "";
	int64_t delay = 0, at;

	if (concerns_key(error))
		gate->broken = *error;
	if (!may_retry(failure)) {
		give_up(err, error, "");
		return false;
	}
	if (!failure->at_once)
		delay = gate_delay(failure->attempt + failure->broken, failure->retry_after_ms,
				   failure->retry_after, wall_now, jitter);
	if (shared || failure->busy)
		note_busy(gate, now + (delay < DELAY_MAX ? delay : DELAY_MAX));
	if (!patient && delay > DELAY_MAX) {
		give_up(err, error, "not tried again: the provider asks for a longer wait");
		return false;
	}
	if (patient)
		delay = drawn_out(failure, now, cut_short(failure, now, delay));
	if (shared)
		gate_slow(gate, failure, now, delay < DELAY_MAX ? delay : DELAY_MAX);
	judge_count(gate, failure, patient, reason);
	if (*reason || (!patient && failure->attempt > retries_after(gate, failure))) {
		give_up(err, error, reason);
		return false;
	}
	at = now + delay;
	if (shared && at < gate->open_at)
		at = gate->open_at + (int64_t)(jitter * (double)gate->spread);
	if (at >= failure->deadline) {
		snprintf(reason, sizeof reason,
			 "not tried again: the call's time is over before the wait of %" PRId64
			 " ms",
			 at - now);
		give_up(err, error, reason);
		return false;
	}
	*ret_at = at;
	return true;
}
