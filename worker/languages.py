"""The language of a file, by its name; and the files to read first."""

SUFFIXES = {
    "Assembly": "s asm",
    "C": "c h",
    "C#": "cs",
    "C++": "cc cpp cxx c++ hh hpp hxx h++ ipp",
    "CSS": "css scss sass less",
    "Clojure": "clj cljs cljc edn",
    "Dart": "dart",
    "Elixir": "ex exs",
    "Erlang": "erl hrl",
    "Fortran": "f f77 f90 f95 f03",
    "Go": "go",
    "HTML": "html htm xhtml",
    "Haskell": "hs lhs",
    "JSON": "json jsonl json5",
    "Java": "java",
    "JavaScript": "js jsx mjs cjs",
    "Julia": "jl",
    "Kotlin": "kt kts",
    "Lua": "lua",
    "Markdown": "md markdown mdx",
    "OCaml": "ml mli",
    "Objective-C": "m mm",
    "PHP": "php",
    "Perl": "pl pm",
    "PowerShell": "ps1 psm1",
    "Protocol Buffers": "proto",
    "Python": "py pyi pyx",
    "R": "r",
    "Ruby": "rb rake gemspec",
    "Rust": "rs",
    "SQL": "sql",
    "Scala": "scala sbt",
    "Shell": "sh bash zsh ksh bats",
    "Swift": "swift",
    "TOML": "toml",
    "TypeScript": "ts tsx mts cts",
    "Vue": "vue",
    "XML": "xml xsl xsd svg",
    "YAML": "yaml yml",
    "Zig": "zig",
    "gettext": "po pot",
    "plain text": "txt",
    "reStructuredText": "rst",
}
OF_SUFFIX = {suffix: name for name, all in SUFFIXES.items() for suffix in all.split()}
OF_NAME = {
    "makefile": "Make", "gnumakefile": "Make", "cmakelists.txt": "CMake", "meson.build": "Meson",
    "dockerfile": "Docker", "containerfile": "Docker", "rakefile": "Ruby", "gemfile": "Ruby",
    "go.mod": "Go modules", "jenkinsfile": "Groovy", "build": "Bazel", "build.bazel": "Bazel",
}

# Files that tell what the whole is and where it begins, the best first.
ENTRIES = """
readme readme.md readme.rst readme.txt contributing.md architecture.md
pyproject.toml setup.py setup.cfg
package.json cargo.toml go.mod pom.xml build.gradle build.gradle.kts composer.json gemfile
meson.build cmakelists.txt makefile configure.ac dockerfile docker-compose.yml
__main__.py main.py app.py manage.py cli.py main.go main.rs lib.rs main.c main.cc main.cpp
main.java index.js index.ts main.js main.ts app.js app.ts server.js mod.ts main.rb program.cs
""".split()
SAME_MAX = 3  # of one name
RANK = {name: rank for rank, name in enumerate(ENTRIES)}


def language_of(path):
    """The name of the language, or None."""
    name = path.rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    if name in OF_NAME:
        return OF_NAME[name]
    return OF_SUFFIX.get(suffix) if dot and stem else None


def entries(paths, most):
    """Those to be read first: few folders deep, and of telling names; three of one name."""
    found, of_name, chosen = [], {}, []
    for path in paths:
        name = path.rpartition("/")[2].lower()
        if name in RANK:
            found.append((path.count("/"), RANK[name], path, name))
    for _depth, _rank, path, name in sorted(found):
        of_name[name] = of_name.get(name, 0) + 1
        if of_name[name] <= SAME_MAX and len(chosen) < most:
            chosen.append(path)
    return chosen
