#include "sandbox/python.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/wait.h"
#include "sandbox/child.h"
#include "sandbox/program.h"

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Without PATH in the places of execvp(3). */
static char *search_path(const char *name)
{
	const char *path = getenv("PATH"), *rest = path ? path : _PATH_DEFPATH;
	size_t length;

	for (; *rest; rest += length + (rest[length] == ':')) {
		auto_free char *candidate = NULL;

		length = strcspn(rest, ":");
		if (!length || *rest != '/')
			continue; /* the current directory is no place for programs */
		candidate = xasprintf("%.*s/%s", (int)length, rest, name);
		if (is_program(candidate))
			return take_pointer(&candidate);
	}
	return NULL;
}

static char *absolute_path(const char *name)
{
	auto_free char *here = *name == '/' ? NULL : realpath(".", NULL);

	return here ? xasprintf("%s/%s", here, name) : xstrdup(name);
}

enum content { CONTENT_ELF, CONTENT_SCRIPT, CONTENT_OTHER };

static enum content content_of(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char magic[SELFMAG] = "";

	/* A file that may be executed but not read is left to the kernel's judgement. */
	if (fd < 0)
		return errno == EACCES ? CONTENT_ELF : CONTENT_OTHER;
	if (read(fd, magic, sizeof magic) >= 2 && magic[0] == '#' && magic[1] == '!')
		return CONTENT_SCRIPT;
	return memcmp(magic, ELFMAG, SELFMAG) ? CONTENT_OTHER : CONTENT_ELF;
}

/* A shim needs to know whose versions it chooses from, and nothing else of our environment. */
static const char **shim_environment(void)
{
	static const char *const wanted[] = {
		"HOME=",  "PATH=", "USER=", "LOGNAME=", "SHELL=",       "LANG=",  "XDG_",
		"PYENV_", "ASDF_", "MISE_", "RTX_",     "VIRTUAL_ENV=", "CONDA_", "PYTHONHOME="};
	size_t count = 0, have = 0, i;
	char **entry;
	const char **kept;

	while (environ[count])
		count++;
	kept = xcalloc(count + 1, sizeof *kept);
	for (entry = environ; *entry; entry++)
		for (i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
			if (!strncmp(*entry, wanted[i], strlen(wanted[i])))
				kept[have++] = *entry;
	return kept;
}

/* One line of a script's output, until its end or the deadline. Says whether it came in time. */
static bool read_answer(int fd, int64_t patience_ms, char *out, size_t out_size)
{
	int64_t deadline = clock_ms() + patience_ms;
	size_t have = 0;

	for (;;) {
		ssize_t got;

		if (wait_for(fd, POLLIN, deadline, 0) != WAIT_READY)
			return false;
		got = read(fd, out + have, out_size - 1 - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0)
			have += (size_t)got;
		out[have] = '\0';
		out[strcspn(out, "\n")] = '\0';
		if (got <= 0 || have == out_size - 1)
			return true;
	}
}

static pid_t start_script(const char *path, int out, int complaints, struct rlmd_error *err)
{
	static const char question[] = "import sys; print(sys.executable)";
	const char *argv[] = {path, "-I", "-S", "-c", question, NULL};
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_free const char **envp = shim_environment();
	struct program program = {path, argv, envp, {null, out, complaints, -1}};

	if (null < 0) {
		error_errno(err, RLMD_ERROR_SANDBOX, "/dev/null");
		return -1;
	}
	return program_start(&program, err);
}

/* NULL, and `ret_again` where it was slow or killed: the same script may do better. */
static char *ask_script(const char *path, int64_t patience_ms, bool *ret_again,
			struct rlmd_error *err)
{
	auto_close int complaints = program_complaints(err), receiving = -1, sending = -1;
	char answer[PATH_MAX] = "", complaint[256], time[16];
	int ends[2];
	pid_t child;
	bool in_time, killed;
	int status;

	if (complaints < 0)
		return NULL;
	if (pipe2(ends, O_CLOEXEC)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "pipe");
		return NULL;
	}
	receiving = ends[0];
	sending = ends[1];
	child = start_script(path, sending, complaints, err);
	if (child < 0)
		return NULL;
	close(take_fd(&sending));
	in_time = read_answer(receiving, patience_ms, answer, sizeof answer);
	kill(-child, SIGKILL); /* the session: what a script started goes with it */
	child_end(child, clock_ms() + CHILD_END_MS, &status);
	killed = in_time && !*answer && WIFSIGNALED(status);

	if (in_time && *answer == '/' && is_program(answer) && content_of(answer) == CONTENT_ELF)
		return xstrdup(answer);
	program_complaint(complaints, complaint, sizeof complaint);
	clock_format(patience_ms, time);
	*ret_again = !in_time || killed;
	error_set(err, *ret_again ? RLMD_ERROR_SANDBOX : RLMD_ERROR_USAGE,
		  "%s is a script that %s%s%s%s; give its path (python)", path,
		  !in_time ? "did not say which Python it is for within "
		  : killed ? "was killed before it said which Python it is for"
			   : "does not say which Python it is for",
		  in_time ? "" : time, *complaint ? ": " : "", complaint);
	return NULL;
}

static char *ask_script_twice(const char *path, int64_t patience_ms, struct rlmd_error *err)
{
	bool again = false;
	char *python = ask_script(path, patience_ms, &again, err);

	return again ? ask_script(path, 2 * patience_ms, &again, err) : python;
}

char *python_find(const char *name, int64_t patience_ms, struct rlmd_error *err)
{
	auto_free char *path = strchr(name, '/') ? absolute_path(name) : search_path(name);

	if (!path || !is_program(path)) {
		error_set(err, RLMD_ERROR_USAGE,
			  "there is no Python %s %s; name one by its path (python)",
			  strchr(name, '/') ? "at" : "in PATH by the name of", name);
		return NULL;
	}
	switch (content_of(path)) {
	case CONTENT_ELF:
		return take_pointer(&path);
	case CONTENT_SCRIPT:
		return ask_script_twice(path, patience_ms, err);
	case CONTENT_OTHER:
		break;
	}
	error_set(err, RLMD_ERROR_USAGE,
		  "%s is not a program for this machine; name one by its path (python)", path);
	return NULL;
}

char *python_version(const char *path)
{
	static const char stem[] = "python";
	char file[PATH_MAX];
	const char *version;

	if (!realpath(path, file) || !(version = strrchr(file, '/')) ||
	    strncmp(++version, stem, sizeof stem - 1) != 0)
		return NULL;
	version += sizeof stem - 1;
	if (strspn(version, "0123456789.") != strlen(version) || !strchr(version, '.'))
		return NULL;
	return xstrdup(version);
}
