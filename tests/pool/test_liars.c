/*
 * Workers that lie, die or dawdle (sandbox.md, section 4). Each ends as the header of
 * pool/worker.h says, and another worker goes on undisturbed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fake/clock.h"
#include "pool/script.h"
#include "pool/stage.h"
#include "wire/bounds.h"

static int honest(int in, int out)
{
	handshake(in, out);
	while (hear(in))
		say_done(out, "fine");
	return 0;
}

/* Before it is ready. */

static int exits_at_once(int in, int out)
{
	(void)in, (void)out;
	return 3;
}

static int lacks_a_wall(int in, int out)
{
	(void)in, (void)out;
	return FAKE_WALL_EXIT;
}

static int starts_unasked(int in, int out)
{
	say(out, "{\"type\":\"started\",\"error\":null,\"no_memory\":false}");
	return pause() + in;
}

static int is_never_ready(int in, int out)
{
	(void)in, (void)out;
	return pause();
}

static int is_ready_twice(int in, int out)
{
	const char *ready = "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}";

	say(out, ready);
	say(out, ready);
	return pause() + in;
}

static int cannot_load(int in, int out)
{
	say(out, "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}");
	expect(in, "start");
	say(out, "{\"type\":\"started\",\"error\":\"MemoryError\",\"no_memory\":true}");
	return pause();
}

static int dies_while_loading(int in, int out)
{
	say(out, "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}");
	expect(in, "start");
	return raise(SIGKILL);
}

/* In a block. */

static int huge_length(int in, int out)
{
	begin_block(in, out);
	put_length(out, 0x7fffffff);
	return pause();
}

static int half_frame(int in, int out)
{
	begin_block(in, out);
	put_length(out, 100);
	put_bytes(out, "{\"type\":", 8);
	return 0;
}

static int slow_frame(int in, int out)
{
	begin_block(in, out);
	put_length(out, 100);
	put_bytes(out, "{\"type\":", 8);
	return pause();
}

static int deep_json(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}");
	return pause();
}

static int duplicate_key(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"budget\",\"id\":1,\"id\":2}");
	return pause();
}

static int invalid_utf8(int in, int out)
{
	begin_block(in, out);
	say(out,
	    "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\xff\"]," USUAL ",\"model\":null}");
	return pause();
}

static int unknown_type(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"call\",\"id\":1}");
	return pause();
}

static int supervisors_type(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"reply\",\"id\":1,\"values\":[],\"errors\":[],\"messages\":[]}");
	return pause();
}

static int wrong_state(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"value\",\"value\":null,\"expression\":false,\"variables\":\"\"}");
	return pause();
}

static int done_twice(int in, int out)
{
	begin_block(in, out);
	say_done(out, "one");
	say_done(out, "two");
	return pause();
}

/* Said ahead, it would shift the outputs of all blocks to come by one. */
static int done_of_another_block(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"done\",\"block\":2,\"stdout\":\"\",\"stderr\":\"\",\"error\":null,"
		 "\"missing\":null,\"final\":null,\"answer\":null}");
	return pause();
}

static int extra_field(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"budget\",\"id\":1,\"tenant\":\"other\"}");
	return pause();
}

static int repeated_id(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"budget\",\"id\":7}");
	say(out, "{\"type\":\"budget\",\"id\":7}");
	return pause();
}

static int null_prompt(int in, int out)
{
	begin_block(in, out);
	say(out,
	    "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"a\",null]," USUAL ",\"model\":null}");
	return pause();
}

#define SUBSETS(subsets, contexts)                                                                 \
	"{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"x\"],\"subsets\":[" subsets                 \
	"],\"contexts\":[" contexts "],\"models\":[null]}"

static int fewer_contexts(int in, int out)
{
	begin_block(in, out);
	say(out,
	    "{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"a\",\"b\"],\"subsets\":[],\"contexts\":[null],"
	    "\"models\":[null,null]}");
	return pause();
}

static int final_without_answer(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"done\",\"block\":1,\"stdout\":\"\",\"stderr\":\"\",\"error\":null,"
		 "\"missing\":null,\"final\":\"final_direct\",\"answer\":null}");
	return pause();
}

static int invented_final(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"done\",\"block\":1,\"stdout\":\"\",\"stderr\":\"\",\"error\":null,"
		 "\"missing\":null,\"final\":\"forced\",\"answer\":\"x\"}");
	return pause();
}

#define ATTACHED(index, sizes)                                                                     \
	"{\"type\":\"llm_query\",\"id\":1,\"prompts\":[" index "]," USUAL                          \
	",\"model\":null,\"attachments\":" sizes "}"

static int index_outside(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("1", "[2]"));
	put_bytes(out, "ab", 2);
	return pause();
}

static int index_twice(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("0,0", "[2]"));
	put_bytes(out, "ab", 2);
	return pause();
}

static int attachment_unnamed(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("\"x\"", "[2]"));
	put_bytes(out, "ab", 2);
	return pause();
}

static int attachment_cut(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("0", "[1000]"));
	put_bytes(out, "ab", 2);
	return 9;
}

static int attachment_too_large(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("0", "[134217729]"));
	return pause();
}

#define DONE(stdout, answer, sizes)                                                                \
	"{\"type\":\"done\",\"block\":1,\"stdout\":" stdout ",\"stderr\":\"\",\"error\":null,"     \
	"\"missing\":null,\"final\":\"final_direct\",\"answer\":" answer ",\"attachments\":" sizes \
	"}"

static int giant_answer(int in, int out)
{
	begin_block(in, out);
	say(out, DONE("\"\"", "0", "[16777217]"));
	return pause();
}

static int giant_output(int in, int out)
{
	begin_block(in, out);
	say(out, DONE("0", "\"x\"", "[304097]"));
	return pause();
}

static int giant_prompt(int in, int out)
{
	begin_block(in, out);
	say(out, ATTACHED("0", "[67108865]"));
	return pause();
}

#define WISHES(turns, max_tokens, temperature)                                                     \
	"{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"x\",\"y\",\"z\"],\"turns\":" turns        \
	",\"model\":null,\"system\":null,\"max_tokens\":" max_tokens                               \
	",\"temperature\":" temperature "}"

/* Says what stands in `said`, a row of the table below. */
static const char *said;

static int says_it(int in, int out)
{
	begin_block(in, out);
	say(out, said);
	return pause();
}

static int says_it_too_early(int in, int out)
{
	say(out, said);
	return pause() + in;
}

static int nul_in_a_name(int in, int out)
{
	static const char json[] = "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[]," USUAL
				   ",\"model\":\"a\\u0000b\"}";

	begin_block(in, out);
	say(out, json);
	return pause();
}

/* As much JSON as fits into one frame, all of it elements of one array. */
static int a_million_nodes(int in, int out)
{
	static char json[1 << 20];
	int head = snprintf(json, sizeof json, "{\"type\":\"llm_query\",\"prompts\":[");

	for (size_t i = (size_t)head; i < sizeof json - 4; i += 2)
		memcpy(&json[i], "0,", 2);
	memcpy(&json[sizeof json - 6], "0]}", 4);
	begin_block(in, out);
	say(out, json);
	return pause();
}

/* One element more than any array may have, and `said` behind it. */
static int too_many_nodes(int in, int out)
{
	static char json[1 << 16];
	size_t used = (size_t)snprintf(json, sizeof json, "{\"type\":\"llm_query\",\"prompts\":[");

	for (int i = 0; i < ELEMENTS_MAX; i++, used += 2)
		memcpy(&json[used], "0,", 2);
	snprintf(&json[used], sizeof json - used, "0%s", said);
	begin_block(in, out);
	say(out, json);
	return pause();
}

static int many_keys(int in, int out)
{
	static char json[1 << 20];
	size_t used = (size_t)snprintf(json, sizeof json, "{\"type\":\"budget\"");

	for (int i = 0; used < sizeof json - 30; i++)
		used += (size_t)snprintf(&json[used], sizeof json - used, ",\"%d\":0", i);
	snprintf(&json[used], sizeof json - used, "}");
	begin_block(in, out);
	say(out, json);
	return pause();
}

static int million_digits(int in, int out)
{
	static char json[1000000];
	int head = snprintf(json, sizeof json, "{\"type\":\"budget\",\"id\":");

	memset(&json[head], '9', sizeof json - (size_t)head - 2);
	json[sizeof json - 2] = '}';
	begin_block(in, out);
	say(out, json);
	return pause();
}

static int byte_by_byte(int in, int out)
{
	begin_block(in, out);
	put_length(out, 1 << 20);
	while (in >= 0)
		put_bytes(out, " ", 1);
	return 0;
}

static int exits_in_block(int in, int out)
{
	begin_block(in, out);
	return 3;
}

static int dies_by(int in, int out, int signal)
{
	struct rlimit none = {0, 0};

	begin_block(in, out);
	setrlimit(RLIMIT_CORE, &none);
	sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	return raise(signal);
}

static int is_killed(int in, int out)
{
	return dies_by(in, out, SIGKILL);
}

static int crashes(int in, int out)
{
	return dies_by(in, out, SIGSEGV);
}

static int breaks_the_filter(int in, int out)
{
	return dies_by(in, out, SIGSYS);
}

static int closes_its_pipe(int in, int out)
{
	begin_block(in, out);
	close(out);
	return pause();
}

struct lie {
	const char *name;
	fake_script_fn *script;
	enum rlmd_error_kind kind;
	const char *text;
	int speed; /* of the clock */
	const char *said;
};

/* A call of a function; "lookup" there is. */
#define CALLS(name, arguments)                                                                     \
	"{\"type\":\"function\",\"id\":1,\"name\":" name ",\"arguments\":" arguments "}"
#define DEEP "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"

static const struct lie lies[] = {
	{"exits_at_once", exits_at_once, RLMD_ERROR_SANDBOX,
	 "before its walls stood: the worker ended "
	 "itself (exit status 3)",
	 1},
	{"lacks_a_wall", lacks_a_wall, RLMD_ERROR_SANDBOX, "the wall of this fake", 1},
	{"starts_unasked", starts_unasked, RLMD_ERROR_SANDBOX, "'started' out of turn", 1},
	{"is_never_ready", is_never_ready, RLMD_ERROR_SANDBOX, "no worker stood after", 100},
	{"is_ready_twice", is_ready_twice, RLMD_ERROR_WORKER, "'ready' out of turn", 1},
	{"cannot_load", cannot_load, RLMD_ERROR_INPUT, "could not be loaded: MemoryError", 1},
	{"dies_while_loading", dies_while_loading, RLMD_ERROR_INPUT,
	 "while the inputs were loaded: the worker was killed by signal 9", 1},
	{"huge_length", huge_length, RLMD_ERROR_WORKER, "broke the protocol: a frame of 2147483647",
	 1},
	{"half_frame", half_frame, RLMD_ERROR_WORKER, "ended itself (exit status 0)", 1},
	{"slow_frame", slow_frame, RLMD_ERROR_WORKER, "begun and not ended in its time", 100},
	{"deep_json", deep_json, RLMD_ERROR_WORKER, "nested more than", 1},
	{"duplicate_key", duplicate_key, RLMD_ERROR_WORKER, "duplicate", 1},
	{"invalid_utf8", invalid_utf8, RLMD_ERROR_WORKER, "invalid UTF-8", 1},
	{"unknown_type", unknown_type, RLMD_ERROR_WORKER, "no message is called 'call'", 1},
	{"supervisors_type", supervisors_type, RLMD_ERROR_WORKER, "'reply' from the wrong side", 1},
	{"wrong_state", wrong_state, RLMD_ERROR_WORKER, "'value' out of turn", 1},
	{"done_twice", done_twice, RLMD_ERROR_WORKER, "'done' out of turn", 1},
	{"done_of_another_block", done_of_another_block, RLMD_ERROR_WORKER,
	 "'done' of block 2, not 1", 1},
	{"extra_field", extra_field, RLMD_ERROR_WORKER, "fields that it does not have", 1},
	{"repeated_id", repeated_id, RLMD_ERROR_WORKER, "number of an unanswered one", 1},
	{"null_prompt", null_prompt, RLMD_ERROR_WORKER, "null among the 'prompts'", 1},
	{"fewer_contexts", fewer_contexts, RLMD_ERROR_WORKER, "not as many contexts as tasks", 1},
	{"final_without_answer", final_without_answer, RLMD_ERROR_WORKER, "only one of", 1},
	{"invented_final", invented_final, RLMD_ERROR_WORKER, "an unknown 'final'", 1},
	{"index_outside", index_outside, RLMD_ERROR_WORKER, "a wrong 'prompts'", 1},
	{"index_twice", index_twice, RLMD_ERROR_WORKER, "a wrong 'prompts'", 1},
	{"attachment_unnamed", attachment_unnamed, RLMD_ERROR_WORKER, "that nothing names", 1},
	{"attachment_cut", attachment_cut, RLMD_ERROR_WORKER, "ended itself (exit status 9)", 1},
	{"attachment_too_large", attachment_too_large, RLMD_ERROR_WORKER,
	 "more than 134217728 bytes", 1},
	{"giant_answer", giant_answer, RLMD_ERROR_WORKER, "16777217 bytes of 'answer'", 1},
	{"giant_output", giant_output, RLMD_ERROR_WORKER, "304097 bytes of 'stdout'", 1},
	{"giant_plan", says_it, RLMD_ERROR_WORKER, "67108865 bytes of 'plan'", 1,
	 "{\"type\":\"run_plan\",\"id\":1,\"plan\":0,\"attachments\":[67108865]}"},
	{"null_plan", says_it, RLMD_ERROR_WORKER, "a wrong 'plan'", 1,
	 "{\"type\":\"run_plan\",\"id\":1,\"plan\":null}"},
	{"plan_as_json", says_it, RLMD_ERROR_WORKER, "a wrong 'plan'", 1,
	 "{\"type\":\"run_plan\",\"id\":1,\"plan\":{\"operations\":[]}}"},
	{"giant_prompt", giant_prompt, RLMD_ERROR_WORKER, "67108865 bytes of 'prompts'", 1},
	{"exits_in_block", exits_in_block, RLMD_ERROR_WORKER, "ended itself (exit status 3)", 1},
	{"is_killed", is_killed, RLMD_ERROR_WORKER, "signal 9 (SIGKILL); it probably needed more",
	 1},
	{"crashes", crashes, RLMD_ERROR_WORKER, "signal 11 (SIGSEGV); it probably ran out", 1},
	{"breaks_the_filter", breaks_the_filter, RLMD_ERROR_WORKER, "that the sandbox forbids", 1},
	{"closes_its_pipe", closes_its_pipe, RLMD_ERROR_WORKER, "closed its pipe and lived on", 10},
	{"no_object", says_it, RLMD_ERROR_WORKER, "no JSON object", 1, "[1,2]"},
	{"no_json", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1, "budget"},
	{"empty_frame", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1, ""},
	{"pickled", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "\x80\x04\x95"
	 "cos\nsystem\n(S'id'\ntR."},
	{"byte_order_mark", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1, "\xef\xbb\xbf{}"},
	{"trailing_bytes", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":1} x"},
	{"two_objects", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":1}{}"},
	{"lone_surrogate", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\\ud800\"]," USUAL ",\"model\":null}"},
	{"not_a_number", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":NaN}"},
	{"infinity", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":Infinity}"},
	{"out_of_range", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":1e999999}"},
	{"negative_id", says_it, RLMD_ERROR_WORKER, "a wrong 'id'", 1,
	 "{\"type\":\"budget\",\"id\":-1}"},
	{"huge_id", says_it, RLMD_ERROR_WORKER, "broke the protocol", 1,
	 "{\"type\":\"budget\",\"id\":18446744073709551616}"},
	{"id_beyond_2_53", says_it, RLMD_ERROR_WORKER, "a wrong 'id'", 1,
	 "{\"type\":\"budget\",\"id\":9007199254740993}"},
	{"null_id", says_it, RLMD_ERROR_WORKER, "a wrong 'id'", 1,
	 "{\"type\":\"budget\",\"id\":null}"},
	{"real_id", says_it, RLMD_ERROR_WORKER, "a wrong 'id'", 1,
	 "{\"type\":\"budget\",\"id\":1.0}"},
	{"text_id", says_it, RLMD_ERROR_WORKER, "a wrong 'id'", 1,
	 "{\"type\":\"budget\",\"id\":\"1\"}"},
	{"no_id", says_it, RLMD_ERROR_WORKER, "without 'id'", 1, "{\"type\":\"budget\"}"},
	{"prototype", says_it, RLMD_ERROR_WORKER, "fields that it does not have", 1,
	 "{\"type\":\"budget\",\"id\":1,\"__proto__\":{}}"},
	{"a_url", says_it, RLMD_ERROR_WORKER, "fields that it does not have", 1,
	 "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"x\"]," USUAL
	 ",\"model\":null,\"base_url\":\"http://127.0.0.1/\"}"},
	{"many_tokens", says_it, RLMD_ERROR_WORKER, "'max_tokens' of 100000001", 1,
	 WISHES("[]", "100000001", "null")},
	{"no_tokens", says_it, RLMD_ERROR_WORKER, "'max_tokens' of 0", 1,
	 WISHES("[]", "0", "null")},
	{"negative_tokens", says_it, RLMD_ERROR_WORKER, "a wrong 'max_tokens'", 1,
	 WISHES("[]", "-1", "null")},
	{"hot", says_it, RLMD_ERROR_WORKER, "a 'temperature' above 2000", 1,
	 WISHES("[]", "null", "2001")},
	{"cold", says_it, RLMD_ERROR_WORKER, "a wrong 'temperature'", 1,
	 WISHES("[]", "null", "-1")},
	{"temperature_in_words", says_it, RLMD_ERROR_WORKER, "a wrong 'temperature'", 1,
	 WISHES("[]", "null", "\"0.5\"")},
	{"the_models_turn", says_it, RLMD_ERROR_WORKER, "'turns' that are no conversations", 1,
	 WISHES("[2,1]", "null", "null")},
	{"no_turns", says_it, RLMD_ERROR_WORKER, "'turns' that are no conversations", 1,
	 WISHES("[3,0]", "null", "null")},
	{"more_turns", says_it, RLMD_ERROR_WORKER, "'turns' that are no conversations", 1,
	 WISHES("[1,9007199254740991]", "null", "null")},
	{"fewer_turns", says_it, RLMD_ERROR_WORKER, "fewer 'turns' than prompts", 1,
	 WISHES("[1,1]", "null", "null")},
	{"system_of_a_number", says_it, RLMD_ERROR_WORKER, "a wrong 'system'", 1,
	 "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"x\"],\"turns\":[],\"model\":null,"
	 "\"system\":7,\"max_tokens\":null,\"temperature\":null}"},
	{"fewer_models", says_it, RLMD_ERROR_WORKER, "not as many models as tasks", 1,
	 "{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"x\"],\"subsets\":[],\"contexts\":[null],\"models\":[]}"},
	{"model_of_a_number", says_it, RLMD_ERROR_WORKER, "a wrong 'models'", 1,
	 "{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"x\"],\"subsets\":[],\"contexts\":[null],\"models\":[1]}"},
	{"subsets_for_others", says_it, RLMD_ERROR_WORKER, "not as many subsets as tasks", 1,
	 SUBSETS("null,null", "null")},
	{"subset_of_words", says_it, RLMD_ERROR_WORKER, "no JSON", 1, SUBSETS("\"0,1\"", "null")},
	{"subset_of_nothing", says_it, RLMD_ERROR_WORKER, "no pairs", 1,
	 SUBSETS("\"[0]\"", "null")},
	{"subset_of_half_a_pair", says_it, RLMD_ERROR_WORKER, "no pairs", 1,
	 SUBSETS("\"[0,1,1,2]\"", "null")},
	{"subset_below_zero", says_it, RLMD_ERROR_WORKER, "no numbers", 1,
	 SUBSETS("\"[0,-1,1]\"", "null")},
	{"subset_beyond_all", says_it, RLMD_ERROR_WORKER, "no numbers", 1,
	 SUBSETS("\"[0,9007199254740991,1]\"", "null")},
	{"subset_that_turns_back", says_it, RLMD_ERROR_WORKER, "do not ascend", 1,
	 SUBSETS("\"[0,5,2,6,1]\"", "null")},
	{"subset_without_files", says_it, RLMD_ERROR_WORKER, "do not ascend", 1,
	 SUBSETS("\"[0,5,0]\"", "null")},
	{"subset_and_context", says_it, RLMD_ERROR_WORKER, "a context beside a subset", 1,
	 SUBSETS("\"[0,0,1]\"", "\"text\"")},
	{"function_that_is_not", says_it, RLMD_ERROR_WORKER, "'other', which is no function", 1,
	 CALLS("\"other\"", "\"{}\"")},
	{"function_of_a_number", says_it, RLMD_ERROR_WORKER, "a wrong 'name'", 1,
	 CALLS("7", "\"{}\"")},
	{"arguments_of_a_list", says_it, RLMD_ERROR_WORKER, "no JSON object", 1,
	 CALLS("\"lookup\"", "\"[]\"")},
	{"arguments_of_an_object", says_it, RLMD_ERROR_WORKER, "a wrong 'arguments'", 1,
	 CALLS("\"lookup\"", "{}")},
	{"arguments_twice", says_it, RLMD_ERROR_WORKER, "duplicate object key", 1,
	 CALLS("\"lookup\"", "\"{\\\"a\\\":1,\\\"a\\\":2}\"")},
	{"arguments_cut", says_it, RLMD_ERROR_WORKER, "'arguments': not JSON", 1,
	 CALLS("\"lookup\"", "\"{\"")},
	{"arguments_too_deep", says_it, RLMD_ERROR_WORKER, "nested more than", 1,
	 CALLS("\"lookup\"", "\"{\\\"a\\\":" DEEP "\"")},
	{"type_is_null", says_it, RLMD_ERROR_WORKER, "without a type", 1, "{\"type\":null}"},
	{"ready_again", says_it, RLMD_ERROR_WORKER, "'ready' out of turn", 1,
	 "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}"},
	{"started_again", says_it, RLMD_ERROR_WORKER, "'started' out of turn", 1,
	 "{\"type\":\"started\",\"error\":null,\"no_memory\":false}"},
	{"gives_orders", says_it, RLMD_ERROR_WORKER, "'exec' from the wrong side", 1,
	 "{\"type\":\"exec\",\"block\":1,\"code\":\"1\"}"},
	{"calls_before_it_stands", says_it_too_early, RLMD_ERROR_SANDBOX, "'budget' out of turn", 1,
	 "{\"type\":\"budget\",\"id\":1}"},
	{"nul_in_a_name", nul_in_a_name, RLMD_ERROR_WORKER, "a wrong 'model'", 1, NULL},
	{"a_million_nodes", a_million_nodes, RLMD_ERROR_WORKER, "broke the protocol", 1, NULL},
	{"too_many_nodes", too_many_nodes, RLMD_ERROR_WORKER, "an array of more elements", 1, "]}"},
	{"too_many_nodes_and_no_end", too_many_nodes, RLMD_ERROR_WORKER,
	 "an array of more elements", 1, ""},
	{"too_many_nodes_and_a_comma", too_many_nodes, RLMD_ERROR_WORKER,
	 "an array of more elements", 1, ","},
	{"too_many_members_and_no_end", says_it, RLMD_ERROR_WORKER, "a frame with more members", 1,
	 "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
	 "\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"o\":0,\"p\":0,\"q\":0"},
	{"many_keys", many_keys, RLMD_ERROR_WORKER, "broke the protocol", 1, NULL},
	{"million_digits", million_digits, RLMD_ERROR_WORKER, "broke the protocol", 1, NULL},
	{"byte_by_byte", byte_by_byte, RLMD_ERROR_WORKER, "not ended in its time", 1000, NULL},
};

/* One lie, told beside an honest worker, which does not notice. */
static void test_lie(void **state)
{
	const struct lie *lie = *state;
	struct stage stage;
	struct actor witness, liar;

	stage_init(&stage);
	actor_start(&witness, &stage, honest, NULL);
	actor_await(&witness, WORKER_READY, 1);
	/* A liar in a block gets all the time that a busy machine needs to come so far. */
	fake_clock_speed(lie->kind == RLMD_ERROR_WORKER ? 1 : lie->speed);
	said = lie->said;
	actor_start(&liar, &stage, lie->script, NULL);
	while (!liar.heard[WORKER_READY] && !liar.heard[WORKER_GONE])
		event_base_loop(stage.base, EVLOOP_ONCE);
	fake_clock_speed(lie->speed);
	if (liar.heard[WORKER_READY])
		actor_exec(&liar);
	actor_await(&liar, WORKER_GONE, 1);
	assert_int_equal(liar.error.kind, lie->kind);
	if (!strstr(liar.error.text, lie->text))
		fail_msg("'%s' does not say '%s'", liar.error.text, lie->text);
	assert_int_equal(liar.exit,
			 lie->script == cannot_load ? WORKER_EXIT_NO_MEMORY : WORKER_EXIT_DIED);
	assert_int_equal(error_stop(&liar.error), RLMD_STOP_SANDBOX_ERROR);
	actor_done(&liar);

	fake_clock_speed(1);
	actor_exec(&witness);
	actor_await(&witness, WORKER_DONE, 1);
	assert_string_equal(witness.printed, "fine");
	actor_done(&witness);
	stage_done(&stage);
}

/* The sweep of cancellation: whatever a worker does, it can be freed at each event of it. */
static void test_free_at_every_event(void **state)
{
	struct stage stage;
	struct actor actor;

	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		for (int at = 1, last = 2; at < last; at++) {
			stage_init(&stage);
			fake_clock_speed(100);
			said = lies[i].said;
			actor_start(&actor, &stage, lies[i].script, NULL);
			actor.free_at = at;
			while (actor.worker && !actor.heard[WORKER_GONE]) {
				event_base_loop(stage.base, EVLOOP_ONCE);
				if (actor.worker && actor.heard[WORKER_READY] == 1) {
					actor.heard[WORKER_READY]++;
					actor_exec(&actor);
				}
			}
			if (!actor.heard[WORKER_GONE])
				last++;
			actor_done(&actor);
			stage_done(&stage);
		}
	}
}

int main(void)
{
	struct CMUnitTest tests[sizeof lies / sizeof *lies + 1];
	size_t count = sizeof lies / sizeof *lies;

	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest){.name = lies[i].name,
					       .test_func = test_lie,
					       .initial_state = (void *)(uintptr_t)&lies[i]};
	tests[count] = (struct CMUnitTest)cmocka_unit_test(test_free_at_every_event);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("liars", tests, NULL, NULL);
}
