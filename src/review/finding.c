#include "review/finding.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "review/code.h"

enum {
	DEPTH_MAX = 8,
	COMPLAINTS_MAX = 10, /* more would not be read */
	WIDER = 3,           /* as many lines as another one, of the same place, has at most */
	FEW_LINES = 8,       /* a longer quote may well have two findings of a kind in it */
};

static const char *const severities[] = {
	[SEVERITY_NONE] = "none",
	[SEVERITY_NOTE] = "note",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_ERROR] = "error",
};

const char *finding_severity_name(enum severity severity)
{
	return severities[severity];
}

bool finding_severity_parse(struct rlmd_text name, enum severity *ret)
{
	for (size_t i = 0; i < sizeof severities / sizeof *severities; i++)
		if (text_equal(name, severities[i])) {
			*ret = (enum severity)i;
			return true;
		}
	return false;
}

/* --- reading ------------------------------------------------------------------------ */

struct findings_reader {
	struct evbuffer *wrong; /* lent */
	size_t complaints;
	size_t index; /* of the finding at hand */
};

static void complain(struct findings_reader *reading, const char *member, const char *what)
{
	if (++reading->complaints <= COMPLAINTS_MAX)
		buffer_add_printf(reading->wrong, "findings[%zu].%s: %s\n", reading->index, member,
				  what);
}

static char *read_text(struct findings_reader *reading, const json_t *object, const char *member,
		       size_t max, bool may_be_null)
{
	const json_t *value = json_object_get(object, member);
	struct rlmd_text text = json_text(value);
	char most[64];

	if (may_be_null && (!value || json_is_null(value)))
		return NULL;
	snprintf(most, sizeof most, "is longer than %zu bytes", max);
	if (!value)
		complain(reading, member, "is missing");
	else if (!json_is_string(value))
		complain(reading, member,
			 may_be_null ? "must be a string or null" : "must be a string");
	else if (memchr(text.bytes, '\0', text.size))
		complain(reading, member, "has a NUL character in it");
	else if (text.size > max)
		complain(reading, member, most);
	else if (!may_be_null && !text_trim(text).size)
		complain(reading, member, "is empty");
	else
		return text_copy(text);
	return NULL;
}

static void read_severity(struct findings_reader *reading, const json_t *object,
			  struct finding *finding)
{
	const json_t *value = json_object_get(object, "severity");

	if (!value)
		complain(reading, "severity", "is missing");
	else if (!finding_severity_parse(json_text(value), &finding->severity) ||
		 finding->severity == SEVERITY_NONE)
		complain(reading, "severity", "must be \"error\", \"warning\" or \"note\"");
}

static void read_confidence(struct findings_reader *reading, const json_t *object,
			    struct finding *finding)
{
	const json_t *value = json_object_get(object, "confidence");

	finding->confidence = json_number_value(value);
	if (!value)
		complain(reading, "confidence", "is missing");
	else if (!json_is_number(value) || finding->confidence < 0 || finding->confidence > 1)
		complain(reading, "confidence", "must be a number from 0 to 1");
}

static void read_hint(struct findings_reader *reading, const json_t *object,
		      struct finding *finding)
{
	const json_t *value = json_object_get(object, "line");

	if (!value || json_is_null(value))
		return;
	finding->hint = json_integer_value(value);
	if (!json_is_integer(value) || finding->hint < 0)
		complain(reading, "line", "must be a line's number, from 1, or null");
}

static void read_finding(struct findings_reader *reading, const json_t *object,
			 struct finding *finding)
{
	finding->reports = 1;
	if (!json_is_object(object)) {
		if (++reading->complaints <= COMPLAINTS_MAX)
			buffer_add_printf(reading->wrong, "findings[%zu]: must be an object\n",
					  reading->index);
		return;
	}
	finding->rule = read_text(reading, object, "rule", FINDING_RULE_MAX, false);
	read_severity(reading, object, finding);
	read_confidence(reading, object, finding);
	finding->message = read_text(reading, object, "message", FINDING_TEXT_MAX, false);
	finding->path = read_text(reading, object, "path", FINDING_PATH_MAX, false);
	finding->quote = read_text(reading, object, "quote", FINDING_TEXT_MAX, false);
	read_hint(reading, object, finding);
	finding->patch = read_text(reading, object, "patch", FINDING_TEXT_MAX, true);
	if (finding->patch && !text_trim(text_of(finding->patch)).size)
		free(take_pointer(&finding->patch));
}

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

static json_t *read_object(struct rlmd_text answer, struct evbuffer *wrong)
{
	struct rlmd_error err;
	json_auto_t *object = json_read(without_fence(answer), DEPTH_MAX, &err);
	const json_t *list = json_object_get(object, "findings");

	if (!object)
		buffer_add_printf(wrong, "the answer is %s\n", err.text);
	else if (!json_is_object(object))
		buffer_add_printf(wrong, "the answer must be an object\n");
	else if (!json_is_array(list))
		buffer_add_printf(wrong, "findings: %s\n",
				  list ? "must be an array" : "is missing");
	else if (json_array_size(list) > FINDINGS_MAX)
		buffer_add_printf(wrong, "findings: are more than %d; return the worst\n",
				  FINDINGS_MAX);
	else
		return json_incref(object);
	return NULL;
}

bool findings_parse(struct rlmd_text answer, struct findings *ret, struct evbuffer *wrong)
{
	struct findings_reader reading = {.wrong = wrong};
	json_auto_t *object = read_object(answer, wrong);
	const json_t *list = json_object_get(object, "findings"), *item;

	if (!object)
		return false;
	ret->items = xcalloc(json_array_size(list) + 1, sizeof *ret->items);
	json_array_foreach (list, reading.index, item)
		read_finding(&reading, item, &ret->items[ret->count++]);
	if (reading.complaints > COMPLAINTS_MAX)
		buffer_add_printf(wrong, "and %zu more\n", reading.complaints - COMPLAINTS_MAX);
	if (reading.complaints)
		findings_done(ret);
	return !reading.complaints;
}

/* --- lists ---------------------------------------------------------------------------- */

void finding_edits_done(struct patch_file *patch)
{
	for (size_t i = 0; i < patch->count; i++)
		evbuffer_free(patch->edits[i].added);
	free(patch->edits);
	*patch = (struct patch_file){0};
}

static void free_patch(struct patch *patch)
{
	for (size_t i = 0; patch && i < patch->count; i++)
		finding_edits_done(&patch->files[i]);
	if (patch)
		free(patch->files);
	free(patch);
}

void finding_done(struct finding *finding)
{
	free(finding->rule);
	free(finding->named);
	free(finding->message);
	free(finding->path);
	free(finding->quote);
	free(finding->patch);
	free_patch(finding->edits);
	free(finding->no_patch);
	free(finding->print);
	*finding = (struct finding){0};
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		finding_done(&findings->items[i]);
	free(findings->items);
	*findings = (struct findings){0};
}

static int order(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	int by = order(a->place != FINDING_ANCHORED, b->place != FINDING_ANCHORED);

	if (!by)
		by = strcmp(a->path, b->path);
	if (!by)
		by = order(a->first, b->first);
	if (!by)
		by = order(a->last, b->last);
	if (!by)
		by = order(b->severity, a->severity);
	if (!by)
		by = strcmp(a->rule, b->rule);
	if (!by)
		by = strcmp(a->quote, b->quote);
	return by ? by : strcmp(a->message, b->message);
}

void findings_sort(struct findings *findings)
{
	if (findings->count)
		qsort(findings->items, findings->count, sizeof *findings->items, compare);
}

/* --- merging --------------------------------------------------------------------------- */

static bool within(const struct finding *inner, const struct finding *outer)
{
	return inner->first >= outer->first && inner->last <= outer->last &&
	       (inner->first == outer->first || outer->last - outer->first < FEW_LINES);
}

static size_t lines_of(const struct finding *finding)
{
	return finding->last - finding->first + 1;
}

static bool are_same(const struct finding *a, const struct finding *b)
{
	bool same_rule = !strcmp(a->rule, b->rule);

	if (a->place != b->place || (!same_rule && a->own_rule && b->own_rule))
		return false;
	if (a->place != FINDING_ANCHORED)
		return same_rule && !strcmp(a->path, b->path) && !strcmp(a->quote, b->quote);
	return a->file == b->file && (within(a, b) || within(b, a)) &&
	       (same_rule ||
		(lines_of(a) <= WIDER * lines_of(b) && lines_of(b) <= WIDER * lines_of(a)));
}

static void swap(char **a, char **b)
{
	char *kept = *a;

	*a = *b;
	*b = kept;
}

static void swap_patches(struct finding *a, struct finding *b)
{
	struct patch *kept = a->edits;

	a->edits = b->edits;
	b->edits = kept;
	swap(&a->patch, &b->patch);
	swap(&a->no_patch, &b->no_patch);
}

/* Under another rule a message may tell of another mistake on the same lines. */
static void add_message(struct finding *finding, const struct finding *other)
{
	char *both;

	if (strlen(finding->message) + strlen(other->message) > FINDING_TEXT_MAX)
		return;
	both = xasprintf("%s\n\nAlso (%s): %s", finding->message, other->rule, other->message);
	free(finding->message);
	finding->message = both;
}

/* A rule with a name says more than "other". */
static bool says_more(const struct finding *a, const struct finding *b)
{
	bool a_named = strcmp(a->rule, "other") != 0, b_named = strcmp(b->rule, "other") != 0;

	return a_named != b_named ? a_named : a->confidence > b->confidence;
}

/* `other` is freed. */
static void take_in(struct finding *finding, struct finding *other)
{
	finding->reports += other->reports;
	if (other->severity > finding->severity)
		finding->severity = other->severity;
	if (says_more(other, finding)) {
		swap(&finding->message, &other->message);
		swap(&finding->rule, &other->rule);
		swap(&finding->named, &other->named);
	}
	if (other->confidence > finding->confidence)
		finding->confidence = other->confidence;
	if (strcmp(finding->rule, other->rule) != 0)
		add_message(finding, other);
	if (!finding->patch && other->patch)
		swap_patches(finding, other);
	finding_done(other);
}

static struct finding *same_before(const struct findings *findings, size_t kept,
				   const struct finding *finding)
{
	for (size_t i = 0; i < kept; i++)
		if (are_same(&findings->items[i], finding))
			return &findings->items[i];
	return NULL;
}

void findings_merge(struct findings *findings)
{
	size_t kept = 0;

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];
		struct finding *before = same_before(findings, kept, finding);

		if (before)
			take_in(before, finding);
		else
			findings->items[kept++] = *finding;
	}
	findings->count = kept;
}
