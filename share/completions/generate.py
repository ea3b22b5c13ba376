#!/usr/bin/env python3
"""Makes the completions of bash, zsh and fish out of the tables of commands and options.

generate.py SHELL commands.def options.def OUTPUT
"""

import re
import sys

TEXT = r'"((?:[^"\\]|\\.)*)"'
COMMAND = re.compile(rf"^COMMAND\((\w+), (\w+), {TEXT}, {TEXT},", re.M)
OPTION = re.compile(rf"^OPTION\((\w+),\s*(\w+),\s*\w+,\s*([A-Z| ]+?),\s*(?:0|'(.)'),\s*{TEXT},"
                    rf"\s*(?:NULL|{TEXT}),.*?\n\s+{TEXT}\)", re.M)
DIRECTORIES = {"DIR"}
FILES = {"FILE", "OUT", "PATH", "SRC", "STORE", "FILE|[ADDRESS]:PORT"}


class Option:
    def __init__(self, row):
        _, self.type, commands, self.letter, self.name, self.argument, self.help = row
        self.commands = set(re.findall(r"\w+", commands))
        self.takes = self.type not in ("SWITCH", "TALLY")

    def is_of(self, command):
        return bool({command, "ALL"} & self.commands)

    @property
    def words(self):
        """--name and -l."""
        return [f"--{self.name}"] + ([f"-{self.letter}"] if self.letter else [])

    @property
    def kind(self):
        """What stands behind it: its choices, "directories", "files" or "" (any word)."""
        if self.type == "CHOICE":
            return self.argument.split("|")
        if self.argument in DIRECTORIES:
            return "directories"
        return "files" if self.argument in FILES else ""


def read(commands, options):
    with open(commands, encoding="utf-8") as file:
        commands = [(name, id, help) for name, id, _, help in COMMAND.findall(file.read())]
    with open(options, encoding="utf-8") as file:
        options = [Option(row) for row in OPTION.findall(file.read())]
    return commands, options


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def lines(words):
    """As bash has a text of several lines."""
    return "$'" + "\\n".join(words) + "'"


def bash(commands, options):
    rows, values = [], []
    for name, id, _ in commands:
        words = [word for option in options if option.is_of(id) for word in option.words]
        rows.append(f"\t{name}) options={lines(words)} ;;")
        for option in options:
            if option.is_of(id) and option.takes:
                pattern = "|".join(f"{name}{word}" for word in option.words)
                kind = option.kind
                does = (f"COMPREPLY=($(compgen -W {lines(kind)} -- \"$word\"))"
                        if isinstance(kind, list)
                        else "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))"
                        if kind == "directories"
                        else "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))"
                        if kind else ":")
                values.append(f"\t{pattern}) {does}; return ;;")
    names = lines([*(name for name, _, _ in commands), "--help", "--version"])
    return f"""# bash completion of rlmd(1), made from its table of options.
_rlmd()
{{
	local IFS=$'\\n' word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
	local command=${{COMP_WORDS[1]}} options
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W {names} -- "$word"))
		return
	fi
	if [ "$word" = = ]; then
		word=
	elif [ "$before" = = ]; then
		before=${{COMP_WORDS[COMP_CWORD - 2]}}
	fi
	case $command$before in
{chr(10).join(values)}
	esac
	case $command in
{chr(10).join(rows)}
	*) return ;;
	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
	*)
		compopt -o filenames
		COMPREPLY=($(compgen -f -- "$word"))
		;;
	esac
}}
complete -F _rlmd rlmd
"""


def zsh_option(option):
    help = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    spec = f"[{help}]"
    if option.takes:
        kind = option.kind
        does = (f"({' '.join(kind)})" if isinstance(kind, list) else
                "_files -/" if kind == "directories" else "_files" if kind else " ")
        spec += f":{option.argument.lower().replace(':', chr(92) + ':')}:{does}"
    equals = "=" if option.takes else ""
    return [quoted(f"*{word}{equals if word.startswith('--') else ''}{spec}")
            for word in option.words]


def zsh(commands, options):
    names = "\n".join(f"\t\t{quoted(name + ':' + help)}" for name, _, help in commands)
    cases = []
    for name, id, _ in commands:
        specs = [spec for option in options if option.is_of(id) for spec in zsh_option(option)]
        cases.append(f"\t{name})\n\t\t_arguments -S \\\n\t\t\t"
                     + " \\\n\t\t\t".join(specs + ["'*:file:_files'"]) + "\n\t\t;;")
    return f"""#compdef rlmd
# zsh completion of rlmd(1), made from its table of options.
_rlmd()
{{
	local -a commands
	commands=(
{names}
	)
	if (( CURRENT == 2 )); then
		_describe -t commands command commands
		return
	fi
	local command=$words[2]
	shift words
	(( CURRENT-- ))
	case $command in
{chr(10).join(cases)}
	esac
}}
_rlmd "$@"
"""


def fish(commands, options):
    rows = ["# fish completion of rlmd(1), made from its table of options.",
            "complete -c rlmd -n __fish_use_subcommand -f"]
    for name, _, help in commands:
        rows.append(f"complete -c rlmd -n __fish_use_subcommand -a {name} -d {quoted(help)}")
    for option in options:
        of = " ".join(name for name, id, _ in commands if option.is_of(id))
        row = (f"complete -c rlmd -n '__fish_seen_subcommand_from {of}' -l {option.name}"
               f"{' -s ' + option.letter if option.letter else ''} -d {quoted(option.help)}")
        kind = option.kind
        if isinstance(kind, list):
            row += f" -x -a {quoted(' '.join(kind))}"
        elif kind == "directories":
            row += " -x -a '(__fish_complete_directories)'"
        elif option.takes:
            row += " -r -F" if kind else " -x"
        rows.append(row)
    return "\n".join(rows) + "\n"


def main(shell, commands, options, output):
    made = {"bash": bash, "zsh": zsh, "fish": fish}[shell](*read(commands, options))
    with open(output, "w", encoding="utf-8") as file:
        file.write(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
