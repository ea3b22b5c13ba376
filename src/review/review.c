/* The face of the floor, rlmd/review.h: from a task to findings and reports. */
#include <rlmd/context.h>
#include <rlmd/review.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "prompt/prompt.h"
#include "review/anchor.h"
#include "review/baseline.h"
#include "review/code.h"
#include "review/fingerprint.h"
#include "review/report.h"
#include "review/ruleset.h"
#include "source/top.h"

struct rlmd_review {
	const struct prompt_set *prompts; /* owned */
	char *wanted;                     /* owned: what to look for; NULL: what is usual */
	size_t wanted_size;
	char *task; /* owned; NULL: not asked for yet */
	struct ruleset rules;
	bool own_rules; /* and no others */
	struct baseline baseline;
	bool with_baseline, only_changed;
	enum severity fail_on;
	char *place; /* owned: of what is reviewed in its repository; until there are findings */

	struct rlmd_context *context; /* referenced, once there are findings */
	struct code code;
	struct findings findings;
};

/* --- before the start --------------------------------------------------------------------- */

/* Paths in reports and patches begin at the top of the work tree. */
static char *place_of(const char *directory)
{
	auto_free char *top = NULL;
	struct rlmd_error err;

	/* A wrong path is told when its files are loaded. */
	return top_find(directory, &top, &err) && top ? top_place(top, directory) : NULL;
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
	review->with_baseline = options->baseline;
	review->place = options->directory ? place_of(options->directory) : NULL;
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
	findings_done(&review->findings);
	code_done(&review->code);
	rlmd_context_unref(review->context);
	baseline_done(&review->baseline);
	ruleset_done(&review->rules);
	prompt_set_free(review->prompts);
	free(review->wanted);
	free(review->place);
	free(review->task);
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

static void render(const struct rlmd_review *review, bool changes, struct evbuffer *out)
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
	prompt_text(&values, "scope",
		    prompt_set_text(prompts, changes ? "review_changes" : "review_all"));
	prompt_render(prompts, "review", &values, out, NULL);
}

bool rlmd_review_task(struct rlmd_review *review, const struct rlmd_context *context,
		      struct rlmd_text *ret, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
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
	render(review, changes, out);
	free(review->task);
	review->task = text_drain(out, &size);
	*ret = text_from(review->task, size);
	return true;
}

/* --- the answer ---------------------------------------------------------------------------- */

/* With rules of one's own a finding is by one of them. */
static void check_rules(const struct ruleset *rules, const struct findings *findings,
			struct evbuffer *wrong)
{
	for (size_t i = 0; rules->count && i < findings->count; i++) {
		if (ruleset_find(rules, findings->items[i].rule))
			continue;
		buffer_add_printf(wrong, "findings[%zu].rule: is none of", i);
		for (size_t k = 0; k < rules->count; k++)
			buffer_add_printf(wrong, " \"%s\"", rules->rules[k].id);
		buffer_add_printf(wrong, "\n");
		return;
	}
}

static char *parse(const struct rlmd_review *review, struct rlmd_text answer,
		   struct findings *findings)
{
	auto_evbuffer struct evbuffer *wrong = buffer_new();

	if (findings_parse(answer, findings, wrong))
		check_rules(&review->rules, findings, wrong);
	if (!evbuffer_get_length(wrong))
		return NULL;
	findings_done(findings);
	return text_drain(wrong, NULL);
}

char *rlmd_review_wrong(const struct rlmd_review *review, struct rlmd_text answer)
{
	struct findings findings = {0};
	char *wrong = review ? parse(review, answer, &findings) : xstrdup("there is no review\n");

	findings_done(&findings);
	return wrong;
}

bool rlmd_review_take(struct rlmd_review *review, struct rlmd_context *context,
		      struct rlmd_text answer, struct rlmd_error *err)
{
	auto_free char *wrong = NULL;

	if (!review || !context)
		return error_set(err, RLMD_ERROR_USAGE,
				 "there is no review, or no context, to take findings for");
	if (review->context)
		return error_set(err, RLMD_ERROR_USAGE, "the review has its findings already");
	wrong = parse(review, answer, &review->findings);
	if (wrong)
		return error_set(err, RLMD_ERROR_SCHEMA, "the findings: %.*s",
				 (int)strcspn(wrong, "\n"), wrong);
	review->context = rlmd_context_ref(context);
	review->code.place = take_pointer(&review->place);
	code_load(&review->code, context);
	anchor_all(&review->findings, &review->code, &review->rules, review->only_changed);
	findings_sort(&review->findings);
	findings_merge(&review->findings);
	fingerprint_all(&review->code, &review->findings);
	baseline_apply(&review->baseline, &review->code, &review->findings);
	return true;
}

/* --- reports ------------------------------------------------------------------------------ */

static struct review_view view_of(const struct rlmd_review *review)
{
	return (struct review_view){.findings = &review->findings,
				    .rules = &review->rules,
				    .code = &review->code,
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
	const struct review_view view = review ? view_of(review) : (struct review_view){0};
	size_t failing = 0;

	for (size_t i = 0; review && i < review->findings.count; i++)
		failing += report_fails(&view, &review->findings.items[i]);
	return failing;
}
