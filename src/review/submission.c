#include "review/submission.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum {
	DEPTH_MAX = 8,
	SHOWN_MAX = 1000, /* bytes of a refused finding that are kept */
	DIGITS_MAX = 18,  /* of an integer that JSON's readers take */
	HINT_MAX = INT32_MAX,
};

/* --- one member --------------------------------------------------------------------------- */

struct submission_reader {
	const json_t *object;   /* lent: the finding at hand */
	struct evbuffer *wrong; /* lent: what is to be mended of it */
};

static void refuse(struct submission_reader *reader, const char *member, const char *what)
{
	buffer_add_printf(reader->wrong, "%s: %s\n", member, what);
}

static char *read_text(struct submission_reader *reader, const char *member, size_t max)
{
	const json_t *value = json_object_get(reader->object, member);
	struct rlmd_text text = json_text(value);

	if (!value)
		refuse(reader, member, "is missing");
	else if (!json_is_string(value))
		refuse(reader, member, "must be a string");
	else if (memchr(text.bytes, '\0', text.size))
		refuse(reader, member, "has a NUL character in it");
	else if (text.size > max)
		refuse(reader, member, "is too long");
	else if (!text_trim(text).size)
		refuse(reader, member, "is empty");
	else
		return text_copy(text);
	return NULL;
}

/* One that is missing, or no name, is none; the rules say whether that will do. */
static char *read_rule(const json_t *object)
{
	struct rlmd_text text = text_trim(json_text(json_object_get(object, "rule")));
	bool is_name = text.size && text.size <= FINDING_RULE_MAX &&
		       !memchr(text.bytes, '\0', text.size);

	return text_copy(is_name ? text : text_of(""));
}

static enum severity severity_of(struct rlmd_text name)
{
	static const struct {
		const char *name;
		enum severity severity;
	} others[] = {
		{"critical", SEVERITY_ERROR},   {"blocker", SEVERITY_ERROR},
		{"fatal", SEVERITY_ERROR},      {"high", SEVERITY_ERROR},
		{"major", SEVERITY_ERROR},      {"severe", SEVERITY_ERROR},
		{"warn", SEVERITY_WARNING},     {"medium", SEVERITY_WARNING},
		{"moderate", SEVERITY_WARNING}, {"minor", SEVERITY_WARNING},
		{"low", SEVERITY_NOTE},         {"info", SEVERITY_NOTE},
		{"information", SEVERITY_NOTE}, {"informational", SEVERITY_NOTE},
		{"notice", SEVERITY_NOTE},      {"hint", SEVERITY_NOTE},
		{"trivial", SEVERITY_NOTE},     {"suggestion", SEVERITY_NOTE},
	};

	name = text_trim(name);
	for (enum severity own = SEVERITY_NOTE; own <= SEVERITY_ERROR; own++)
		if (text_equal_caseless(name, finding_severity_name(own)))
			return own;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (text_equal_caseless(name, others[i].name))
			return others[i].severity;
	return SEVERITY_NONE;
}

static enum severity read_severity(struct submission_reader *reader)
{
	const json_t *value = json_object_get(reader->object, "severity");
	enum severity severity = severity_of(json_text(value));

	if (!value)
		refuse(reader, "severity", "is missing");
	else if (!severity)
		refuse(reader, "severity", "must be \"error\", \"warning\" or \"note\"");
	return severity;
}

/* A number at the beginning of a text, and what is behind it; NAN: there is none. */
static double number_of(struct rlmd_text text, struct rlmd_text *ret_rest)
{
	auto_free char *copy = text_copy(text_trim(text));
	char *end = copy;
	double number = text_is_digit(*copy) ? strtod(copy, &end) : NAN;

	*ret_rest = text_of("");
	text = text_trim(text);
	if (text.size)
		*ret_rest = text_trim(text_slice(text, (size_t)(end - copy), text.size));
	return number;
}

/* 0.9, "0.9", 90, "90%", "high". */
static double read_confidence(struct submission_reader *reader)
{
	static const struct {
		const char *name;
		double confidence;
	} words[] = {{"high", 0.9}, {"medium", 0.6}, {"low", 0.3}, {"certain", 1}};
	const json_t *value = json_object_get(reader->object, "confidence");
	struct rlmd_text text = json_text(value), rest = text_of("");
	double number = json_is_number(value) ? json_number_value(value) : number_of(text, &rest);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text_equal_caseless(text_trim(text), words[i].name))
			return words[i].confidence;
	if (text_equal(rest, "%") || (!rest.size && number >= 2 && number <= 100))
		number /= 100;
	else if (rest.size)
		number = NAN;
	if (number >= 0 && number <= 1)
		return number;
	refuse(reader, "confidence", value ? "must be a number from 0 to 1" : "is missing");
	return 0;
}

/* It only chooses between places: 51, "51", 51.0, "5-7", "L51", and anything else for none. */
static int64_t read_hint(const json_t *object)
{
	const json_t *value = json_object_get(object, "line");
	struct rlmd_text text = text_trim(json_text(value)), rest;
	double number = json_number_value(value);

	if (json_is_array(value))
		number = json_number_value(json_array_get(value, 0));
	if (text.size && !text_is_digit(*text.bytes)) {
		size_t skipped = 0;

		while (skipped < text.size && text_is_one_of(text.bytes[skipped], "Llines .:#"))
			skipped++;
		text = text_slice(text, skipped, text.size);
	}
	if (json_is_string(value))
		number = number_of(text, &rest);
	return number >= 1 && number <= HINT_MAX ? (int64_t)number : 0;
}

/* It is extra: one that is no text is dropped, and its finding stays. */
static void read_patch(const json_t *object, struct finding *finding)
{
	const json_t *value = json_object_get(object, "patch");
	struct rlmd_text text = json_text(value);

	if (!value || json_is_null(value) || (json_is_string(value) && !text_trim(text).size))
		return;
	if (!json_is_string(value) || memchr(text.bytes, '\0', text.size))
		finding->no_patch = xstrdup("it is no text");
	else if (text.size > FINDING_TEXT_MAX)
		finding->no_patch = xstrdup("it is too long");
	else
		finding->patch = text_copy(text);
}

/* --- one finding ---------------------------------------------------------------------------- */

static void read_finding(struct submission_reader *reader, const struct ruleset *rules,
			 struct finding *finding)
{
	finding->reports = 1;
	if (!json_is_object(reader->object)) {
		buffer_add_printf(reader->wrong, "must be an object\n");
		return;
	}
	finding->rule = read_rule(reader->object);
	finding->severity = read_severity(reader);
	finding->confidence = read_confidence(reader);
	finding->message = read_text(reader, "message", FINDING_TEXT_MAX);
	finding->path = read_text(reader, "path", FINDING_PATH_MAX);
	finding->quote = read_text(reader, "quote", FINDING_TEXT_MAX);
	finding->hint = read_hint(reader->object);
	read_patch(reader->object, finding);
	if (ruleset_find(rules, finding->rule))
		return;
	if (!*finding->rule)
		refuse(reader, "rule", "is missing, or no name");
	if (!rules->count)
		return;
	buffer_add_printf(reader->wrong, "rule: is none of");
	for (size_t k = 0; k < rules->count; k++)
		buffer_add_printf(reader->wrong, " \"%s\"", rules->rules[k].id);
	buffer_add_printf(reader->wrong, "\n");
}

static void add_refusal(struct submission *submission, size_t index, const json_t *item,
			struct evbuffer *why)
{
	auto_free char *whole = json_to_string(item);

	submission->refusals = array_grow(submission->refusals, submission->refusal_count,
					  sizeof *submission->refusals);
	submission->refusals[submission->refusal_count++] = (struct refusal){
		.index = index,
		.shown = text_copy(text_clip(text_of(whole), SHOWN_MAX)),
		.why = text_drain(why, NULL),
	};
}

static void take_item(struct submission *submission, const struct ruleset *rules, size_t index,
		      const json_t *item)
{
	auto_evbuffer struct evbuffer *why = buffer_new();
	struct submission_reader reader = {.object = item, .wrong = why};
	struct finding *finding = &submission->findings.items[submission->findings.count];

	read_finding(&reader, rules, finding);
	if (evbuffer_get_length(why)) {
		finding_done(finding);
		add_refusal(submission, index, item, why);
		return;
	}
	submission->indexes[submission->findings.count++] = index;
}

/* --- an answer ------------------------------------------------------------------------------ */

/* The content of a fence around the whole answer; models like to write one. */
static struct rlmd_text without_fence(struct rlmd_text answer)
{
	struct rlmd_text text = text_trim(answer);
	size_t first = text_line_end(text, 0);

	if (!text_starts(text, "```") || first < 4 || text.size < first + 3 ||
	    memcmp(text.bytes + text.size - 3, "```", 3) != 0)
		return text;
	return text_trim(text_slice(text, first, text.size - 3));
}

/* JSON whose integers can be read: one that is too large for a line's number is 0. */
static void shorten_integers(struct rlmd_text json, struct evbuffer *out)
{
	bool quoted = false;

	for (size_t at = 0, end; at < json.size; at = end) {
		bool fraction = at && json.bytes[at - 1] == '.';

		end = at + 1;
		if (json.bytes[at] == '"')
			quoted = !quoted;
		else if (quoted && json.bytes[at] == '\\' && end < json.size)
			end++;
		while (!quoted && text_is_digit(json.bytes[at]) && end < json.size &&
		       text_is_digit(json.bytes[end]))
			end++;
		if (end - at > DIGITS_MAX && !fraction)
			buffer_add(out, "0", 1);
		else
			buffer_add(out, json.bytes + at, end - at);
	}
}

/* The list of the findings, new; a list alone can only mean that. */
static json_t *read_list(struct rlmd_text answer, struct evbuffer *wrong)
{
	auto_evbuffer struct evbuffer *mended = buffer_new();
	struct rlmd_error err;
	json_auto_t *object = NULL;
	json_t *list;

	shorten_integers(without_fence(answer), mended);
	object = json_read(text_in(mended), DEPTH_MAX, &err);
	list = json_is_array(object) ? object : json_object_get(object, "findings");
	if (!object)
		buffer_add_printf(wrong, "the answer is %s\n", err.text);
	else if (!json_is_object(object) && !json_is_array(object))
		buffer_add_printf(wrong, "the answer must be an object\n");
	else if (!json_is_array(list))
		buffer_add_printf(wrong, "findings: %s\n",
				  list ? "must be an array" : "is missing");
	else if (json_array_size(list) > FINDINGS_MAX)
		buffer_add_printf(wrong, "findings: are more than %d; return the worst\n",
				  FINDINGS_MAX);
	else
		return json_incref(list);
	return NULL;
}

bool submission_read(struct rlmd_text answer, const struct ruleset *rules, struct submission *ret,
		     struct evbuffer *wrong)
{
	json_auto_t *list = read_list(answer, wrong);
	const json_t *item;
	size_t i;

	if (!list)
		return false;
	ret->findings.items = xcalloc(json_array_size(list) + 1, sizeof *ret->findings.items);
	ret->indexes = xcalloc(json_array_size(list) + 1, sizeof *ret->indexes);
	json_array_foreach (list, i, item)
		take_item(ret, rules, i, item);
	return true;
}

void submission_done(struct submission *submission)
{
	findings_done(&submission->findings);
	for (size_t i = 0; i < submission->refusal_count; i++) {
		free(submission->refusals[i].shown);
		free(submission->refusals[i].why);
	}
	free(submission->refusals);
	free(submission->indexes);
	*submission = (struct submission){0};
}
