"""G6: nothing of the supervisor's environment, arguments or keys is in a worker."""

from attempts import Group

GROUP = Group("secrets", "--worker-memory", "512M")

GROUP.add("environment", "held", """
known = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "HOME", "TZ", "PWD",
         "PYTHONUTF8", "PYTHONMALLOC", "MALLOC_ARENA_MAX"}
suspicious = [name for name in os.environ if name.startswith(("RLMD_", "OPENAI", "ANTHROPIC", "OLLAMA", "ESCAPE"))]
check(len(os.environ) <= 12 and not suspicious, dict(os.environ))
""")

GROUP.add("environment_of_c", "held", """
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
here, i = [], 0
while environ[i]:
    here.append(environ[i])
    i += 1
check(len(here) <= 12 and not libc.getenv(b"OPENAI_API_KEY"), here)
""")

GROUP.add("arguments", "held", """
argc, argv = ctypes.c_int(), ctypes.POINTER(ctypes.c_wchar_p)()
ctypes.pythonapi.Py_GetArgcArgv(ctypes.byref(argc), ctypes.byref(argv))
arguments = [argv[i] for i in range(argc.value)] + sys.argv + getattr(sys, "orig_argv", [])
check(not any(word in " ".join(arguments) for word in ("exec", "replay", "--key", "sk-")), arguments)
""")

GROUP.add("the_whole_memory", "held", "memory_lacks(*FACTS['secrets'])")

GROUP.add("the_whole_memory_again_after_calls", "held", """
llm_query("quick")
memory_lacks(*FACTS["secrets"])
""")

GROUP.add("the_stacks_top", "held", """
# Where the kernel put arguments and environment when the program was started.
libc.getauxval.restype = ctypes.c_ulong
name = libc.getauxval(31)  # AT_EXECFN
top = ctypes.string_at(name) if name else b""
check(b"python" in top, top)
""")

GROUP.add("the_heap_of_python", "held", """
import gc
gc.unfreeze()
patterns = [re.compile(pattern) for pattern in FACTS["secrets"]]
texts = [each for item in gc.get_objects() for each in gc.get_referents(item)]
texts = [each for each in texts if isinstance(each, (str, bytes))]
texts = [each if isinstance(each, str) else each.decode("latin-1") for each in texts]
found = [text for text in texts if any(pattern.search(text) for pattern in patterns)]
check(len(texts) > 1000 and not found, (len(texts), found))
""")

GROUP.add("hidden_in_errors", "held", """
try:
    llm_query("fails")
except Exception as error:
    text = repr(error) + repr(vars(error)) + repr(error.__cause__) + repr(error.__context__)
    check(not any(re.search(pattern, text) for pattern in FACTS["secrets"]), text)
else:
    print("held")
""")
