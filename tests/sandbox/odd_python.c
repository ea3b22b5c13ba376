/*
 * A program that stands for a Python interpreter which does not start as it should. Its name says
 * how: "dies" or "hangs" do so always, "dies-once" and "hangs-once" the first time only.
 * NAME.python beside it is a link to the interpreter that it becomes then, NAME.tried what it
 * leaves behind.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	char path[PATH_MAX], python[PATH_MAX] = "";

	if (!argc || !name)
		return 1;
	snprintf(path, sizeof path, "%s.tried", argv[0]);
	if (!strstr(name, "-once") || open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) {
		if (!strncmp(name, "/dies", 5))
			raise(SIGKILL);
		for (;;)
			pause();
	}
	snprintf(path, sizeof path, "%s.python", argv[0]);
	if (readlink(path, python, sizeof python - 1) <= 0)
		return 1;
	argv[0] = python;
	execv(python, argv);
	return 1;
}
