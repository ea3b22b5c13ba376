/* The face of the floor, rlmd/review.h: from a task to findings and reports. */
#include <inttypes.h>
#include <rlmd/context.h>
#include <rlmd/review.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "prompt/brief.h"
#include "prompt/prompt.h"
#include "review/anchor.h"
#include "review/baseline.h"
#include "review/code.h"
#include "review/fingerprint.h"
#include "review/omission.h"
#include "review/report.h"
#include "review/ruleset.h"
#include "review/submission.h"
#include "source/top.h"

enum {
	TOLD_MAX = 20,     /* findings that are told back of each kind: more would not be read */
	ABOUT_MAX = 20000, /* characters of a description */
	AROUND = 40,       /* lines that the first reading shows before and behind a change */
	AROUND_DEEP = 400,
	FIRST_MAX = 10000, /* findings that are kept of a first reading */
	FIRST_DEPTH = 32,
};

/* By which the first reading gives its findings to us. */
#define KEEP_NAME "keep_findings"

struct rlmd_review {
	const struct prompt_set *prompts; /* owned */
	char *wanted;                     /* owned: what to look for; NULL: what is usual */
	size_t wanted_size;
	char *about; /* owned: what the author says of the change; NULL: nothing */
	char *task;  /* owned; NULL: not asked for yet */
	char *setup; /* owned: of the first reading; NULL: not made yet, or there is none */
	enum rlmd_review_reading reading;
	struct ruleset rules;
	bool own_rules; /* and no others */
	struct baseline baseline;
	bool with_baseline, only_changed, fail_on_unanchored;
	struct omission_limits limits;
	char *category; /* owned: of the SARIF report; NULL: the usual one */
	enum severity fail_on;
	char *prefix; /* owned: of what is reviewed in its repository; until there is a context */

	struct rlmd_context *context; /* referenced, once its code is loaded */
	struct code code;
	struct submission submission; /* of the answer that was taken */
	bool taken;

	/* The answer of which some findings were told back; NULL: none was. The next one is about
	 * these alone. */
	char *returned;           /* owned */
	struct submission before; /* its findings that stay */

	json_t *first_findings; /* owned: of the first reading; NULL: none yet */
	char *first;            /* owned: they as an answer, once it has ended; NULL: not yet */
	char *first_what;       /* owned: a sentence about it; likewise */
};

/* --- before the start --------------------------------------------------------------------- */

/* Paths in reports and patches begin at the top of the work tree. */
static char *prefix_of(const char *directory)
{
	auto_free char *top = NULL;
	struct rlmd_error err;

	/* A wrong path is told when its files are loaded. */
	return top_find(directory, &top, &err) && top ? top_prefix(top, directory) : NULL;
}

static bool read_options(struct rlmd_review *review, const struct rlmd_review_options *options,
			 struct rlmd_error *err)
{
	const char *level = options->fail_on ? options->fail_on : "error";

	if (options->task.size) {
		review->wanted = text_copy(options->task);
		review->wanted_size = options->task.size;
	}
	review->only_changed = options->only_changed;
	review->fail_on_unanchored = options->fail_on_unanchored;
	review->limits = (struct omission_limits){options->min_confidence, options->max_findings};
	review->category = options->category ? xstrdup(options->category) : NULL;
	if (text_trim(options->about).size)
		review->about = text_copy(options->about);
	review->with_baseline = options->baseline;
	review->reading = options->reading;
	review->prefix = options->directory ? prefix_of(options->directory) : NULL;
	review->prompts = prompt_set_open(options->prompt ? options->prompt : "default", err);
	if (!review->prompts)
		return false;
	if (!finding_severity_parse(text_of(level), &review->fail_on))
		return error_set(err, RLMD_ERROR_USAGE,
				 "a review fails on error, warning, note or none, not on '%s'",
				 level);
	if (options->rules && !ruleset_read(options->rules, &review->rules, err))
		return false;
	review->own_rules = options->rules && !options->usual_rules;
	if (!review->own_rules)
		ruleset_add_usual(&review->rules);
	return (!options->baseline || baseline_read(options->baseline, &review->baseline, err));
}

struct rlmd_review *rlmd_review_new(const struct rlmd_review_options *options,
				    struct rlmd_error *err)
{
	struct rlmd_review_options known = {0};
	struct rlmd_review *review;

	if (!abi_copy_in(&known, sizeof known, options, sizeof known, "a review's options", err))
		return NULL;
	review = xcalloc(1, sizeof *review);
	if (read_options(review, &known, err))
		return review;
	rlmd_review_free(review);
	return NULL;
}

void rlmd_review_free(struct rlmd_review *review)
{
	if (!review)
		return;
	submission_done(&review->submission);
	submission_done(&review->before);
	free(review->returned);
	json_decref(review->first_findings);
	free(review->first);
	free(review->first_what);
	code_done(&review->code);
	rlmd_context_unref(review->context);
	baseline_done(&review->baseline);
	ruleset_done(&review->rules);
	prompt_set_free(review->prompts);
	free(review->wanted);
	free(review->prefix);
	free(review->category);
	free(review->about);
	free(review->task);
	free(review->setup);
	free(review);
}

/* --- the task ------------------------------------------------------------------------------ */

static bool has_files(const struct rlmd_context *context)
{
	struct rlmd_context_file file = {.size = sizeof file};

	for (size_t input = 0; context && input < rlmd_context_count(context); input++)
		if (rlmd_context_get_file(context, input, 0, &file))
			return true;
	return false;
}

static bool has_changes(const struct rlmd_context *context)
{
	for (size_t input = 0; input < rlmd_context_count(context); input++)
		if (rlmd_context_changes(context, input).size)
			return true;
	return false;
}

static void load(struct rlmd_review *review, struct rlmd_context *context)
{
	if (review->context)
		return;
	review->context = rlmd_context_ref(context);
	review->code.prefix = take_pointer(&review->prefix);
	code_load(&review->code, context);
}

/* A stranger's words: none of their lines can be taken for one of ours. */
static void add_about(const struct rlmd_review *review, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *clipped = buffer_new(), *quoted = buffer_new();
	struct prompt_values values = {0};
	struct rlmd_text text;

	brief_clip(text_of(review->about), ABOUT_MAX, clipped);
	text = text_in(clipped);
	for (size_t at = 0, end; at < text.size; at = end) {
		end = text_line_end(text, at);
		buffer_add_printf(quoted, "| %.*s", (int)(end - at), text.bytes + at);
	}
	prompt_text(&values, "output", text_trim(text_in(quoted)));
	buffer_add(out, "\n", 1);
	prompt_render(review->prompts, "review_about", &values, out, NULL);
}

static void render_scope(const struct rlmd_review *review, bool changes, struct evbuffer *out)
{
	struct rlmd_text scope = prompt_set_text(review->prompts,
						 changes ? "review_changes" : "review_all");

	buffer_add(out, scope.bytes, scope.size);
	if (review->about)
		add_about(review, out);
	if (review->reading) {
		struct rlmd_text first = prompt_set_text(review->prompts, "review_first");

		buffer_add(out, first.bytes, first.size);
	}
}

/* A prompt that tells what to look for, and the form of what is found. */
static void render(const struct rlmd_review *review, const char *prompt, struct rlmd_text scope,
		   struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *rules = buffer_new();
	const struct prompt_set *prompts = review->prompts;
	struct prompt_values values = {0};

	ruleset_describe(&review->rules, rules);
	prompt_text(&values, "task",
		    review->wanted ? text_from(review->wanted, review->wanted_size)
				   : prompt_set_text(prompts, review->own_rules ? "review_by_rules"
										: "review_task"));
	prompt_text(&values, "rules", text_in(rules));
	prompt_text(&values, "form", prompt_set_text(prompts, "review_form"));
	prompt_text(&values, "scope", scope);
	prompt_render(prompts, prompt, &values, out, NULL);
}

/* The questions of the first reading as a Python dict: JSON strings are such, too. A model is not
 * shown it. */
static void make_setup(struct rlmd_review *review)
{
	auto_evbuffer struct evbuffer *question = buffer_new(), *out = buffer_new();
	bool deep = review->reading == RLMD_REVIEW_DEEP_READING;
	json_auto_t *words = NULL;

	render(review, "review_file", text_of(""), question);
	words = json_make("{s:o, s:o, s:i}", "question", json_from_text(text_in(question)), "check",
			  json_from_text(deep ? prompt_set_text(review->prompts, "review_check")
					      : text_of("")),
			  "around", deep ? AROUND_DEEP : AROUND);
	buffer_add_printf(out, "reading = ");
	json_write(words, false, out);
	buffer_add_printf(out, "\nreading[\"keep\"] = " KEEP_NAME "\n");
	free(review->setup);
	review->setup = text_drain(out, NULL);
}

void rlmd_review_first_code(const struct rlmd_review *review, struct rlmd_text *ret_setup,
			    struct rlmd_text *ret_code)
{
	bool made = review && review->setup;

	if (ret_setup)
		*ret_setup = text_of(made ? review->setup : "");
	if (ret_code)
		*ret_code = text_of(made ? "findings, unread = first_reading(**reading)\n" : "");
}

static void keep_findings(struct rlmd_review *review, const json_t *findings)
{
	json_t *each;
	size_t i;

	if (!review->first_findings)
		review->first_findings = json_make_array();
	json_array_foreach (findings, i, each)
		if (json_array_size(review->first_findings) < FIRST_MAX)
			json_append(review->first_findings, json_incref(each));
}

static void end_first(struct rlmd_review *review, int64_t unread)
{
	json_auto_t *answer = json_make("{s:O}", "findings", review->first_findings);

	review->first = json_to_string(answer);
	review->first_what = xasprintf("these are the findings of the files one by one (%" PRId64
				       " not, or not wholly, read), for the review across them "
				       "gave no answer",
				       unread);
}

/* At its end "unread" is told. The model's own code runs later, and is not listened to. */
static void keep_first(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	struct rlmd_review *review = owner;
	json_auto_t *given = json_read(arguments, FIRST_DEPTH, NULL);

	if (!review->first) {
		keep_findings(review, json_object_get(given, "findings"));
		if (json_object_get(given, "unread"))
			end_first(review, json_get_integer(given, "unread", 0));
	}
	rlmd_function_reply(call, text_of("null"));
}

struct rlmd_function rlmd_review_function(struct rlmd_review *review)
{
	return (struct rlmd_function){
		.size = sizeof(struct rlmd_function),
		.name = KEEP_NAME,
		.schema = "{\"type\":\"object\",\"properties\":{\"findings\":{\"type\":\"array\"},"
			  "\"unread\":{\"type\":\"integer\"}}}",
		.call = keep_first,
		.owner = review,
		.untold = true,
	};
}

bool rlmd_review_task(struct rlmd_review *review, struct rlmd_context *context,
		      struct rlmd_text *ret, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new(), *scope = buffer_new();
	bool changes = context && has_changes(context);
	size_t size;

	if (!review || !ret)
		return error_set(err, RLMD_ERROR_USAGE, "there is no review to have a task");
	if (!has_files(context) && changes) {
		*ret = text_of(""); /* nothing was changed, or there is nothing left of it */
		return true;
	}
	if (!has_files(context))
		return error_set(err, RLMD_ERROR_INPUT,
				 "there are no files to review: a review is of a directory");
	if (review->only_changed && !changes)
		return error_set(err, RLMD_ERROR_USAGE,
				 "only changed lines were asked for, and it is not known what was "
				 "changed: a comparison (diff) says since when");
	load(review, context);
	render_scope(review, changes, scope);
	render(review, "review", text_in(scope), out);
	if (review->reading)
		make_setup(review);
	free(review->task);
	review->task = text_drain(out, &size);
	*ret = text_from(review->task, size);
	return true;
}

/* --- the answer ---------------------------------------------------------------------------- */

static void tell_refusals(const struct submission *submission, struct evbuffer *out)
{
	for (size_t i = 0; i < submission->refusal_count && i < TOLD_MAX; i++) {
		struct rlmd_text why = text_of(submission->refusals[i].why);

		for (size_t at = 0, end; at < why.size; at = end) {
			end = text_line_end(why, at);
			buffer_add_printf(out, "findings[%zu].%.*s", submission->refusals[i].index,
					  (int)(end - at), why.bytes + at);
		}
	}
	if (submission->refusal_count > TOLD_MAX)
		buffer_add_printf(out, "and %zu more\n", submission->refusal_count - TOLD_MAX);
}

static bool is_lost(const struct finding *finding)
{
	return finding->anchoring == FINDING_NO_FILE || finding->anchoring == FINDING_NO_QUOTE;
}

/* Those that stand nowhere leave the submission. Returns how many. */
static size_t tell_lost(struct rlmd_review *review, struct submission *submission,
			struct evbuffer *out)
{
	struct findings *findings = &submission->findings;
	size_t lost = 0, kept = 0;

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];

		if (review->context)
			anchor_find(&review->code, finding);
		if (!review->context || !is_lost(finding)) {
			findings->items[kept++] = *finding;
			continue;
		}
		if (++lost <= TOLD_MAX)
			buffer_add_printf(out, "findings[%zu].%s: %s\n", submission->indexes[i],
					  finding->anchoring == FINDING_NO_FILE ? "path" : "quote",
					  report_why_unanchored(finding));
		finding_done(finding);
	}
	findings->count = kept;
	review->code.work = 0;
	if (lost > TOLD_MAX)
		buffer_add_printf(out, "and %zu more whose quotes are not found\n",
				  lost - TOLD_MAX);
	return lost;
}

/* Once in a review: what is wrong with single findings. The others stay. */
static char *tell_back(struct rlmd_review *review, struct rlmd_text answer,
		       struct submission *submission)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	tell_refusals(submission, out);
	if (!tell_lost(review, submission, out) && !submission->refusal_count)
		return NULL;
	review->returned = text_copy(answer);
	review->before = *submission;
	*submission = (struct submission){0};
	buffer_add_printf(
		out,
		"The other findings (%zu) are taken and need not be said again: the whole "
		"answer is now {\"findings\": [...]} with those named here alone, mended, "
		"or without them where they cannot be.\n",
		review->before.findings.count);
	return text_drain(out, NULL);
}

char *rlmd_review_wrong(struct rlmd_review *review, struct rlmd_text answer)
{
	auto_evbuffer struct evbuffer *wrong = buffer_new();
	struct submission submission = {0};
	char *returned = NULL;

	if (!review)
		return xstrdup("there is no review\n");
	if (!submission_read(answer, &review->rules, &submission, wrong))
		returned = text_drain(wrong, NULL);
	else if (!review->returned && !review->taken)
		returned = tell_back(review, answer, &submission);
	submission_done(&submission);
	return returned;
}

struct rlmd_text rlmd_review_spare(const struct rlmd_review *review, const char **ret_what)
{
	const char *what = NULL;
	struct rlmd_text spare = text_of("");

	if (review && review->returned) {
		spare = text_of(review->returned);
		what = "single findings were told back to the model, which gave no other answer";
	} else if (review && review->first && json_array_size(review->first_findings)) {
		spare = text_of(review->first);
		what = review->first_what;
	}
	if (ret_what)
		*ret_what = what;
	return spare;
}

static bool is_said_before(const struct findings *before, const struct finding *finding)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct finding *other = &before->items[i];

		if (!strcmp(other->rule, finding->rule) && !strcmp(other->path, finding->path) &&
		    !strcmp(other->quote, finding->quote))
			return true;
	}
	return false;
}

/* Those that stayed of the answer that was told back, and those of the one after it. An empty one
 * mends nothing, so what was refused is still to be reported. */
static void join(struct rlmd_review *review)
{
	struct findings *new = &review->submission.findings, *before = &review->before.findings;
	struct findings all = {.items = xcalloc(new->count + before->count + 1, sizeof *all.items)};

	for (size_t i = 0; i < new->count; i++) {
		if (is_said_before(before, &new->items[i]))
			finding_done(&new->items[i]);
		else
			all.items[all.count++] = new->items[i];
	}
	if (!new->count && !review->submission.refusal_count) {
		review->submission.refusals = take_pointer(&review->before.refusals);
		review->submission.refusal_count = review->before.refusal_count;
		review->before.refusal_count = 0;
	}
	for (size_t i = 0; i < before->count; i++)
		all.items[all.count++] = before->items[i];
	free(new->items);
	before->count = 0;
	*new = all;
}

bool rlmd_review_take(struct rlmd_review *review, struct rlmd_context *context,
		      struct rlmd_text answer, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *wrong = buffer_new();
	struct findings *findings;

	if (!review || !context)
		return error_set(err, RLMD_ERROR_USAGE,
				 "there is no review, or no context, to take findings for");
	if (review->taken)
		return error_set(err, RLMD_ERROR_USAGE, "the review has its findings already");
	if (!submission_read(answer, &review->rules, &review->submission, wrong))
		return error_set(err, RLMD_ERROR_SCHEMA, "the findings: %.*s",
				 (int)strcspn(text_in(wrong).bytes, "\n"), text_in(wrong).bytes);
	if (review->returned && !text_equal(answer, review->returned))
		join(review);
	review->taken = true;
	findings = &review->submission.findings;
	load(review, context);
	anchor_all(findings, &review->code, &review->rules, review->only_changed);
	findings_sort(findings);
	findings_merge(findings);
	fingerprint_all(&review->code, findings);
	baseline_apply(&review->baseline, &review->code, findings);
	omission_apply(findings, &review->limits);
	return true;
}

/* --- reports ------------------------------------------------------------------------------ */

static struct review_view view_of(const struct rlmd_review *review)
{
	return (struct review_view){.findings = &review->submission.findings,
				    .submission = &review->submission,
				    .fail_on_unanchored = review->fail_on_unanchored,
				    .rules = &review->rules,
				    .code = &review->code,
				    .category = review->category,
				    .fail_on = review->fail_on,
				    .with_baseline = review->with_baseline};
}

static report_fn *const reports[] = {
#define REPORT(name, id, what) [RLMD_REVIEW_##id] = report_##name,
#include "review/reports.def"
#undef REPORT
};

char *rlmd_review_report(const struct rlmd_review *review, enum rlmd_review_format format,
			 size_t *ret_size)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	const struct review_view view = review ? view_of(review) : (struct review_view){0};

	if (review && (size_t)format < sizeof reports / sizeof *reports)
		reports[format](&view, out);
	return text_drain(out, ret_size);
}

size_t rlmd_review_failing(const struct rlmd_review *review)
{
	struct review_view view;

	if (!review)
		return 0;
	view = view_of(review);
	return report_failing(&view);
}
