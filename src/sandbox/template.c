#include "sandbox/template.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "sandbox/program.h"

#define GREET_TIME_MS 10000
#define LOAD_TIME_MS  60000

enum template_state { STATE_STARTING, STATE_LOADING, STATE_SERVING, STATE_GONE };

struct template
{
	const struct template_config *config; /* lent */
	struct event *readable, *writable;    /* owned: the control socket */
	struct event *deadline;               /* owned: for getting ready */
	int control;                          /* owned */
	int complaints;                       /* owned: its standard error */
	pid_t pid;                            /* 0 after it was reaped */
	enum template_state state;
	struct error reason; /* of its end */

	template_event_fn *fn;
	void *owner;
};

/* One datagram, with the descriptor that came along, or -1. */
struct datagram {
	union {
		char text[LAUNCH_TEXT_MAX];
		struct launch_reply reply;
	};
	ssize_t size; /* 0 at the end; -1 and errno */
	int fd;       /* owned */
};

static void template_emit(struct template *template, const struct template_event *event)
{
	template->fn(template->owner, event);
}

/* Ends the process, whatever it was doing. Returns its status as of waitpid(). */
static int template_reap(struct template *template)
{
	int status = 0;

	if (!template->pid)
		return 0;
	kill(template->pid, SIGKILL); /* not reaped yet, so the pid is still its own */
	while (waitpid(template->pid, &status, 0) < 0 && errno == EINTR)
		;
	template->pid = 0;
	return status;
}

/* Takes the process out; `reason` was set, or its last words become the reason. */
static void template_end(struct template *template)
{
	const char *python = template->config->python;
	bool young = template->state == STATE_STARTING;
	char words[sizeof template->reason.text - 128];
	int status = template_reap(template);

	template->state = STATE_GONE;
	event_del(template->readable);
	event_del(template->writable);
	event_del(template->deadline);
	if (template->reason.kind)
		return;
	program_complaint(template->complaints, words, sizeof words);
	error_set(&template->reason, young ? ERROR_USAGE : ERROR_SANDBOX, "%s ended %s (%s %d)%s%s",
		  python, young ? "at its start" : "unexpectedly",
		  WIFSIGNALED(status) ? "signal" : "status",
		  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), *words ? ": " : "",
		  words);
}

static void template_gone(struct template *template)
{
	template_end(template);
	template_emit(template,
		      &(struct template_event){.kind = TEMPLATE_GONE, .reason = &template->reason});
}

static void take_descriptors(struct msghdr *message, int *ret_fd)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t i, count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
			if (*ret_fd < 0)
				*ret_fd = fd;
			else
				close(fd);
		}
	}
}

static void datagram_receive(int control, struct datagram *datagram)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))];
	struct iovec bytes = {datagram->text, sizeof datagram->text};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};

	datagram->fd = -1;
	datagram->size = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (datagram->size >= 0)
		take_descriptors(&message, &datagram->fd);
}

static bool bad_message(struct template *template)
{
	return error_set(&template->reason, ERROR_SANDBOX, "the template broke its protocol");
}

/* What it says about itself before it serves. */
static bool hear_text(struct template *template, struct text text)
{
	json_t *message = json_read(text, 4, NULL);
	struct text failure = json_get_text(message, "error");
	bool usage = text_equal(json_get_text(message, "kind"), "usage");
	enum template_state heard = STATE_GONE;

	if (json_get_text(message, "hello").size)
		heard = STATE_LOADING;
	else if (json_is_integer(json_object_get(message, "ready")))
		heard = STATE_SERVING;

	if (failure.size)
		error_set(&template->reason, usage ? ERROR_USAGE : ERROR_SANDBOX, "%s: %.*s",
			  template->config->python, (int)failure.size, failure.bytes);
	else if (heard != template->state + 1)
		bad_message(template);
	else
		template->state = heard;
	json_decref(message);
	return !template->reason.kind;
}

static bool hear_reply(struct template *template, struct datagram *datagram)
{
	const struct launch_reply *reply = &datagram->reply;

	if (datagram->size != (ssize_t)sizeof *reply)
		return bad_message(template);
	if (reply->error ? datagram->fd >= 0 : datagram->fd < 0 || reply->pid <= 0)
		return bad_message(template);
	return true;
}

/* One datagram a call: its event may be the end of us, and the loop brings the next. */
static void on_readable(evutil_socket_t control, short what, void *arg)
{
	struct template *template = arg;
	struct template_event event = {.kind = TEMPLATE_READY};
	struct datagram datagram;
	bool sense;

	(void)what;
	datagram_receive(control, &datagram);
	if (datagram.size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (datagram.size <= 0) {
		template_gone(template);
		return;
	}
	if (template->state == STATE_SERVING) {
		sense = hear_reply(template, &datagram);
		event = (struct template_event){
			.kind = TEMPLATE_LAUNCHED,
			.sequence = datagram.reply.sequence,
			.error = datagram.reply.error,
			.pid = datagram.reply.pid,
			.pidfd = sense ? take_fd(&datagram.fd) : -1,
		};
	} else {
		sense = hear_text(template, text_from(datagram.text, (size_t)datagram.size));
	}
	if (datagram.fd >= 0)
		close(datagram.fd);
	if (!sense) {
		template_gone(template);
		return;
	}
	if (template->state == STATE_LOADING)
		return;
	event_del(template->deadline);
	template_emit(template, &event);
}

static void on_writable(evutil_socket_t control, short what, void *arg)
{
	(void)control;
	(void)what;
	template_emit(arg, &(struct template_event){.kind = TEMPLATE_WRITABLE});
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct template *template = arg;

	(void)fd;
	(void)what;
	error_set(&template->reason, ERROR_SANDBOX, "%s was not ready within %d s",
		  template->config->python, LOAD_TIME_MS / 1000);
	template_gone(template);
}

static const char **template_argv(const struct template_config *config)
{
	size_t count = 0, used = 0;
	const char **argv;

	while (config->preload && config->preload[count])
		count++;
	argv = xcalloc(count + 8, sizeof *argv);
	argv[used++] = config->python;
	argv[used++] = "-I";
	if (!count)
		argv[used++] = "-S"; /* with -S, what is to be preloaded would not be found */
	argv[used++] = "-B";
	argv[used++] = "-X";
	argv[used++] = "utf8";
	argv[used++] = config->script;
	if (count)
		memcpy(&argv[used], config->preload, count * sizeof *argv);
	return argv;
}

static bool template_start(struct template *template, struct error *err)
{
	static const char *const envp[] = {LAUNCH_ENVIRONMENT, NULL};
	auto_free const char **argv = template_argv(template->config);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int theirs = -1;
	int ends[2];

	template->complaints = program_complaints(err);
	if (template->complaints < 0)
		return false;
	if (null < 0)
		return error_errno(err, ERROR_SANDBOX, "/dev/null");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_errno(err, ERROR_SANDBOX, "socketpair");
	template->control = ends[0];
	theirs = ends[1];
	template->pid = program_start(
		&(struct program){
			.path = template->config->python,
			.argv = argv,
			.envp = envp,
			.fds = {null, null, template->complaints, theirs, template->config->filter},
		},
		err);
	return template->pid > 0;
}

struct template *template_new(struct event_base *base, const struct template_config *config,
			      template_event_fn *fn, void *owner, struct error *err)
{
	struct template *template = xcalloc(1, sizeof *template);
	struct timeval limit = clock_timeval(LOAD_TIME_MS);

	template->config = config;
	template->control = template->complaints = -1;
	template->fn = fn;
	template->owner = owner;
	if (!template_start(template, err)) {
		template->pid = 0;
		template_free(template);
		return NULL;
	}
	template->readable = event_new(base, template->control, EV_READ | EV_PERSIST, on_readable,
				       template);
	template->writable = event_new(base, template->control, EV_WRITE, on_writable, template);
	template->deadline = evtimer_new(base, on_deadline, template);
	event_add(template->readable, NULL);
	event_add(template->deadline, &limit);
	return template;
}

bool template_greet(struct template *template, struct error *err)
{
	struct pollfd ready = {.fd = template->control, .events = POLLIN};
	int64_t deadline = clock_ms() + GREET_TIME_MS, left = GREET_TIME_MS;
	struct datagram datagram;

	while (left > 0 && poll(&ready, 1, (int)left) <= 0)
		left = deadline - clock_ms();
	datagram_receive(template->control, &datagram);
	if (datagram.fd >= 0)
		close(datagram.fd);
	if (datagram.size > 0 &&
	    hear_text(template, text_from(datagram.text, (size_t)datagram.size)))
		return true;
	if (datagram.size < 0)
		error_set(&template->reason, ERROR_USAGE, "%s did not start within %d s",
			  template->config->python, GREET_TIME_MS / 1000);
	template_end(template);
	*err = template->reason;
	return false;
}

pid_t template_pid(const struct template *template)
{
	return template->pid;
}

enum template_sending template_send(struct template *template, const struct launch_request *request,
				    const int *fds, size_t fd_count)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE((LAUNCH_FILES_MAX + 2) * sizeof(int))] = {0};
	struct iovec bytes = {(void *)request, sizeof *request};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
	memcpy(CMSG_DATA(header), fds, fd_count * sizeof *fds);
	while (sendmsg(template->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EPIPE)
			return TEMPLATE_FULL; /* its end is about to be heard */
		if (errno != EAGAIN)
			return TEMPLATE_FAILED;
		event_add(template->writable, NULL);
		return TEMPLATE_FULL;
	}
	return TEMPLATE_SENT;
}

void template_free(struct template *template)
{
	if (!template)
		return;
	template_reap(template);
	if (template->readable)
		event_free(template->readable);
	if (template->writable)
		event_free(template->writable);
	if (template->deadline)
		event_free(template->deadline);
	if (template->control >= 0)
		close(template->control);
	if (template->complaints >= 0)
		close(template->complaints);
	free(template);
}
