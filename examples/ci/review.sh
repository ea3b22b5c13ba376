#!/bin/sh
# review.sh [BASE] - one `rlmd review` in a pipeline: a gate before anything is spent, the review,
# reports for whatever shows them, and an exit status for the pipeline (docs/ci.md).
#
# With BASE what has changed since the merge base of BASE and HEAD is reviewed, and only findings in
# changed lines can fail; without it the whole tree. A branch that is not here is fetched from the
# remote `origin`, and the rest of a shallow clone where there is no merge base in it. Everything
# else comes from the environment: rlmd's own settings (RLMD_MODEL, RLMD_MAX_COST, RLMD_CACHE, ...:
# see rlmd.conf(5)), the provider's key (OPENAI_API_KEY, ANTHROPIC_API_KEY), and
#
#   REVIEW_DIR        what to review (default: the current directory)
#   REVIEW_REPORTS    a directory for the reports, made where it is missing (default: rlmd-reports)
#   REVIEW_FAIL_ON    error, warning, note or none (default: error)
#   REVIEW_INCLUDE    of the tree only what matches: pathspecs of git, one a line (default: all)
#   REVIEW_EXCLUDE    nothing that matches, likewise (default: nothing)
#   REVIEW_EFFORT     quick or deep (default: neither; docs/ci.md)
#   REVIEW_RULES      a directory of rules (default: none)
#   REVIEW_BASELINE   a SARIF file whose findings are not new (default: none)
#   REVIEW_ABOUT      a file that describes the change (default: title and text of the pull or merge
#                     request, where GitHub or GitLab tells them), or `off`
#   REVIEW_GATE       `off` does not ask beforehand whether the review fits its budget
#   REVIEW_IF_BROKEN  `pass`: a review that could not be made fails nothing (default: fail)
#   REVIEW_PROGRAM    rlmd (default: the one in PATH)
set -eu

rlmd=${REVIEW_PROGRAM:-rlmd}
dir=${REVIEW_DIR:-.}
reports=${REVIEW_REPORTS:-rlmd-reports}
base=${1-}

# Whether a link of the checkout, whose files are a stranger's, leads somewhere else. What lies
# outside of it is the pipeline's own.
is_led_away() {
	path=${1#"$PWD"/}
	path=${path#"$(pwd -P)"/}
	case "$path" in
	/*) return 1 ;;
	esac
	while [ "$path" != . ]; do
		[ ! -L "$path" ] || return 0
		case "$path" in
		*/*) path=$(dirname -- "$path") ;;
		*) path=. ;;
		esac
	done
	return 1
}

# Neither reports nor cached answers are something to be reviewed.
keep_out() {
	if is_led_away "${1%/}"; then
		echo "review.sh: $1 is a symbolic link, or below one: nothing is written there" >&2
		exit 8
	fi
	mkdir -p -- "$1"
	rm -rf -- "$1/.gitignore"
	printf '*\n' >"$1/.gitignore"
}
keep_out "$reports"
# A report from before, or of the repository's own, is none of this review.
for report in output.txt about.txt rlmd.sarif rlmd-junit.xml rlmd-codequality.json rlmd.md; do
	rm -rf -- "${reports:?}/$report"
done
is_anothers() {
	[ -e "$1" ] && [ -z "$(find "$1" -prune -user "$(id -u)")" ]
}
if [ -n "${RLMD_CACHE-}" ] && is_anothers "$RLMD_CACHE"; then
	echo "review.sh: $RLMD_CACHE belongs to another user: no answer is kept" >&2
	unset RLMD_CACHE
fi
if [ -n "${RLMD_CACHE-}" ]; then
	keep_out "$RLMD_CACHE"
	chmod 700 -- "$RLMD_CACHE" # rlmd takes none that others may write, as services leave it
fi

# A checkout of a service has the base as a branch of its remote, or not at all, and often so few
# commits that none is common to both.
has_commit() {
	git -C "$dir" rev-parse --quiet --verify "$1^{commit}" >/dev/null
}
find_base() {
	if ! has_commit "$base"; then
		has_commit "origin/$base" || git -C "$dir" fetch --quiet origin \
			"+refs/heads/$base:refs/remotes/origin/$base" || return
		base=origin/$base
	fi
	git -C "$dir" merge-base "$base" HEAD >/dev/null ||
		[ "$(git -C "$dir" rev-parse --is-shallow-repository)" != true ] ||
		git -C "$dir" fetch --quiet --unshallow origin
}
broken=
[ -z "$base" ] || find_base || broken=8

# Options of both the gate and the review.
set -- --fail-on "${REVIEW_FAIL_ON:-error}"
[ -z "$base" ] || set -- "$@" --diff "$base...HEAD" --only-changed-lines
# What its author says of the change, for a review of one.
describe() {
	if [ -n "${GITHUB_EVENT_PATH-}" ]; then
		python3 -I -c 'import json, sys
request = json.load(open(sys.argv[1], encoding="utf-8")).get("pull_request") or {}
sys.stdout.buffer.write("\n\n".join(request.get(part) or "" for part in ("title", "body"))
                        .encode("utf-8", "replace"))' "$GITHUB_EVENT_PATH"
	elif [ -n "${CI_MERGE_REQUEST_TITLE-}" ]; then
		printf '%s\n\n%s\n' "$CI_MERGE_REQUEST_TITLE" "${CI_MERGE_REQUEST_DESCRIPTION-}"
	fi
}
about=${REVIEW_ABOUT-}
if [ -z "$about" ] && [ -n "$base" ]; then
	about=$reports/about.txt
	if ! describe >"$about" 2>/dev/null || [ ! -s "$about" ]; then
		rm -f -- "$about"
		about=off
	fi
fi
case "$about" in
'' | off) ;;
*) set -- "$@" --about "$about" ;;
esac
[ -z "${REVIEW_EFFORT-}" ] || set -- "$@" "--$REVIEW_EFFORT"
[ -z "${REVIEW_RULES-}" ] || set -- "$@" --rules "$REVIEW_RULES"
fields=$IFS
IFS='
'
set -f
for pattern in ${REVIEW_INCLUDE-}; do set -- "$@" --include "$pattern"; done
for pattern in ${REVIEW_EXCLUDE-}; do set -- "$@" --exclude "$pattern"; done
set +f
IFS=$fields
[ -z "${REVIEW_BASELINE-}" ] || set -- "$@" --baseline "$REVIEW_BASELINE"

# A runner of GitHub takes lines of any output for commands; none of a review may be one. What it
# should take for commands, the annotations, rlmd has escaped: they come last, by themselves.
commands=
if [ "${GITHUB_ACTIONS-}" = true ]; then
	commands=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	set -- "$@" --github
fi
quietly() {
	[ -z "$commands" ] || echo "::stop-commands::$commands"
	status=0
	"$@" >"$reports/output.txt" || status=$?
	[ -z "$commands" ] || echo "::$commands::"
}

if [ -n "$broken" ]; then
	status=$broken
elif [ "${REVIEW_GATE-}" = off ]; then
	status=0
else
	quietly "$rlmd" review --dry-run --strict "$@" -- "$dir"
fi
if [ "$status" -eq 0 ]; then
	quietly "$rlmd" review --sarif "$reports/rlmd.sarif" --junit "$reports/rlmd-junit.xml" \
		--gitlab "$reports/rlmd-codequality.json" --markdown "$reports/rlmd.md" \
		"$@" -- "$dir"
	case "$status" in
	0 | 3) cat -- "$reports/output.txt" ;;
	esac
fi

case "$status" in
0 | 3) ;; # reviewed; 3: findings that fail
2 | 130 | 143) ;; # a mistake in the pipeline itself, or it was cancelled
*)
	echo "review.sh: there is no review: status $status (docs/ci.md tells why)" >&2
	[ "${REVIEW_IF_BROKEN-}" != pass ] || exit 0
	;;
esac
exit "$status"
