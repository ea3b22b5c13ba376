#include "review/glob.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* One step of a pattern: what one character may be, or that there may be any number. */
struct glob_step {
	enum { ONE, ANY, MANY, MANY_DEEP, NAMES, SET } kind;
	char c;
	const char *set, *set_end; /* lent: between the brackets */
};

static bool in_set(const struct glob_step *step, char c)
{
	const char *at = step->set;
	bool not = *at == '!' || *at == '^', found = false;

	for (at += not ; at < step->set_end; at++) {
		if (at + 2 < step->set_end && at[1] == '-') {
			found |= c >= at[0] && c <= at[2];
			at += 2;
		} else {
			found |= c == *at;
		}
	}
	return found != not &&c != '/';
}

static const char *read_set(const char *at, struct glob_step *step)
{
	const char *end = strchr(at + 1 + (at[1] == '!' || at[1] == '^') + 1, ']');

	if (!at[1] || !end)
		return NULL;
	*step = (struct glob_step){.kind = SET, .set = at + 1, .set_end = end};
	return end + 1;
}

static size_t read_steps(const char *at, struct glob_step *steps)
{
	const char *behind;
	size_t count = 0;

	while (*at) {
		struct glob_step *step = &steps[count++];

		if (!strncmp(at, "**/", 3)) {
			*step = (struct glob_step){.kind = NAMES};
			at += 3;
		} else if (!strncmp(at, "**", 2)) {
			*step = (struct glob_step){.kind = MANY_DEEP};
			at += 2;
		} else if (*at == '*' || *at == '?') {
			*step = (struct glob_step){.kind = *at++ == '*' ? MANY : ANY};
		} else if (*at == '[' && (behind = read_set(at, step))) {
			at = behind;
		} else {
			at += *at == '\\' && at[1];
			*step = (struct glob_step){.kind = ONE, .c = *at++};
		}
	}
	return count;
}

static bool takes(const struct glob_step *step, char c)
{
	switch (step->kind) {
	case ONE:
		return c == step->c;
	case ANY:
	case MANY:
		return c != '/';
	case MANY_DEEP:
	case NAMES:
		return true;
	case SET:
		return in_set(step, c);
	}
	return false;
}

/* `at[i]`: steps before i may have matched all characters so far. `begins`: a name does here. */
static void skip_empty(const struct glob_step *steps, size_t count, bool begins, bool *at)
{
	for (size_t i = 0; i < count; i++)
		if (at[i] && (steps[i].kind == MANY || steps[i].kind == MANY_DEEP ||
			      (steps[i].kind == NAMES && begins)))
			at[i + 1] = true;
}

static void step_over(const struct glob_step *steps, size_t count, char c, bool *at)
{
	for (size_t i = count + 1; i-- > 0;) {
		bool stays = i < count && at[i] && steps[i].kind >= MANY &&
			     steps[i].kind <= NAMES && takes(&steps[i], c);
		bool comes = i && at[i - 1] && steps[i - 1].kind != NAMES &&
			     steps[i - 1].kind != MANY && steps[i - 1].kind != MANY_DEEP &&
			     takes(&steps[i - 1], c);

		at[i] = stays || comes;
	}
}

bool glob_matches(const char *pattern, struct rlmd_text path)
{
	size_t length = strlen(pattern), count;
	auto_free char *whole = NULL;
	auto_free struct glob_step *steps = NULL;
	auto_free bool *at = NULL;

	if (!length || length > GLOB_MAX)
		return false;
	whole = xasprintf("%s%s%s", memchr(pattern, '/', length) ? "" : "**/",
			  pattern + (*pattern == '/'), pattern[length - 1] == '/' ? "**" : "");
	steps = xcalloc(strlen(whole) + 1, sizeof *steps);
	count = read_steps(whole, steps);
	at = xcalloc(count + 1, sizeof *at);
	at[0] = true;
	skip_empty(steps, count, true, at);
	for (size_t i = 0; i < path.size; i++) {
		step_over(steps, count, path.bytes[i], at);
		skip_empty(steps, count, path.bytes[i] == '/', at);
	}
	return at[count];
}
