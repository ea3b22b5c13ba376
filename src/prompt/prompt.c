#include "prompt/prompt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/money.h"
#include "budget/budget.h"

static struct prompt_value *add(struct prompt_values *values, const char *name)
{
	assert(values->count < sizeof values->values / sizeof *values->values);
	values->values[values->count].name = name;
	return &values->values[values->count++];
}

void prompt_text(struct prompt_values *values, const char *name, struct rlmd_text text)
{
	add(values, name)->text = text;
}

void prompt_number(struct prompt_values *values, const char *name, int64_t number)
{
	struct prompt_value *value = add(values, name);

	if (number == BUDGET_UNLIMITED)
		snprintf(value->number, sizeof value->number, "unlimited");
	else
		snprintf(value->number, sizeof value->number, "%" PRId64, number);
}

void prompt_money(struct prompt_values *values, const char *name, int64_t pico)
{
	money_format(pico, add(values, name)->number);
}

void prompt_duration(struct prompt_values *values, const char *name, int64_t ms)
{
	struct prompt_value *value = add(values, name);
	char text[16];

	clock_format(ms, text);
	value->apart = true;
	snprintf(value->number, sizeof value->number, "%s", text);
}

void prompt_estimate(struct prompt_values *values, const char *name, int64_t number)
{
	prompt_number(values, name, number);
	values->values[values->count - 1].apart = true;
}

void prompt_number_left(struct prompt_values *values, const char *name, int64_t number)
{
	prompt_estimate(values, name, number);
}

void prompt_money_left(struct prompt_values *values, const char *name, int64_t pico)
{
	prompt_money(values, name, pico);
	values->values[values->count - 1].apart = true;
}

void prompt_text_left(struct prompt_values *values, const char *name, struct rlmd_text text)
{
	prompt_text(values, name, text);
	values->values[values->count - 1].apart = true;
}

static void render_value(const struct prompt_values *values, struct rlmd_text name, bool timeless,
			 struct evbuffer *out)
{
	for (size_t i = 0; i < values->count; i++) {
		const struct prompt_value *value = &values->values[i];

		if (!text_equal(name, value->name) || (timeless && value->apart))
			continue;
		if (value->text.bytes)
			text_repair(value->text, out);
		else
			buffer_add(out, value->number, strlen(value->number));
	}
}

static void render(struct rlmd_text template, const struct prompt_values *values, bool timeless,
		   struct evbuffer *out)
{
	const char *at = template.bytes, *open, *close;

	for (; (open = strstr(at, "{{")) && (close = strstr(open, "}}")); at = close + 2) {
		buffer_add(out, at, (size_t)(open - at));
		render_value(values, text_from(open + 2, (size_t)(close - open - 2)), timeless,
			     out);
	}
	buffer_add(out, at, strlen(at));
}

void prompt_render(const struct prompt_set *set, const char *name,
		   const struct prompt_values *values, struct evbuffer *out,
		   struct evbuffer *timeless)
{
	struct rlmd_text template = prompt_set_text(set, name);

	render(template, values, false, out);
	if (timeless)
		render(template, values, true, timeless);
}
