/*
 * worker/_rlmd.c - forks workers for the supervisor, as an extension module.
 * The functions for what workers say are in codec.h.
 *
 * Of the limited API, so that one build serves every Python from 3.8 on. The
 * template calls prepare() first, enclose() when everything is loaded (enclose.h),
 * and serve() last; serve() returns in each worker once, behind its walls
 * (walls.h), and in the template at the end.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codec.h"
#include "hand_over.h"
#include "huge_pages.h"
#include "mapped_text.h"
#include "sharing.h"
#include "walls.h"

#define FIRST_FILE (LAUNCH_CONTROL + 2) /* the descriptor of a worker's first input */
#define VIEW_READS 0x100 /* PyBUF_READ, which the limited API has from 3.11 on only */

static struct enclosure enclosure; /* this template's */
static struct launch_terms terms;  /* the supervisor's, for it */

static bool take_descriptors(struct msghdr *message, struct launch *launch)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);

	if (message->msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !header ||
	    header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return false;
	launch->fd_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (launch->fd_count > sizeof launch->fds / sizeof launch->fds[0])
		return false;
	memcpy(launch->fds, CMSG_DATA(header), launch->fd_count * sizeof(int));
	return launch->fd_count == launch->request.file_count + LAUNCH_OWN_FDS;
}

/* 1 for a request, 0 when the supervisor is gone, -1 with errno. */
static int receive(struct launch *launch)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_FDS_MAX * sizeof(int))];
	struct iovec bytes = {&launch->request, sizeof launch->request};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};
	ssize_t got;

	do
		got = recvmsg(LAUNCH_CONTROL, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return (int)got;
	if (got == sizeof launch->request && take_descriptors(&message, launch))
		return 1;
	errno = EPROTO;
	return -1;
}

/* `fds`: the pidfd, and the status or -1; neither where there is an error. */
static bool reply(uint64_t sequence, pid_t pid, const int *fds, int error)
{
	struct launch_reply answer = {sequence, pid, error};
	size_t count = error ? 0 : fds[1] < 0 ? 1 : 2;

	return hand_over(LAUNCH_CONTROL, &answer, sizeof answer, fds, count);
}

/*
 * A fork whose child is the supervisor's, not ours: CLONE_PARENT. Neither glibc nor
 * Python hears of it. Python's part is about other threads, of which there are none,
 * and the hooks of modules, which fork_hooks.py calls. The work of glibc's fork() for a process of
 * one thread is done here: the thread id that it caches is written by the kernel, where the kernel
 * tells its address (without, the cached one is the template's: only recursive locks look at it,
 * and a constant serves them), and the list of robust locks is announced again.
 */
static pid_t fork_for_supervisor(bool pid_namespace, int *ret_pidfd)
{
	unsigned long flags = CLONE_PARENT | CLONE_PIDFD | SIGCHLD;
	int *thread_id = NULL;
	void *robust_list;
	size_t robust_size;
	long child;

	if (!prctl(PR_GET_TID_ADDRESS, &thread_id, 0, 0, 0) && thread_id)
		flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	if (syscall(SYS_get_robust_list, 0, &robust_list, &robust_size))
		robust_list = NULL;
	if (pid_namespace)
		flags |= CLONE_NEWPID;
#if defined(__aarch64__)
	child = syscall(SYS_clone, flags, NULL, ret_pidfd, NULL, thread_id);
#else
	child = syscall(SYS_clone, flags, NULL, ret_pidfd, thread_id, NULL);
#endif
	if (!child && robust_list)
		syscall(SYS_set_robust_list, robust_list, robust_size);
	return (pid_t)child;
}

static PyObject *layer_names(uint32_t layers)
{
	static const char *const names[] = {
#define LAYER(name, shown, meaning) shown,
#include "sandbox/layers.def"
#undef LAYER
	};
	PyObject *list = PyList_New(0);
	int i;

	for (i = 0; list && i < LAYER_COUNT; i++) {
		PyObject *name;

		if (!(layers >> i & 1))
			continue;
		name = PyUnicode_FromString(names[i]);
		if (!name || PyList_Append(list, name))
			return NULL;
		Py_DECREF(name);
	}
	return list;
}

static PyObject *describe(const struct launch *launch, uint32_t layers)
{
	PyObject *files = PyList_New(0), *names = layer_names(layers);
	size_t i;

	for (i = LAUNCH_OWN_FDS; files && i < launch->fd_count; i++) {
		PyObject *fd = PyLong_FromLong(FIRST_FILE + (long)i - LAUNCH_OWN_FDS);

		if (!fd || PyList_Append(files, fd))
			return NULL;
		Py_DECREF(fd);
	}
	return files && names ? Py_BuildValue("NN", files, names) : NULL;
}

/* In a pid namespace of its own, where the mode has them. -1 and errno. */
static long fork_worker(const struct launch *launch, int *ret_pidfd)
{
	struct steps *steps = &enclosure.steps;
	bool pid_namespace = launch->request.layers & BIT(pid);

	steps->count = 0;
	if (steps_break(steps, STEP_fork) ||
	    (pid_namespace && steps_break(steps, STEP_pid_namespace)))
		return -1;
	return fork_for_supervisor(pid_namespace, ret_pidfd);
}

/* The descriptor that the worker hands over before anything else, or -1 where it ended instead. */
static int await_status(int handover)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {0};
	char byte;
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};
	struct cmsghdr *header;
	ssize_t got;
	int status = -1;

	do
		got = recvmsg(handover, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_len == CMSG_LEN(sizeof status))
		memcpy(&status, CMSG_DATA(header), sizeof status);
	return status;
}

static void close_all(const int *fds, size_t count)
{
	while (count--)
		if (fds[count] >= 0)
			close(fds[count]);
}

/* One request; true in the child, and `ret_layers` are its. */
static bool serve_one(struct launch *launch, uint32_t *ret_layers, bool *ret_heard)
{
	int handover[2] = {-1, -1}, fds[LAUNCH_REPLY_FDS] = {-1, -1}, error;
	long child = -1;

	if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handover))
		child = fork_worker(launch, &fds[0]);
	if (!child) {
		huge_pages_end();
		close(handover[0]);
		launch->handover = handover[1];
		*ret_layers = walls_raise(launch, &enclosure);
		return true;
	}
	error = child < 0 ? errno : 0;
	close_all(&handover[1], 1);
	if (child > 0)
		fds[1] = await_status(handover[0]);
	*ret_heard = reply(launch->request.sequence, (pid_t)child, fds, error);
	close_all(handover, 1);
	close_all(fds, LAUNCH_REPLY_FDS);
	close_all(launch->fds, launch->fd_count);
	return false;
}

static PyObject *prepare(PyObject *module, PyObject *args)
{
	const char *wrong = walls_prepare();

	(void)module;
	(void)args;
	if (wrong) {
		PyErr_SetString(PyExc_RuntimeError, wrong);
		return NULL;
	}
	/*
	 * malloc(3) reserves 64 MiB for each of the first eight threads per processor, which
	 * would be all the address space that a worker has: RLIMIT_AS counts it. Here threads
	 * wait for each other anyway, for Python's lock.
	 */
	mallopt(M_ARENA_MAX, 1);
	if (recv(LAUNCH_CONTROL, &terms, sizeof terms, 0) != sizeof terms)
		return PyErr_SetFromErrno(PyExc_OSError);
	return Py_BuildValue("NN", PyBool_FromLong(terms.archive == LAUNCH_ARCHIVE_GIVEN),
			     PyBool_FromLong(terms.archive == LAUNCH_ARCHIVE_WANTED));
}

static PyObject *list_failures(const struct steps *steps)
{
	PyObject *list = PyList_New(0);
	size_t i;

	for (i = 0; list && i < steps->count; i++) {
		const struct launch_failure *failure = &steps->failures[i];
		PyObject *entry = Py_BuildValue("iii", failure->mode, failure->step,
						failure->error);

		if (!entry || PyList_Append(list, entry))
			return NULL;
		Py_DECREF(entry);
	}
	return list;
}

static PyObject *enclose_template(PyObject *module, PyObject *args)
{
	PyObject *failures;
	bool entered;

	(void)module;
	(void)args;
	entered = enclose(&enclosure, &terms);
	failures = list_failures(&enclosure.steps);
	return failures ? Py_BuildValue("iiIN", entered, enclosure.mode, enclosure.layers, failures)
			: NULL;
}

/* Whether somebody asks for what does not wait for the rest: a trial, the first worker, our end. */
static bool is_urgent(bool served)
{
	struct launch_request request;
	ssize_t got = recv(LAUNCH_CONTROL, &request, sizeof request, MSG_PEEK | MSG_DONTWAIT);

	return !got || (got > 0 && (request.trial || !served));
}

/* All that is left, one step after another; false where a step failed. */
static bool take_step(PyObject **left)
{
	PyObject *step = PyIter_Next(*left);

	if (!step)
		*left = NULL;
	Py_XDECREF(step);
	return step || !PyErr_Occurred();
}

static PyObject *serve(PyObject *module, PyObject *args)
{
	struct launch launch = {.request.trial = 1};
	bool heard = true, served = false;
	PyObject *left;
	uint32_t layers;
	int got = 1;

	(void)module;
	if (!PyArg_ParseTuple(args, "O", &left))
		return NULL;
	while (heard && got > 0) {
		if (left && !is_urgent(served)) {
			if (!take_step(&left))
				return NULL;
			continue;
		}
		got = receive(&launch);
		if (got > 0 && serve_one(&launch, &layers, &heard))
			return describe(&launch, layers);
		served |= !launch.request.trial;
	}
	if (heard && got < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* Python's own seals are missing where it was built on an old system. */
static PyObject *seal(PyObject *module, PyObject *args)
{
	int fd;

	(void)module;
	if (!PyArg_ParseTuple(args, "i", &fd))
		return NULL;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* Kept for good: an import of that path finds it without a look at the file. */
static PyObject *load(PyObject *module, PyObject *args)
{
	const char *path;

	(void)module;
	if (!PyArg_ParseTuple(args, "s", &path))
		return NULL;
	if (!dlopen(path, RTLD_NOW)) {
		PyErr_SetString(PyExc_OSError, dlerror());
		return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *decode(PyObject *module, PyObject *args)
{
	Py_ssize_t size, start = 0, before;
	PyObject *text;
	char *bytes;
	int fd;

	(void)module;
	if (!PyArg_ParseTuple(args, "in|n", &fd, &size, &start))
		return NULL;
	if (size < 0 || start < 0 || lseek(fd, 0, SEEK_END) - start < size) {
		PyErr_SetString(PyExc_ValueError, "the file is shorter than announced");
		return NULL;
	}
	if (!size)
		return PyUnicode_FromString("");
	before = start % (Py_ssize_t)sysconf(_SC_PAGESIZE);
	bytes = mmap(NULL, (size_t)(before + size), PROT_READ, MAP_PRIVATE, fd, start - before);
	if (bytes == MAP_FAILED)
		return PyErr_SetFromErrno(PyExc_OSError);
	text = PyUnicode_DecodeUTF8(bytes + before, size, "surrogateescape");
	munmap(bytes, (size_t)(before + size));
	return text;
}

/* For the life of the process. */
static PyObject *view(PyObject *module, PyObject *args)
{
	Py_ssize_t size;
	void *bytes;
	int fd;

	(void)module;
	if (!PyArg_ParseTuple(args, "in", &fd, &size))
		return NULL;
	if (size <= 0 || lseek(fd, 0, SEEK_END) < size) {
		PyErr_SetString(PyExc_ValueError, "the file is shorter than announced");
		return NULL;
	}
	bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return PyErr_SetFromErrno(PyExc_OSError);
	return PyMemoryView_FromMemory(bytes, size, VIEW_READS);
}

static PyObject *map_text(PyObject *module, PyObject *args)
{
	unsigned highest;
	Py_ssize_t size, start = 0;
	PyObject *type;
	int fd;

	(void)module;
	if (!PyArg_ParseTuple(args, "inIO!|n", &fd, &size, &highest, &PyType_Type, &type, &start))
		return NULL;
	return mapped_text(fd, (size_t)start, (size_t)size, highest, (PyTypeObject *)type);
}

static PyObject *can_map(PyObject *module, PyObject *args)
{
	(void)module;
	(void)args;
	return PyBool_FromLong(mapped_text_works());
}

static PyMethodDef methods[] = {
	{"prepare", prepare, METH_NOARGS,
	 "Checks the environment, takes the filter and hears the terms; the template's first call. "
	 "Returns whether ARCHIVE is to be used, and whether one is to be made."},
	{"use_huge_pages", huge_pages_begin, METH_NOARGS,
	 "From here on objects lie where merge() can put them into huge pages."},
	{"enclose", enclose_template, METH_NOARGS,
	 "Walls the template off. Returns (whether it stands, mode, layers, failures)."},
	{"seal", seal, METH_VARARGS, "seal(fd): makes a memory file unchangeable."},
	{"load", load, METH_VARARGS, "load(path): a shared object, for imports behind the walls."},
	{"serve", serve, METH_VARARGS,
	 "serve(left): forks workers on request, and goes through the iterator `left` while nobody "
	 "asks, or before the second worker. Returns (files, layers) in each worker, None at the "
	 "end."},
	{"decode", decode, METH_VARARGS,
	 "decode(fd, size, start=0): the text of a memory file, or of a part of it, "
	 "surrogateescape for what is not UTF-8."},
	{"encode", codec_encode, METH_VARARGS,
	 "encode(name, fields, attach): a message's (frame, attachments); attach(text) makes one."},
	{"message", codec_decode, METH_O,
	 "message(bytes): fields of the first one, sizes of attachments or None, bytes taken; or "
	 "None, where it is not all there."},
	{"place", codec_place, METH_VARARGS,
	 "place(fields, texts): the fields with the texts of the attachments in place."},
	{"map", map_text, METH_VARARGS,
	 "map(fd, size, highest, type, start=0): the text of a memory file, or of a part of it, "
	 "where it lies; mapped_text.h."},
	{"view", view, METH_VARARGS,
	 "view(fd, size): a memoryview of a memory file, where it lies."},
	{"tidy", sharing_tidy, METH_NOARGS, "Before a fork: what is free is where it is found."},
	{"merge", huge_pages_merge, METH_NOARGS,
	 "After that: puts 2 MiB of what a fork shares into a huge page. False: there is no more."},
	{"agree", sharing_agree, METH_VARARGS,
	 "agree(found, wanted): whether the dict has the same objects as the other one, of those "
	 "that are in there."},
	{"can_map", can_map, METH_NOARGS, "Whether this interpreter can have such texts."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_rlmd",
	.m_doc = "Forks workers and raises their walls.",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__rlmd(void); /* no header has it: the importer looks it up by name */

PyMODINIT_FUNC PyInit__rlmd(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (module && !codec_init(module)) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
