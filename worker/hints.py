"""Names that models invent, or know from other libraries: what is here instead of them.

A hint is a sentence behind a traceback. Names that mean one thing alone are aliases (aliases.py),
or imported (usual_names.py); those here may mean several, or need another call.
"""

import re

import missing

MODEL = "llm_query(prompt) asks a model, batch_llm_query(prompts) several prompts at once"
INPUT = "the input is the variable `context`"
PIECES = "chunk_text(context, size=10000) gives a list of pieces"
SEARCH = "search_context(pattern) finds a regular expression, count_matches(pattern) counts it"
FILES = ("context.files has the texts of an input made of files by their paths; tree(), "
         "find_files(), grep() and read_lines() work on them")
ANSWER = "FINAL(value) gives the answer, FINAL_VAR(\"name\") that of a variable"
BUDGET = "budget() tells what is left"
IS_TEXT = "llm_query() and rlm_query() give a str: use it as it is"
NO_FILE = "it is the text itself and no open file; .splitlines() gives its lines"
NO_DICT = "it is a str; where it holds JSON, json.loads() makes an object of it"

NAMES = {
    name: hint
    for names, hint in (
        ("ask ask_llm ask_model call_model chat client complete completion generate invoke_llm "
         "llm_chat llm_complete llm_generate lm lm_query model openai prompt_llm query_model "
         "run_llm sub_model sub_query submodel subquery", MODEL),
        ("call_rlm delegate recurse recursive_query rlm_call rlm_completion spawn sub_agent "
         "sub_rlm_query subagent",
         "rlm_query(task, ctx) gives a task to a sub-RLM, batch_rlm_query(tasks) several at once"),
        ("content contents context_1 corpus ctx data doc document documents full_text haystack "
         "input_1 input_data input_text long_text prompt raw raw_text source text", INPUT),
        ("head peek preview show_context view", "context[:2000] shows how the input begins"),
        ("tail", "context[-2000:] shows how the input ends"),
        ("all_lines lines log_lines", "context.splitlines() gives the lines"),
        ("chunk chunk_context chunk_document chunkify chunks get_chunks make_chunks partition "
         "split_chunks split_context split_into_chunks split_text", PIECES),
        ("find find_all find_in_context find_matches find_pattern grep_context regex_search "
         "search_document search_regex search_text", SEARCH),
        ("file_list files get_file get_files list_dir list_files ls open_file paths read_file",
         FILES),
        ("done end final final_result finish give_answer output_answer return_answer set_answer "
         "set_final_answer stop submit", ANSWER),
        ("budget_left get_budget remaining remaining_budget tokens_left usage", BUDGET),
        ("list_variables list_vars show_variables vars_list", "SHOW_VARS() lists the variables"),
    )
    for name in names.split()
}
PACKAGES = {"np": "numpy", "sp": "scipy", "scipy": "scipy", "plt": "matplotlib", "sns": "seaborn",
            "pd": "pandas", "pl": "polars"}
ATTRIBUTES = {
    name: hint
    for names, hint in (
        ("answer choices completion content data message messages output output_text response "
         "result text value", IS_TEXT),
        ("read readline readlines close seek", NO_FILE),
        ("get items json keys values", NO_DICT),
        ("files", "this input is one text, not made of files"),
    )
    for name in names.split()
}
NO_MEMORY = ("an input is not counted, but slices, copies and lists of its lines are, with 1, 2 or "
             "4 bytes for each character, as the widest one needs. re.finditer(), context.find(), "
             "context.files[path], grep() and read_lines() copy little; del frees what is done")
UNDEFINED = re.compile(r"name '(\w+)' is not defined")
NO_ATTRIBUTE = re.compile(r"'str' object has no attribute '(\w+)'")
NO_KEY = re.compile(r"string indices must be integers")


def of(error):
    """A sentence for an exception that the code of a block raised, or None."""
    kind = type(error)
    if kind is MemoryError:
        return None if error.args else NO_MEMORY
    if kind not in (NameError, AttributeError, TypeError):
        return None  # classes of the user's may do anything when they are asked for their text
    text = error.args[0] if error.args and type(error.args[0]) is str else ""
    if kind is NameError:
        found = UNDEFINED.match(text)
        return of_name(found.group(1)) if found else None
    if kind is AttributeError:
        found = NO_ATTRIBUTE.match(text)
        return ATTRIBUTES.get(found.group(1)) if found else None
    return NO_DICT if NO_KEY.match(text) else None


def of_name(name):
    if name in PACKAGES:
        package = PACKAGES[name]
        return f"{package} is not loaded here; in its place serves {missing.SERVES[package]}"
    return NAMES.get(name)
