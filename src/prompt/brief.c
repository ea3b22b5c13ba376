#include "prompt/brief.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "llm/llm.h"
#include "prompt/prompt.h"

enum {
	SHOWN_WHOLE =
		2000, /* characters of an input that is shown whole, and of all but the first */
	SHOWN_FIRST = 700,   /* of a longer first one */
	SHOWN_MORE = 500,    /* of each of the others */
	NOTE_MAX = 100,      /* characters that a text may have beyond its limit */
	REMINDER_MAX = 2000, /* characters of the task in the turns after it */
	CALL_TOKENS = 2000,  /* of a typical llm_query: what the prompt's cost figure is for */
	CALL_OUTPUT_TOKENS = 500,
	CALL_MS = 3000,        /* until this run has measured its own */
	SUBRUN_CALLS = 5,      /* turns of a typical sub-run */
	PIECE_SHARE = 5,       /* of a model's window, for the text that it is asked about */
	PIECE_MAX = 50000,     /* tokens; with more models overlook things, whatever their window */
	TOKEN_CHARACTERS = 4,  /* without an input to measure */
	TIME_SHORT_MS = 60000, /* left: less is told, and less than a share of all */
	TIME_SHARE = 4,
	OUTPUTS_TOKENS = 300, /* that the shortest forced request has for them, about */
};

/* The time is told once it gets short: before, models hurry for no reason. */
static bool time_is_short(const struct budget *budget, int64_t left)
{
	int64_t limit = budget_limits(budget)->time_ms;

	return limit != BUDGET_UNLIMITED && (left < TIME_SHORT_MS || left < limit / TIME_SHARE);
}

/* `words` holds texts of the values, until they are rendered. */
static void values_of_budget(const struct brief *brief, struct prompt_values *values,
			     struct evbuffer *words)
{
	int64_t time = budget_remaining_ms(brief->budget);
	const struct budget_limits *limits = budget_limits(brief->budget);
	struct rlmd_amount left = budget_remaining(brief->budget);

	prompt_number(values, "depth", brief->depth);
	prompt_number(values, "max_depth", limits->max_depth);
	prompt_number_left(values, "max_turns", limits->max_iterations);
	prompt_number(values, "turn", brief->turn);
	prompt_money_left(values, "cost", left.cost);
	prompt_number_left(values, "tokens", left.tokens);
	prompt_duration(values, "time", time);
	if (time_is_short(brief->budget, time)) {
		prompt_render(brief->prompts, "time_left", values, words, NULL);
		prompt_text_left(values, "time_left", text_trim(text_in(words)));
	}
	prompt_number_left(values, "iterations", budget_remaining_iterations(brief->budget));
	prompt_number(values, "max_output", brief->facts.max_output);
}

static void values_of_calls(const struct brief *brief, struct prompt_values *values)
{
	const struct brief_facts *facts = &brief->facts;
	int64_t call_ms = facts->call_count ? facts->call_ms / facts->call_count : CALL_MS;
	int64_t subrun_ms = facts->subrun_count ? facts->subrun_ms / facts->subrun_count
						: SUBRUN_CALLS * call_ms;
	int64_t cost;

	prompt_text(values, "model", text_of(facts->model));
	prompt_text(values, "subcall_model", text_of(facts->subcall_model));
	prompt_number(values, "downgrade", facts->downgrade);
	prompt_number(values, "parallel", facts->max_parallel);
	prompt_duration(values, "query_time", call_ms);
	prompt_duration(values, "subrun_time", subrun_ms);
	if (llm_price(facts->llm, facts->subcall_model, CALL_TOKENS, CALL_OUTPUT_TOKENS, &cost)) {
		prompt_money(values, "query_cost", cost);
		prompt_money_left(values, "subrun_cost",
				  facts->subrun_count ? facts->subrun_cost / facts->subrun_count
						      : SUBRUN_CALLS * cost);
	} else {
		prompt_text(values, "query_cost", text_of("an unknown price"));
		prompt_text(values, "subrun_cost", text_of("several times that"));
	}
}

/* Down to two digits: figures that are rough anyway should not differ without need. */
static int64_t rounded(int64_t number)
{
	int64_t unit = 1;

	while (number / unit >= 100)
		unit *= 10;
	return number / unit * unit;
}

static void describe_context(const struct context *context, struct evbuffer *out)
{
	for (size_t i = 0; i < context->count; i++) {
		const struct context_input *input = &context->inputs[i];
		const struct text_scan *scan = memfile_scan(input->file);
		size_t files = input->files ? file_index_count(input->files) : 0;

		buffer_add_printf(out, "- `%s`: %zu characters, %s, about %" PRId64 " tokens",
				  input->name, scan->characters, input->type,
				  text_scan_tokens(scan));
		if (input->files)
			buffer_add_printf(out, "; %zu file%s in `%s.files` (path -> text)", files,
					  files == 1 ? "" : "s", input->name);
		if (input->left_out)
			buffer_add_printf(out, "; left out: %s", input->left_out);
		buffer_add(out, "\n", 1);
	}
	if (!context->count)
		buffer_add_printf(out, "- none: `context` is the empty string\n");
}

struct draft draft_new(void)
{
	return (struct draft){buffer_new(), buffer_new()};
}

void draft_free(struct draft *draft)
{
	evbuffer_free(draft->text);
	evbuffer_free(draft->timeless);
}

void draft_say(struct draft *draft, enum llm_role role, struct conversation *conversation)
{
	conversation_add(conversation, role, text_in(draft->text), text_in(draft->timeless));
	evbuffer_drain(draft->text, evbuffer_get_length(draft->text));
	evbuffer_drain(draft->timeless, evbuffer_get_length(draft->timeless));
}

void draft_note(struct draft *draft, const struct prompt_set *prompts, const char *name)
{
	prompt_render(prompts, name, &(struct prompt_values){0}, draft->text, draft->timeless);
}

int64_t brief_piece(const struct llm *llm, const char *model)
{
	int64_t known = llm_room(llm, model).window;
	int64_t piece = (known ? known : llm_window(llm, model)) / PIECE_SHARE;

	return piece < 1 ? 1 : piece < PIECE_MAX ? piece : PIECE_MAX;
}

/* The size of a text for one llm_query. Both numbers are rounded down to two digits. */
static void values_of_pieces(const struct brief *brief, struct prompt_values *values)
{
	const struct brief_facts *facts = &brief->facts;
	int64_t piece = brief_piece(facts->llm, facts->subcall_model);
	int64_t tokens = 0, characters = 0;

	for (size_t i = 0; i < brief->context->count; i++) {
		const struct text_scan *scan = memfile_scan(brief->context->inputs[i].file);

		characters += (int64_t)scan->characters;
		tokens += text_scan_tokens(scan);
	}
	prompt_estimate(values, "piece_tokens", rounded(piece));
	piece = tokens ? (int64_t)((double)piece * (double)characters / (double)tokens)
		       : piece * TOKEN_CHARACTERS;
	prompt_estimate(values, "piece_characters", rounded(piece));
}

static void list_modules(const struct brief_facts *facts, struct evbuffer *out)
{
	const char *version = facts->python_version;

	buffer_add_printf(out, "Python%s%s's standard library", version ? " " : "",
			  version ? version : "");
	for (const char *const *module = facts->preload; module && *module; module++)
		buffer_add_printf(out, ", %s", *module);
}

/* Parts that stay the same come first, for the caches of providers. */
static const struct {
	const char *prompt;
	enum { BOTH, ROOT, SUBRUN } who;
} parts[] = {
	{"root", BOTH},      {"subrun", SUBRUN}, {"this_run", BOTH},
	{"functions", BOTH}, {"files", BOTH},    {"changes", BOTH},
	{"schema", BOTH},    {"grant", ROOT},    {"subrun_grant", SUBRUN},
};

enum { PARTS = sizeof parts / sizeof *parts };

static bool has_files(const struct context *context, bool compared)
{
	for (size_t i = 0; i < context->count; i++) {
		const struct file_index *files = context->inputs[i].files;

		if (files && (!compared || file_index_changes(files).size))
			return true;
	}
	return false;
}

static bool is_wanted(const struct brief *brief, const char *prompt)
{
	if (!strcmp(prompt, "functions"))
		return brief->facts.functions.size;
	if (!strcmp(prompt, "schema"))
		return brief->schema.size;
	if (!strcmp(prompt, "files"))
		return has_files(brief->context, false);
	return strcmp(prompt, "changes") != 0 || has_files(brief->context, true);
}

void brief_system(const struct brief *brief, const struct budget *parent, struct draft *out)
{
	auto_evbuffer struct evbuffer *modules = buffer_new(), *words = buffer_new();
	struct prompt_values values = {0};

	list_modules(&brief->facts, modules);
	values_of_budget(brief, &values, words);
	values_of_calls(brief, &values);
	values_of_pieces(brief, &values);
	prompt_text(&values, "modules", text_in(modules));
	if (parent) {
		struct rlmd_amount left = budget_remaining(parent);

		prompt_money_left(&values, "parent_cost", left.cost);
		prompt_number_left(&values, "parent_tokens", left.tokens);
		prompt_number_left(&values, "parent_iterations",
				   budget_remaining_iterations(parent));
	}
	prompt_text(&values, "functions", brief->facts.functions);
	prompt_text(&values, "schema", brief->schema);
	for (size_t i = 0; i < PARTS; i++)
		if (is_wanted(brief, parts[i].prompt) &&
		    (parts[i].who == BOTH || parts[i].who == (parent ? SUBRUN : ROOT)))
			prompt_render(brief->prompts, parts[i].prompt, &values, out->text,
				      out->timeless);
}

/* How much of an input is shown, in characters: of a short one all. */
static int64_t shown_of(const struct context *context, size_t i)
{
	int64_t size = (int64_t)memfile_scan(context->inputs[i].file)->characters;
	int64_t most = i ? SHOWN_WHOLE / (int64_t)(context->count - 1) : SHOWN_FIRST;

	if (i && most > SHOWN_MORE)
		most = SHOWN_MORE;
	return size <= most || (!i && size <= SHOWN_WHOLE) ? size : most;
}

static bool shows_all(const struct context *context)
{
	for (size_t i = 0; i < context->count; i++) {
		const struct text_scan *scan = memfile_scan(context->inputs[i].file);

		if (shown_of(context, i) < (int64_t)scan->characters)
			return false;
	}
	return true;
}

static void add_looks(const struct brief *brief, struct evbuffer *out)
{
	for (size_t i = 0; i < brief->context->count; i++) {
		const struct context_input *input = &brief->context->inputs[i];
		int64_t shown = shown_of(brief->context, i);
		bool all = shown == (int64_t)memfile_scan(input->file)->characters;
		struct prompt_values values = {0};

		if (!shown)
			continue;
		prompt_text(&values, "name", text_of(input->name));
		prompt_number(&values, "shown", shown);
		prompt_number(&values, "line_feeds",
			      (int64_t)memfile_scan(input->file)->line_feeds);
		if (input->files)
			prompt_render(brief->prompts, "look_files", &values, out, NULL);
		if (input->files && !all)
			continue; /* how the first file begins says little */
		prompt_render(brief->prompts, i || all ? "look" : "look_part", &values, out, NULL);
	}
}

static void add_lines(struct evbuffer *out, struct rlmd_text text)
{
	buffer_add(out, text.bytes, text.size);
	if (text.size && text.bytes[text.size - 1] != '\n')
		buffer_add(out, "\n", 1);
}

bool brief_demonstration(const struct brief *brief, struct evbuffer *code, struct draft *out)
{
	struct prompt_values values = {0};
	struct rlmd_text first = brief->depth ? text_of("") : brief->facts.first_code;
	auto_evbuffer struct evbuffer *shown = buffer_new();

	if (text_trim(prompt_set_text(brief->prompts, "demonstration")).size)
		add_looks(brief, shown);
	add_lines(shown, first);
	if (!evbuffer_get_length(shown))
		return false;
	prompt_text(&values, "code", text_in(shown));
	prompt_render(brief->prompts, first.size ? "first_code" : "demonstration", &values,
		      out->text, NULL);
	if (first.size)
		add_lines(code, brief->facts.setup);
	buffer_add_buffer(code, shown);
	return true;
}

static void values_of_task(const struct brief *brief, struct evbuffer *contexts,
			   struct evbuffer *words, struct prompt_values *values)
{
	values_of_budget(brief, values, words);
	values_of_calls(brief, values);
	describe_context(brief->context, contexts);
	prompt_text(values, "contexts", text_in(contexts));
	prompt_text(values, "task", brief->task);
}

void brief_opening(const struct brief *brief, struct draft *out)
{
	auto_evbuffer struct evbuffer *contexts = buffer_new(), *words = buffer_new();
	struct prompt_values values = {0};

	values_of_task(brief, contexts, words, &values);
	prompt_render(brief->prompts, "opening", &values, out->text, out->timeless);
}

void brief_first_turn_bare(const struct brief *brief, struct draft *out)
{
	auto_evbuffer struct evbuffer *contexts = buffer_new(), *words = buffer_new();
	struct prompt_values values = {0};

	values_of_task(brief, contexts, words, &values);
	prompt_render(brief->prompts, "first_turn_bare", &values, out->text, out->timeless);
}

void brief_schema(const struct prompt_set *prompts, struct rlmd_text schema, struct evbuffer *out)
{
	struct prompt_values values = {0};

	prompt_text(&values, "schema", schema);
	prompt_render(prompts, "schema", &values, out, NULL);
}

struct rlmd_text brief_text(const struct prompt_set *prompts, const char *name)
{
	return text_trim(prompt_set_text(prompts, name));
}

bool brief_operation(const struct prompt_set *prompts, struct rlmd_text input,
		     struct rlmd_text context, int64_t max, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *clipped = buffer_new(), *task = buffer_new();
	struct prompt_values values = {0};

	text_repair(input, task);
	brief_clip(context, max, clipped);
	prompt_text(&values, "task", text_in(task));
	prompt_text(&values, "output", text_in(clipped));
	prompt_render(prompts, "operation", &values, out, NULL);
	return evbuffer_get_length(clipped) < context.size;
}

/* `step`: the prompt for {{step}}, or NULL. */
static void tell_turn(const struct brief *brief, const char *prompt, const char *step,
		      struct rlmd_text observations, struct draft *out)
{
	auto_evbuffer struct evbuffer *reminder = buffer_new(), *words = buffer_new();
	struct prompt_values values = {0};

	values_of_budget(brief, &values, words);
	values_of_calls(brief, &values);
	brief_clip(brief->task, REMINDER_MAX, reminder);
	prompt_text(&values, "task", text_in(reminder));
	prompt_text(&values, "output", observations);
	if (step)
		prompt_text(&values, "step", brief_text(brief->prompts, step));
	prompt_render(brief->prompts, prompt, &values, out->text, out->timeless);
}

void brief_first_turn(const struct brief *brief, struct rlmd_text observations, struct draft *out)
{
	const char *step = shows_all(brief->context) ? "step" : "step_part";

	tell_turn(brief, "first_turn", step, observations, out);
}

void brief_turn(const struct brief *brief, struct rlmd_text observations, struct draft *out)
{
	tell_turn(brief, "turn", NULL, observations, out);
}

void brief_forced(const struct brief *brief, const char *reason, struct rlmd_text observations,
		  struct draft *out)
{
	auto_evbuffer struct evbuffer *words = buffer_new();
	struct prompt_values values = {0};

	values_of_budget(brief, &values, words);
	prompt_text(&values, "task", brief->task);
	prompt_text(&values, "reason", text_of(reason));
	prompt_text(&values, "output", observations);
	prompt_text(&values, "schema", brief->schema);
	prompt_render(brief->prompts, "forced", &values, out->text, out->timeless);
	if (brief->schema.size)
		prompt_render(brief->prompts, "schema", &values, out->text, out->timeless);
}

int64_t brief_forced_size(const struct brief *brief, const struct estimator *estimator)
{
	struct draft request = draft_new();
	struct token_scan scan = {0};
	int64_t tokens;

	brief_forced(brief, "three turns in a row had neither code nor an answer", text_of(""),
		     &request);
	token_scan_feed(&scan, text_in(request.text));
	tokens = estimator_tokens(estimator, &scan.counts);
	draft_free(&request);
	return tokens + OUTPUTS_TOKENS;
}

void brief_summary(const struct prompt_set *prompts, int64_t turns, struct rlmd_text what,
		   struct evbuffer *out)
{
	struct prompt_values values = {0};

	prompt_number(&values, "turns", turns);
	prompt_text(&values, "output", what);
	prompt_render(prompts, "summary", &values, out, NULL);
}

void brief_note(const struct prompt_set *prompts, const char *name, struct rlmd_text output,
		struct evbuffer *out)
{
	struct prompt_values values = {0};

	prompt_text(&values, "output", output);
	prompt_text(&values, "reason", output);
	prompt_render(prompts, name, &values, out, NULL);
}

void brief_unknown_variable(const struct prompt_set *prompts, struct rlmd_text name,
			    struct rlmd_text variables, struct evbuffer *out)
{
	struct prompt_values values = {0};

	prompt_text(&values, "output", name);
	prompt_text(&values, "variables", variables);
	prompt_render(prompts, "unknown_variable", &values, out, NULL);
}

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* Bytes of the first `characters` of a text, or of the last ones. */
static size_t head_bytes(struct rlmd_text text, int64_t characters)
{
	size_t i = 0;

	while (i < text.size && (characters || !starts_character(text.bytes[i])))
		characters -= starts_character(text.bytes[i++]);
	return i;
}

static size_t tail_bytes(struct rlmd_text text, int64_t characters)
{
	size_t i = text.size;

	while (i && characters)
		characters -= starts_character(text.bytes[--i]);
	return text.size - i;
}

void brief_clip(struct rlmd_text text, int64_t max, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *repaired = NULL;
	int64_t characters;

	if (!text_is_utf8(text)) {
		repaired = buffer_new();
		text_repair(text, repaired);
		text = text_in(repaired);
	}
	characters = (int64_t)text_characters(text);
	/* A worker cuts its output itself and says so: its note may stand beyond the limit. */
	if (characters > max + NOTE_MAX) {
		size_t tail = tail_bytes(text, max - max / 2);

		buffer_add(out, text.bytes, head_bytes(text, max / 2));
		buffer_add_printf(out, "\n... [%" PRId64 " characters omitted] ...\n",
				  characters - max);
		text = text_slice(text, text.size - tail, text.size);
	}
	buffer_add(out, text.bytes, text.size);
}

static void add_section(const char *title, struct rlmd_text text, int64_t max, struct evbuffer *out)
{
	if (!text.size)
		return;
	buffer_add_printf(out, "%s\n", title);
	brief_clip(text, max, out);
	if (text.bytes[text.size - 1] != '\n')
		buffer_add(out, "\n", 1);
}

void brief_variables(struct rlmd_text listing, struct evbuffer *out)
{
	buffer_add_printf(out, "\n[variables]\n");
	buffer_add(out, listing.bytes, listing.size);
}

void brief_block(int64_t number, const struct worker_block *block, int64_t max_output,
		 struct evbuffer *out)
{
	buffer_add_printf(out, "[block %" PRId64 "]\n", number);
	add_section("[stdout]", block->stdout_text, max_output, out);
	add_section("[stderr]", block->stderr_text, max_output, out);
	if (block->failed)
		add_section("[error]", block->error, max_output, out);
	if (block->interrupted)
		buffer_add_printf(out, "[the block was interrupted: its time was over]\n");
	if (!block->stdout_text.size && !block->stderr_text.size && !block->failed)
		buffer_add_printf(out, "[no output]\n");
}
