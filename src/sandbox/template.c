#include "sandbox/template.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/timer.h"
#include "base/wait.h"
#include "sandbox/child.h"
#include "sandbox/layer_status.h"
#include "sandbox/program.h"

/* A message over the control socket, with the descriptors that came along, or -1. */
struct datagram {
	union {
		char text[LAUNCH_TEXT_MAX];
		struct launch_reply reply;
	};
	ssize_t size; /* 0 at the end; -1 and errno */
	int pidfd;    /* owned, like that of `status` */
	int status;
};

enum template_state { STATE_STARTING, STATE_LOADING, STATE_SERVING, STATE_GONE };

struct template_process {
	const struct template_config *config; /* lent */
	struct event *readable, *writable;    /* owned: the control socket */
	struct timer *deadline;               /* owned: for getting ready */
	int control, complaints;              /* owned; the second is its standard error */
	pid_t pid;                            /* 0 after it was reaped */
	enum template_state state;
	struct rlmd_error reason; /* of its end */
	bool hapless;             /* it was killed or slow */
	enum mode mode;
	uint32_t layers;
	bool maps_texts;
	struct steps steps; /* what was refused */
	template_event_fn *fn;
	void *owner;
};

/* Closes what nobody took. */
static void datagram_drop(struct datagram *datagram)
{
	if (datagram->pidfd >= 0)
		close(datagram->pidfd);
	if (datagram->status >= 0)
		close(datagram->status);
	datagram->pidfd = datagram->status = -1;
}

static void take_descriptors(struct msghdr *message, struct datagram *datagram)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t i, count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
			if (datagram->pidfd < 0)
				datagram->pidfd = fd;
			else if (datagram->status < 0)
				datagram->status = fd;
			else
				close(fd);
		}
	}
}

/* The next one, where there is one. */
static void datagram_receive(int control, struct datagram *datagram)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_REPLY_FDS * sizeof(int))];
	struct iovec bytes = {datagram->text, sizeof datagram->text};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};

	datagram->pidfd = datagram->status = -1;
	/* If the peer left words unread before its end, that is told first, once, as ECONNRESET;
	 * then come its own words. */
	do
		datagram->size = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (datagram->size < 0 && errno == ECONNRESET);
	if (datagram->size >= 0)
		take_descriptors(&message, datagram);
}

/* Whether one is there that nobody has received. */
static bool datagram_is_there(int control)
{
	return wait_for(control, POLLIN, 0, INT_MAX) == WAIT_READY;
}

/* Waits for one, or the end. False where none came before the deadline, and errno; ECANCELED where
 * the program is asked to end. */
static bool datagram_await(int control, int64_t deadline, struct datagram *datagram)
{
	for (;;) {
		switch (wait_for(control, POLLIN, deadline, 0)) {
		case WAIT_READY:
			break;
		case WAIT_LATE:
			errno = ETIMEDOUT;
			return false;
		case WAIT_INTERRUPTED:
			errno = ECANCELED;
			return false;
		case WAIT_FAILED:
			return false;
		}
		datagram_receive(control, datagram);
		if (datagram->size >= 0)
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return false;
	}
}

/*
 * False and errno; EAGAIN where there is no room; ETOOMANYREFS where processes of this user have
 * too many descriptors on their way to each other, unix(7), which they soon take.
 */
static bool datagram_send(int control, const struct launch_request *request, const int *fds,
			  size_t fd_count)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_FDS_MAX * sizeof(int))] = {0};
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
	return sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* Sends, but waits for others' descriptors; ETOOMANYREFS where they are not taken before the
 * deadline. */
static bool datagram_send_by(int control, int64_t deadline, const struct launch_request *request,
			     const int *fds, size_t fd_count)
{
	while (!datagram_send(control, request, fds, fd_count)) {
		if (errno != EINTR && (errno != ETOOMANYREFS || clock_ms() >= deadline))
			return false;
		poll(NULL, 0, TEMPLATE_AGAIN_MS);
	}
	return true;
}

bool template_refused(struct rlmd_error *err)
{
	if (errno == ETOOMANYREFS)
		return error_set(err, RLMD_ERROR_SANDBOX,
				 "cannot ask for a worker: processes of this user keep more "
				 "descriptors on their way to each other than one of them may "
				 "have open; end them, or raise the limit: ulimit -n");
	return error_errno(err, RLMD_ERROR_SANDBOX, "cannot ask for a worker");
}

/*
 * Ends the process, whatever it was doing. Returns its status as of waitpid(). One that
 * is not ours to kill hears that we are gone, and ends when it listens the next time.
 */
static int template_reap(struct template_process *template)
{
	int status = 0;

	if (!template->pid)
		return 0;
	shutdown(template->control, SHUT_WR);
	child_end(template->pid, clock_ms() + CHILD_END_MS, &status);
	template->pid = 0;
	return status;
}

/* Takes the process out; `reason` was set, or its last words become the reason. */
static void template_end(struct template_process *template)
{
	bool young = template->state == STATE_STARTING;
	char words[sizeof template->reason.text - 128];
	int status = template_reap(template);
	char how[CHILD_WORDS];

	template->state = STATE_GONE;
	event_del(template->readable);
	event_del(template->writable);
	timer_stop(template->deadline);
	if (template->reason.kind)
		return;
	program_complaint(template->complaints, words, sizeof words);
	/* A program that exits before its first word was no Python; one that is killed may have
	 * been. */
	template->hapless = WIFSIGNALED(status);
	error_set(&template->reason,
		  young && !template->hapless ? RLMD_ERROR_USAGE : RLMD_ERROR_SANDBOX,
		  "%s ended %s (%s)%s%s", template->config->python,
		  young ? "at its start" : "unexpectedly", child_status_words(status, how),
		  *words ? ": " : "", words);
}

static void template_gone(struct template_process *template)
{
	template_end(template);
	template->fn(template->owner, &(struct template_event){.kind = TEMPLATE_GONE,
							       .reason = &template->reason,
							       .again = template->hapless});
}

static bool bad_message(struct template_process *template)
{
	return error_set(&template->reason, RLMD_ERROR_SANDBOX, "the template broke its protocol");
}

static bool hear_refusals(struct template_process *template, const json_t *list)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		int mode, step, error;

		if (json_unpack((json_t *)entry, "[iii]", &mode, &step, &error) || mode < 0 ||
		    mode >= MODE_COUNT || step < 0 || step >= STEP_COUNT)
			return false;
		template->steps.mode = (uint16_t)mode;
		errno = error;
		steps_note(&template->steps, (enum step)step, -1);
	}
	return json_is_array(list);
}

/* It walled itself off: what stands now is what all its workers will have. */
static bool hear_ready(struct template_process *template, const json_t *message)
{
	int64_t mode = json_get_integer(message, "mode", MODE_COUNT);

	if (mode < 0 || mode >= MODE_COUNT || !(template->config->terms.modes >> mode & 1) ||
	    !hear_refusals(template, json_object_get(message, "failures")))
		return bad_message(template);
	template->mode = (enum mode)mode;
	template->layers = (uint32_t)json_get_integer(message, "layers", 0);
	template->maps_texts = json_get_bool(message, "maps", false);
	template->steps.mode = (uint16_t)mode;
	return true;
}

/* Stuck in a mode that it was not to try, it would be stuck there again and again. */
static bool hear_failed(struct template_process *template, const json_t *failures)
{
	const struct launch_failure *last;

	if (!hear_refusals(template, failures) || !template->steps.count)
		return bad_message(template);
	last = &template->steps.failures[template->steps.count - 1];
	if (layer_status_loss(last) == LAYER_whole_mode &&
	    !(template->config->terms.modes >> last->mode & 1)) {
		template->steps.count = 0;
		return bad_message(template);
	}
	return layer_status_error(last, &template->reason);
}

/* Hears its report on itself, before it serves. */
static bool hear_text(struct template_process *template, struct rlmd_text text)
{
	json_auto_t *message = json_read(text, 4, NULL);
	struct rlmd_text failure = json_get_text(message, "error");
	bool usage = text_equal(json_get_text(message, "kind"), "usage");
	enum template_state heard = STATE_GONE;

	if (json_get_text(message, "hello").size)
		heard = STATE_LOADING;
	else if (json_is_integer(json_object_get(message, "ready")))
		heard = STATE_SERVING;
	if (failure.size)
		error_set(&template->reason, usage ? RLMD_ERROR_USAGE : RLMD_ERROR_SANDBOX,
			  "%s: %.*s", template->config->python, (int)failure.size, failure.bytes);
	else if (json_object_get(message, "failed"))
		hear_failed(template, json_object_get(message, "failed"));
	else if (heard != template->state + 1)
		bad_message(template);
	else if (heard == STATE_LOADING || hear_ready(template, message))
		template->state = heard;
	return !template->reason.kind;
}

static bool hear_reply(struct template_process *template, struct datagram *datagram)
{
	const struct launch_reply *reply = &datagram->reply;

	if (datagram->size != (ssize_t)sizeof *reply)
		return bad_message(template);
	if (reply->error ? datagram->pidfd >= 0 : datagram->pidfd < 0 || reply->pid <= 0)
		return bad_message(template);
	return true;
}

/* The descriptors go with it. */
static struct template_event launched(struct datagram *datagram)
{
	return (struct template_event){
		.kind = TEMPLATE_LAUNCHED,
		.sequence = datagram->reply.sequence,
		.error = datagram->reply.error,
		.pid = datagram->reply.pid,
		.pidfd = take_fd(&datagram->pidfd),
		.status = take_fd(&datagram->status),
	};
}

/* Its next duty before it serves, and how long that may take. */
static const char *duty_of(const struct template_process *template)
{
	return template->state == STATE_STARTING ? "start" : "get ready";
}

static int64_t patience_of(const struct template_process *template)
{
	return (template->state == STATE_STARTING ? 1 : 2) *
	       (int64_t) template->config->patience_ms;
}

static void set_deadline(struct template_process *template)
{
	timer_start(template->deadline, patience_of(template));
}

/* One datagram a call: its event may be the end of us, and the loop brings the next. */
static void on_readable(evutil_socket_t control, short what, void *arg)
{
	struct template_process *template = arg;
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
		if (sense)
			event = launched(&datagram);
	} else {
		sense = hear_text(template, text_from(datagram.text, (size_t)datagram.size));
	}
	datagram_drop(&datagram);
	if (!sense) {
		template_gone(template);
		return;
	}
	timer_stop(template->deadline);
	if (template->state == STATE_LOADING)
		set_deadline(template);
	else
		template->fn(template->owner, &event);
}

static void on_writable(evutil_socket_t control, short what, void *arg)
{
	struct template_process *template = arg;

	(void)control;
	(void)what;
	template->fn(template->owner, &(struct template_event){.kind = TEMPLATE_WRITABLE});
}

/* Ends it for a duty that it did not do in time. */
static bool too_slow(struct template_process *template, const char *what, int64_t ms)
{
	char time[16];

	clock_format(ms, time);
	template->hapless = true;
	return error_set(&template->reason, RLMD_ERROR_SANDBOX, "%s did not %s within %s",
			 template->config->python, what, time);
}

static void on_deadline(void *arg)
{
	struct template_process *template = arg;

	/* Where the loop was held, what was said in time has not been heard yet. */
	if (datagram_is_there(template->control)) {
		timer_post(template->deadline);
		return;
	}
	too_slow(template, duty_of(template), patience_of(template));
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

/* Its end is about to be heard. A connection is reset, once, where it left something unread. */
static bool is_its_end(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

/* Before it makes anything that should be counted; and its terms, for when it asks for them. */
static bool template_admit(struct template_process *template, struct rlmd_error *err)
{
	struct launch_terms terms = template->config->terms;

	template->steps.without = terms.without;
	cgroup_join(template->config->cgroup, template->pid, &template->steps);
	terms.archive = archive_judge(template->config->archive); /* while Python starts */
	if (send(template->control, &terms, sizeof terms, MSG_NOSIGNAL) == sizeof terms ||
	    is_its_end(errno))
		return true;
	return error_errno(err, RLMD_ERROR_SANDBOX, "cannot talk to the template");
}

static bool template_start(struct template_process *template, struct rlmd_error *err)
{
	static const char *const envp[] = {LAUNCH_ENVIRONMENT, NULL};
	auto_free const char **argv = template_argv(template->config);
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int theirs = -1;
	int ends[2];

	template->complaints = program_complaints(err);
	if (template->complaints < 0)
		return false;
	if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_errno(err, RLMD_ERROR_SANDBOX, "no descriptors for the template");
	template->control = ends[0];
	theirs = ends[1];
	if (!archive_begin(template->config->archive, err))
		return false;
	template->pid = program_start(
		&(struct program){
			.path = template->config->python,
			.argv = argv,
			.envp = envp,
			.fds = {null, null, template->complaints, theirs, template->config->filter,
				template->config->life, archive_store(template->config->archive),
				archive_file(template->config->archive)},
		},
		err);
	return template->pid > 0 && template_admit(template, err);
}

struct template_process *template_new(struct event_base *base, const struct template_config *config,
				      template_event_fn *fn, void *owner, struct rlmd_error *err)
{
	struct template_process *template = xcalloc(1, sizeof *template);

	template->config = config;
	template->control = template->complaints = -1;
	template->fn = fn;
	template->owner = owner;
	if (!template_start(template, err)) {
		template->pid = template->pid < 0 ? 0 : template->pid;
		template_free(template);
		return NULL;
	}
	template->readable = loop_event(base, template->control, EV_READ | EV_PERSIST, on_readable,
					template);
	template->writable = loop_event(base, template->control, EV_WRITE, on_writable, template);
	template->deadline = timer_new(base, on_deadline, template);
	loop_add(template->readable, NULL);
	set_deadline(template);
	return template;
}

/* One datagram; false where none came in time, or its end. `what` it is waited for to do. */
static bool await_datagram(struct template_process *template, const char *what, int64_t begun,
			   int64_t ms, struct datagram *datagram)
{
	if (datagram_await(template->control, begun + ms, datagram))
		return datagram->size > 0;
	if (errno == ETIMEDOUT)
		return too_slow(template, what, ms);
	return error_errno(&template->reason, RLMD_ERROR_SANDBOX, "%s does not answer",
			   template->config->python);
}

/* Where it ended instead; its reason goes to the caller. */
static bool template_lost(struct template_process *template, struct rlmd_error *err)
{
	template_end(template);
	*err = template->reason;
	return false;
}

bool template_await(struct template_process *template, struct rlmd_error *err)
{
	int64_t begun = clock_ms();
	struct datagram datagram = {.pidfd = -1, .status = -1, .size = -1};

	while (template->state < STATE_SERVING) {
		bool heard = await_datagram(template, duty_of(template), begun,
					    patience_of(template), &datagram) &&
			     hear_text(template, text_from(datagram.text, (size_t)datagram.size));

		datagram_drop(&datagram);
		if (!heard)
			return template_lost(template, err);
	}
	if (template->state == STATE_GONE) /* and the loop was told */
		return template_lost(template, err);
	timer_stop(template->deadline);
	return true;
}

bool template_launch(struct template_process *template, const struct launch_request *request,
		     const int *fds, size_t fd_count, struct template_event *ret_launched,
		     struct rlmd_error *err)
{
	struct datagram datagram = {.pidfd = -1, .status = -1, .size = -1};
	int patience = template->config->patience_ms;

	if (!datagram_send_by(template->control, clock_ms() + patience, request, fds, fd_count)) {
		template_refused(&template->reason);
		return template_lost(template, err);
	}
	if (!await_datagram(template, "fork a worker", clock_ms(), patience, &datagram) ||
	    !hear_reply(template, &datagram)) {
		datagram_drop(&datagram);
		return template_lost(template, err);
	}
	*ret_launched = launched(&datagram);
	return true;
}

enum mode template_mode(const struct template_process *template)
{
	return template->mode;
}

uint32_t template_layers(const struct template_process *template)
{
	return template->layers;
}

bool template_maps_texts(const struct template_process *template)
{
	return template->maps_texts;
}

const struct steps *template_refusals(const struct template_process *template)
{
	return &template->steps;
}

bool template_may_retry(const struct template_process *template)
{
	return template->hapless;
}

pid_t template_pid(const struct template_process *template)
{
	return template->pid;
}

enum template_sending template_send(struct template_process *template,
				    const struct launch_request *request, const int *fds,
				    size_t fd_count)
{
	while (!datagram_send(template->control, request, fds, fd_count)) {
		if (errno == EINTR)
			continue;
		if (is_its_end(errno))
			return TEMPLATE_FULL;
		if (errno != EAGAIN)
			return errno == ETOOMANYREFS ? TEMPLATE_CROWDED : TEMPLATE_FAILED;
		loop_add(template->writable, NULL);
		return TEMPLATE_FULL;
	}
	return TEMPLATE_SENT;
}

void template_cut(struct template_process *template)
{
	template->pid = 0;
	file_cut_forked(template->control);
}

void template_free(struct template_process *template)
{
	if (!template)
		return;
	template_reap(template);
	if (template->readable) { /* all three are there, or none */
		event_free(template->readable);
		event_free(template->writable);
		timer_free(template->deadline);
	}
	cleanup_close(&template->control);
	cleanup_close(&template->complaints);
	free(template);
}
