#include "reply/placeholder.h"

/* Those of share/prompts, which tests/prompt/test_prompts.py compares, and what models make of
 * them. */
static const char *const placeholders[] = {
	"the answer",        "your answer", "answer",    "final answer",     "the final answer",
	"your final answer", "value",       "the value", "your answer here",
};

static struct rlmd_text without_brackets(struct rlmd_text text)
{
	static const char pairs[] = "<>[]{}";

	for (size_t i = 0; pairs[i]; i += 2)
		if (text.size > 1 && text.bytes[0] == pairs[i] &&
		    text.bytes[text.size - 1] == pairs[i + 1])
			return text_trim(text_slice(text, 1, text.size - 1));
	return text;
}

bool is_placeholder(struct rlmd_text argument)
{
	argument = without_brackets(argument);
	for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
		if (text_equal_caseless(argument, placeholders[i]))
			return true;
	return false;
}
