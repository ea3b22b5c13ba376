/*
 * A program that stands for a Python interpreter which does not start as it should. Its name says
 * how: "dies" or "hangs" do so always, "dies-once" and "hangs-once" the first time only.
 * NAME.python beside it is a link to the interpreter that it becomes then, NAME.tried what it
 * leaves behind. "says" takes the template's part: each line of NAME.words is a message of its
 * own, but for "refuse" and "mistake", which answer the next request: that it could not be met,
 * and what nobody asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/launch.h"

static struct launch_request await_request(void)
{
	struct launch_request request = {0};
	ssize_t got;

	do
		got = recv(LAUNCH_CONTROL, &request, sizeof request, 0);
	while (got > 0 && got != (ssize_t)sizeof request);
	return request;
}

static void say(const char *line)
{
	static struct launch_request request;
	struct launch_reply reply = {.error = EAGAIN};

	if (strcmp(line, "refuse") && strcmp(line, "mistake")) {
		(void)!write(LAUNCH_CONTROL, line, strlen(line));
		return;
	}
	if (!request.sequence)
		request = await_request();
	reply.sequence = request.sequence + (*line == 'm');
	(void)!write(LAUNCH_CONTROL, &reply, sizeof reply);
}

/* Until the supervisor closes the socket, or ends it. */
static int say_all(const char *path)
{
	FILE *words = fopen(path, "re");
	char line[LAUNCH_TEXT_MAX];

	while (words && fgets(line, sizeof line, words)) {
		line[strcspn(line, "\n")] = '\0';
		say(line);
	}
	while (recv(LAUNCH_CONTROL, line, sizeof line, 0) > 0)
		continue;
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	char path[PATH_MAX], python[PATH_MAX] = "";

	if (!argc || !name)
		return 1;
	snprintf(path, sizeof path, "%s.words", argv[0]);
	if (!strcmp(name, "/says"))
		return say_all(path);
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
