/*
 * A program that stands for a Python interpreter which does not start as it should. Its name says
 * how: "dies" or "hangs" do so always, "dies-once" and "hangs-once" the first time only.
 * NAME.python beside it is a link to the interpreter that it becomes then, NAME.tried what it
 * leaves behind. "says" takes the template's part: each line of NAME.words is a message of its
 * own, but for "refuse" and "mistake", which answer the next request: that it could not be met,
 * and what nobody asked for; and for "fallen" and "unwatched", which make the worker of a trial:
 * one that reports a wall that does not stand, and one whose use of resources cannot be told.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

/* The request of a trial; in `ret_out` the descriptor to which its worker reports. */
static struct launch_request await_trial(int *ret_out)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_OWN_FDS * sizeof(int))];
	struct launch_request request = {0};
	struct iovec bytes = {&request, sizeof request};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	ssize_t got;

	do {
		message.msg_control = space;
		message.msg_controllen = sizeof space;
		got = recvmsg(LAUNCH_CONTROL, &message, MSG_CMSG_CLOEXEC);
	} while (got > 0 && got != (ssize_t)sizeof request);
	if (got > 0)
		memcpy(ret_out, CMSG_DATA(CMSG_FIRSTHDR(&message)) + 2 * sizeof *ret_out,
		       sizeof *ret_out);
	return request;
}

static void reply_with(const struct launch_request *request, long pid, int pidfd)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof pidfd)] = {0};
	struct launch_reply reply = {.sequence = request->sequence, .pid = (int32_t)pid};
	struct iovec bytes = {&reply, sizeof reply};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = sizeof space};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof pidfd);
	memcpy(CMSG_DATA(header), &pidfd, sizeof pidfd);
	(void)!sendmsg(LAUNCH_CONTROL, &message, 0);
}

/* Its worker has all layers that are wanted, by its own word, and refused no step. */
static void try_worker(int32_t fallen)
{
	int out = -1, pidfd = -1;
	struct launch_request request = await_trial(&out);
	struct launch_trial report = {.layers = request.layers, .fallen = fallen};
	long child = syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD, NULL, &pidfd, NULL, NULL);

	if (!child) {
		(void)!write(out, &report, sizeof report);
		for (;;)
			pause();
	}
	reply_with(&request, child, pidfd);
}

static void say(const char *line)
{
	static struct launch_request request;
	struct launch_reply reply = {.error = EAGAIN};

	if (!strcmp(line, "fallen") || !strcmp(line, "unwatched")) {
		try_worker(*line == 'f' ? WALL_landlock : -1);
		return;
	}
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
