"""Modules that are not here: what an import of one says.

Nothing can be installed in a sealed worker. The model is told so, with what there is and what
serves instead. The supervisor is told the name (`missing` of `done`), and tells the user of
--preload.
"""

import os
import sys

# Modules that models think our functions are in.
OURS = frozenset("""
    api context default_api environment functions helpers llm llm_tools llm_utils my_tools repl
    rlm_env rlm_tools rlm_utils sandbox session tools utils
    """.split())

INSTALLED_MAX = 20000  # entries of a site-packages that are looked at
NAME_MAX = 64          # characters of a name that the supervisor is told

TABLES = (
    "csv.DictReader(io.StringIO(context)) with collections and statistics, or sqlite3 in ':memory:'"
)
NUMBERS = "math, statistics, fractions, random and array"
WEB = "nothing: there is no network, and the input is in `context`"
MARKUP = "html.parser, xml.etree.ElementTree and re"
PICTURES = "printed numbers and tables: nobody sees a picture"
WORDS = "re, collections.Counter and difflib; llm_query() for meaning"
MODELS = "llm_query() and batch_llm_query()"
NOTHING_INSTALLS = "nothing: no package can be installed or asked for here"
SERVES = {
    **dict.fromkeys(["pandas", "polars", "openpyxl", "xlrd", "pyarrow", "duckdb"], TABLES),
    **dict.fromkeys(["numpy", "scipy", "sympy", "sklearn", "statsmodels", "networkx"], NUMBERS),
    **dict.fromkeys(["requests", "httpx", "aiohttp", "urllib3", "selenium", "boto3"], WEB),
    **dict.fromkeys(["bs4", "lxml", "html5lib", "markdown"], MARKUP),
    **dict.fromkeys(["matplotlib", "seaborn", "plotly", "PIL", "IPython"], PICTURES),
    **dict.fromkeys(["nltk", "spacy", "textblob", "rapidfuzz", "fuzzywuzzy", "Levenshtein"], WORDS),
    **dict.fromkeys(["openai", "anthropic", "litellm", "langchain", "transformers", "torch",
                     "dspy", "rlm", "ollama"], MODELS),
    **dict.fromkeys(["pip", "pkg_resources", "setuptools", "ensurepip", "conda"], NOTHING_INSTALLS),
    "dateutil": "datetime.fromisoformat(), datetime.strptime() and zoneinfo",
    "pytz": "zoneinfo",
    "tzdata": "zoneinfo",
    "regex": "re",
    "tqdm": "a plain loop",
    "tabulate": "f-strings with widths, as f'{name:20}'",
    "yaml": "json, configparser, tomllib or re, by what the text is",
    "toml": "tomllib",
    "ujson": "json",
    "orjson": "json",
    "simplejson": "json",
    "chardet": "text.encode('utf-8', 'surrogateescape').decode(ENCODING)",
    "tiktoken": "len(text) // 4 as an estimate of tokens",
    "dotenv": NOTHING_INSTALLS,
    "psutil": "os.cpu_count(), time and resource",
}


def installed(executable=None, prefix=None):
    """The names that can be preloaded: what stands in the site-packages of this interpreter."""
    names = set()
    for directory in site_packages(executable or sys.executable, prefix or sys.prefix):
        try:
            entries = os.listdir(directory)
        except OSError:
            continue
        for entry in entries[:INSTALLED_MAX]:
            stem, _dot, suffix = entry.partition(".")
            if stem.isidentifier() and not entry.endswith((".pth", ".egg-info", ".dist-info")):
                if not suffix or suffix == "py" or suffix.endswith("so"):
                    names.add(stem)
    return names - {"__pycache__"}


def site_packages(executable, prefix):
    """Where packages may be, found without `site`: the interpreter starts without it mostly."""
    version = "python{}.{}".format(*sys.version_info)
    places = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    venv = os.path.dirname(os.path.dirname(executable or ""))
    prefixes = [prefix]
    if os.path.exists(os.path.join(venv, "pyvenv.cfg")):
        prefixes = [venv]
    elif prefix == "/usr":
        places += ["/usr/lib/python3/dist-packages", f"/usr/local/lib/{version}/dist-packages"]
    return places + [os.path.join(one, "lib", version, "site-packages") for one in prefixes]


class Missing:
    """The last finder of sys.meta_path: it finds nothing, and says so to the code of a block."""

    def __init__(self, preloaded=(), names=()):
        self._preloaded = list(preloaded)
        self._installed = frozenset(names)

    def find_spec(self, name, path=None, target=None):
        if path is None and asked_by_a_block():
            error = ModuleNotFoundError(self.describe(name), name=name)
            error.nothing_installs = not left_out(name) and not self._is_ours(name)
            raise error
        return None

    def _is_ours(self, name):
        return name in OURS and name not in self._installed

    def describe(self, name):
        if left_out(name):
            return f"No module named {name!r}: this part of the standard library is left out here"
        if self._is_ours(name):
            return (f"No module named {name!r}: the functions of this session are there without an "
                    "import; help(llm_query) tells of one")
        there = "the standard library"
        if self._preloaded:
            there += ", and preloaded: " + ", ".join(self._preloaded)
        text = f"No module named {name!r}: nothing can be installed here. There is {there}"
        if name in SERVES:
            text += f". In place of {name} serves {SERVES[name]}"
        if name in self._installed:
            text += (
                f". ({name} is on the machine but was not loaded when this session began, and "
                "cannot be loaded now)"
            )
        return text


def left_out(name):
    """Whether a part of the standard library is called so."""
    return name in getattr(sys, "stdlib_module_names", ())


def wanted(error):
    """The name of the module that could only be preloaded, whose import has failed with `error`."""
    if type(error) is not ModuleNotFoundError or not vars(error).get("nothing_installs"):
        return None
    name = error.name
    return name if type(name) is str and len(name) <= NAME_MAX and name.isascii() else None


def asked_by_a_block():
    """Whether an import statement of the user's code, or what it calls of importlib, led here."""
    frame = sys._getframe(2)
    imports = False
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if not module.startswith(("importlib", "_frozen_importlib")):
            break
        imports = imports or frame.f_code.co_name == "_find_and_load_unlocked"
        frame = frame.f_back
    return imports and frame is not None and frame.f_code.co_filename.startswith("<block ")
