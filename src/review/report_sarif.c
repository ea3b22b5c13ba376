/*
 * SARIF 2.1.0, as GitHub's code scanning takes it: each result has one place, known rules, and our
 * fingerprints. A finding without a place is a notification of the tool's.
 */
#include <jansson.h>
#include <rlmd/rlmd.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "review/baseline.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/fingerprint.h"
#include "review/patch.h"
#include "review/report.h"
#include "review/submission.h"

static json_t *text_object(const char *text)
{
	return json_make("{s:s}", "text", text);
}

/* --- rules ---------------------------------------------------------------------------------- */

/* By their ids, each with its number. */
static json_t *rule_object(const struct review_rule *rule, const struct finding *finding)
{
	auto_free char *id = escape_line(rule ? rule->id : finding->rule);
	auto_free char *text = escape_words(rule ? rule->text
						 : "A finding of a review by a language model.");
	enum severity severity = rule && rule->severity ? rule->severity : SEVERITY_WARNING;
	json_t *tags = json_make("[s]", "review");

	if (rule && rule->cwe) {
		auto_free char *tag = xasprintf("external/cwe/cwe-%u", rule->cwe);

		json_append(tags, json_make_string(tag));
	}
	return json_make("{s:s, s:o, s:o, s:o, s:{s:s}, s:{s:s, s:o}}", "id", id,
			 "shortDescription", text_object(id), "fullDescription", text_object(text),
			 "help", text_object("Found by a language model: check it by hand."),
			 "defaultConfiguration", "level", finding_severity_name(severity),
			 "properties", "precision", "medium", "tags", tags);
}

static void add_rule(json_t *rules, json_t *numbers, const char *id, json_t *rule)
{
	json_put(numbers, id, json_make_integer((json_int_t)json_array_size(rules)));
	json_append(rules, rule);
}

static json_t *rule_list(const struct review_view *view, json_t *numbers)
{
	json_t *rules = json_make_array();

	for (size_t i = 0; i < view->rules->count; i++)
		add_rule(rules, numbers, view->rules->rules[i].id,
			 rule_object(&view->rules->rules[i], NULL));
	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		if (!json_object_get(numbers, finding->rule))
			add_rule(rules, numbers, finding->rule, rule_object(NULL, finding));
	}
	return rules;
}

/* --- places ----------------------------------------------------------------------------- */

static size_t characters(struct rlmd_text text)
{
	struct text_scan scan = {0};

	text_scan_feed(&scan, text);
	text_scan_end(&scan);
	return scan.characters;
}

/* Columns count from 1; the last is the one behind the text. */
static json_t *region(const struct finding *finding)
{
	struct rlmd_text first = code_line(finding->file, finding->first);
	struct rlmd_text last = code_line(finding->file, finding->last);
	struct rlmd_text begin = code_line_trimmed(finding->file, finding->first);
	struct rlmd_text end = code_line_trimmed(finding->file, finding->last);
	size_t before = characters(text_slice(first, 0, (size_t)(begin.bytes - first.bytes)));
	size_t upto = characters(text_slice(last, 0, (size_t)(end.bytes + end.size - last.bytes)));

	return json_make("{s:I, s:I, s:I, s:I}", "startLine", (json_int_t)finding->first,
			 "startColumn", (json_int_t)before + 1, "endLine",
			 (json_int_t)finding->last, "endColumn", (json_int_t)upto + 1);
}

static json_t *artifact(const struct code_file *file)
{
	auto_evbuffer struct evbuffer *uri = buffer_new();

	escape_uri(file->name, uri);
	return json_make("{s:o, s:s}", "uri", json_from_text(text_in(uri)), "uriBaseId",
			 "%SRCROOT%");
}

static json_t *location(const struct finding *finding)
{
	return json_make("{s:{s:o, s:o}}", "physicalLocation", "artifactLocation",
			 artifact(finding->file), "region", region(finding));
}

/* --- fixes ------------------------------------------------------------------------------ */

/* Whole lines with what ends them: up to the next one, or, where that one ends nowhere, to the end
 * of the text. */
static json_t *deleted_region(const struct code_file *file, const struct patch_edit *edit)
{
	size_t end = edit->line + edit->removed, column = 1;

	if (edit->removed && end > file->lines) {
		struct rlmd_text last = code_line(file, file->lines);

		if (last.bytes[last.size - 1] != '\n') {
			end = file->lines;
			column = characters(last) + 1;
		}
	}
	return json_make("{s:I, s:i, s:I, s:I}", "startLine", (json_int_t)edit->line, "startColumn",
			 1, "endLine", (json_int_t)end, "endColumn", (json_int_t)column);
}

static json_t *change(const struct patch_file *patch)
{
	json_t *replacements = json_make_array();

	for (size_t i = 0; i < patch->count; i++)
		json_append(replacements,
			    json_make("{s:o, s:{s:o}}", "deletedRegion",
				      deleted_region(patch->file, &patch->edits[i]),
				      "insertedContent", "text",
				      json_from_text(text_in(patch->edits[i].added))));
	return json_make("{s:o, s:o}", "artifactLocation", artifact(patch->file), "replacements",
			 replacements);
}

static json_t *fixes(const struct patch *patch)
{
	json_t *changes = json_make_array();

	for (size_t i = 0; i < patch->count; i++)
		json_append(changes, change(&patch->files[i]));
	return json_make("[{s:o, s:o}]", "description",
			 text_object("Suggested by a language model: check it by hand."),
			 "artifactChanges", changes);
}

/* --- results ---------------------------------------------------------------------------- */

static json_t *properties(const struct finding *finding)
{
	auto_free char *choice = report_choice(finding);
	json_t *object = json_make("{s:f, s:I}", "confidence", finding->confidence, "reports",
				   (json_int_t)finding->reports);

	if (choice)
		json_put(object, "choice", json_make_string(choice));
	if (finding->named) {
		auto_free char *named = escape_line(finding->named);

		json_put(object, "named", json_make_string(named));
	}
	if (finding->patch)
		json_put(object, "patch", json_make_string(finding->patch));
	if (finding->no_patch)
		json_put(object, "patchDropped", json_make_string(finding->no_patch));
	return object;
}

/* As text, and as Markdown in which nothing of theirs is markup, a link or a name of somebody. */
static json_t *message_object(const struct finding *finding)
{
	auto_free char *words = escape_words(finding->message);
	auto_evbuffer struct evbuffer *markdown = buffer_new();

	escape_markdown(words, markdown);
	return json_make("{s:s, s:o}", "text", words, "markdown",
			 json_from_text(text_in(markdown)));
}

static json_t *result(const struct review_view *view, const struct finding *finding,
		      const json_t *numbers)
{
	auto_free char *id = escape_line(finding->rule);
	auto_free char *line_hash = xasprintf("%.16s:1", finding->fingerprint);
	auto_free char *print = fingerprint_write(finding->print);
	json_t *object = json_make(
		"{s:s, s:O, s:s, s:o, s:[o], s:{s:s, s:s, s:s}, s:o}", "ruleId", id, "ruleIndex",
		json_object_get(numbers, finding->rule), "level",
		finding_severity_name(finding->severity), "message", message_object(finding),
		"locations", location(finding), "partialFingerprints", BASELINE_FINGERPRINT,
		finding->fingerprint, BASELINE_PRINT, print, "primaryLocationLineHash", line_hash,
		"properties", properties(finding));

	if (finding->edits)
		json_put(object, "fixes", fixes(finding->edits));
	if (view->with_baseline)
		json_put(object, "baselineState",
			 json_make_string(finding->known ? "unchanged" : "new"));
	return object;
}

static json_t *notification(const struct finding *finding)
{
	auto_free char *path = escape_line(finding->path), *rule = escape_line(finding->rule);
	auto_free char *message = escape_words(finding->message);
	auto_free char *text = xasprintf("%s: %s: %s (not anchored: %s)", path, rule, message,
					 report_why_unanchored(finding));

	return json_make("{s:s, s:{s:o}}", "level", "note", "message", "text",
			 json_make_string(text));
}

static json_t *unread(const char *path)
{
	auto_free char *name = escape_line(path);
	auto_free char *text = xasprintf("%s was changed, but left out of the review", name);

	return json_make("{s:s, s:{s:o}}", "level", "warning", "message", "text",
			 json_make_string(text));
}

static json_t *unreadable(const struct refusal *refusal)
{
	auto_free char *shown = escape_line(refusal->shown), *why = escape_flat(refusal->why);
	auto_free char *text = xasprintf("a finding could not be read: %s: %s", why, shown);

	return json_make("{s:s, s:{s:o}}", "level", "warning", "message", "text",
			 json_make_string(text));
}

void report_sarif(const struct review_view *view, struct evbuffer *out)
{
	json_auto_t *numbers = json_make_object();
	auto_free char *id = xasprintf("%s/", view->category ? view->category : "rlmd/review");
	json_t *results = json_make_array(), *apart = json_make_array();
	json_t *driver = json_make("{s:s, s:s, s:s, s:o}", "name", "rlmd", "version", RLMD_VERSION,
				   "semanticVersion", RLMD_VERSION, "rules",
				   rule_list(view, numbers));
	json_auto_t *log = json_make("{s:s, s:s, s:[{s:{s:o}, s:s, s:{s:s}, s:[{s:b, s:o}], s:o}]}",
				     "$schema", "https://json.schemastore.org/sarif-2.1.0.json",
				     "version", "2.1.0", "runs", "tool", "driver", driver,
				     "columnKind", "unicodeCodePoints", "automationDetails", "id",
				     id, "invocations", "executionSuccessful", 1,
				     "toolExecutionNotifications", apart, "results", results);

	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		if (report_is_anchored(finding))
			json_append(results, result(view, finding, numbers));
		else if (report_is_unanchored(finding))
			json_append(apart, notification(finding));
	}
	for (size_t i = 0; i < report_refused(view); i++)
		json_append(apart, unreadable(&view->submission->refusals[i]));
	for (size_t i = 0; i < view->code->unread_count; i++)
		json_append(apart, unread(view->code->unread[i]));
	escape_json(log, out);
}
