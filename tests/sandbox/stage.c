#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

char stage_directory[] = "/tmp/rlmd-sandbox-XXXXXX";

/*
 * The worker's files. Read before the test becomes somebody else, and written where
 * he can read them: the build tree may be in a directory that is closed to him.
 */
static struct part {
	const char *name;
	char *content; /* owned */
	size_t size;
} parts[] = {{.name = "_rlmd.abi3.so"}, {.name = "start.py"},    {.name = "gather.py"},
	     {.name = "library.py"},    {.name = "template.py"}, {.name = "fork_hooks.py"},
	     {.name = "repl.py"}};

enum { PARTS = sizeof parts / sizeof parts[0], PART_MAX = 16 << 20 };

static void read_parts(void)
{
	struct rlmd_error err = {0};

	for (size_t i = 0; i < PARTS && !parts[i].content; i++) {
		bool probe = !strcmp(parts[i].name, "repl.py");
		auto_free char *path = probe ? xstrdup(getenv("PROBE_REPL"))
					     : xasprintf("%s/%s", getenv("WORKER_DIR"),
							 parts[i].name);

		parts[i].content = file_read(path, PART_MAX, &parts[i].size, &err);
		if (!parts[i].content) {
			printf("Bail out! %s\n", err.text);
			exit(1);
		}
	}
}

int stage_make_directory(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	alloc_install();
	read_parts();
	memcpy(strrchr(stage_directory, '-') + 1, "XXXXXX", 6);
	if (!mkdtemp(stage_directory))
		return -1;
	for (size_t i = 0; i < PARTS; i++) {
		auto_free char *path = xasprintf("%s/%s", stage_directory, parts[i].name);

		if (!file_write(path, (struct rlmd_text){parts[i].content, parts[i].size}, &err)) {
			print_error("%s\n", err.text);
			return -1;
		}
	}
	return 0;
}

int stage_remove_directory(void **state)
{
	(void)state;
	for (size_t i = 0; i < PARTS; i++) {
		auto_free char *path = xasprintf("%s/%s", stage_directory, parts[i].name);

		unlink(path);
	}
	return rmdir(stage_directory);
}

/* From what is permitted too: a bounding set works on what is started later. */
static bool drop_admin(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	data[0].inheritable &= ~(1U << CAP_SYS_ADMIN);
	return !syscall(SYS_capset, &header, data);
}

bool stage_has_own_mounts;

/* Mounts that others make meanwhile are not to be seen. Where that cannot be, nothing here can
 * mount. */
static void keep_own_mounts(void)
{
	stage_has_own_mounts = !unshare(CLONE_NEWNS) &&
			       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int count_fds(void)
{
	DIR *open_files = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(open_files))
		count++;
	closedir(open_files);
	return count;
}

const struct stage_mode stage_modes[] = {
	{"root", NULL, AS_ROOT, "root", "L2"},
	{"userns", NULL, AS_NOBODY, "userns", "L2"},
	{"rootless", NULL, WITHOUT_ADMIN, "userns", "L2"},
	{"container", "user_namespace", WITHOUT_ADMIN, "uid", "L1"},
	{"plain", "user_namespace", AS_NOBODY, "plain", "L1"},
	{"sealed", "user_namespace,landlock", AS_NOBODY, "plain", "L1"},
	{NULL},
};
const struct stage_mode *stage_mode;

const char *stage_become(const struct stage_mode *mode)
{
	enum { NOBODY = 65534 };

	switch (mode->who) {
	case AS_ROOT:
		return geteuid() ? "only root can be root" : NULL;
	case AS_NOBODY:
		if (geteuid())
			return NULL;
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			return "this root cannot become nobody";
		prctl(PR_SET_DUMPABLE, 1); /* as if it had been started so */
		return NULL;
	case WITHOUT_ADMIN:
		if (geteuid())
			return "only root can be a container's root";
		if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 1 &&
		    (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN) || !drop_admin()))
			return "this root cannot drop CAP_SYS_ADMIN";
		return NULL;
	}
	return "unknown";
}

/* Why the mode does not stand here: what was refused of the layers that it is made of. */
static char *absence(const json_t *report)
{
	auto_free char *absent = json_dumps(json_object_get(report, "absent"), 0);

	return xasprintf("mode %s stands instead: %s",
			 json_string_value(json_object_get(report, "mode")), absent);
}

static char *try_mode(void)
{
	struct event_base *base = event_base_new();
	struct rlmd_sandbox *sandbox;
	struct rlmd_error err;
	json_t *report;
	char *why = NULL;

	sandbox = stage_sandbox(base, NULL, &err);
	if (!sandbox)
		return NULL; /* that is no reason to skip */
	report = sandbox_report(sandbox);
	if (strcmp(json_string_value(json_object_get(report, "mode")), stage_mode->mode))
		why = absence(report);
	json_decref(report);
	sandbox_free(sandbox);
	event_base_free(base);
	return why;
}

static void skip_all(const char *why)
{
	printf("1..0 # SKIP %s: %s\n", stage_mode->name, why);
	exit(0);
}

void stage_enter_mode(const char *name)
{
	const char *problem;
	char *why;

	setvbuf(stdout, NULL, _IOLBF, 0); /* an abort loses no test before it */
	alloc_install();
	for (stage_mode = stage_modes; name && stage_mode->name; stage_mode++)
		if (!strcmp(stage_mode->name, name))
			break;
	if (!name) {
		stage_mode += geteuid() ? 1 : 0;
		return;
	}
	if (!stage_mode->name) {
		printf("Bail out! there is no mode %s\n", name);
		exit(1);
	}
	read_parts();
	if (!geteuid())
		keep_own_mounts();
	problem = stage_become(stage_mode);
	if (problem)
		skip_all(problem);
	stage_make_directory(NULL);
	why = try_mode();
	stage_remove_directory(NULL);
	/* A test that needs nothing of the machine cannot be skipped. */
	if (why && strcmp(stage_mode->mode, "plain"))
		skip_all(why);
	free(why);
}

struct rlmd_sandbox *stage_sandbox(struct event_base *base, const char *const *preload,
				   struct rlmd_error *err)
{
	return sandbox_new(base,
			   &(struct sandbox_config){
				   .python = "python3",
				   .preload = preload,
				   .worker_memory = MEMORY,
				   .worker_dir = stage_directory,
				   .without = stage_mode ? stage_mode->without : NULL,
			   },
			   err);
}

void stage_reopen(struct stage *stage, const char *without, size_t pool_memory)
{
	auto_free char *both = xasprintf("%s%s%s", stage_mode->without ? stage_mode->without : "",
					 stage_mode->without && without ? "," : "",
					 without ? without : "");
	struct rlmd_error err = {0};

	sandbox_free(stage->sandbox);
	stage->sandbox = sandbox_new(stage->base,
				     &(struct sandbox_config){
					     .python = "python3",
					     .worker_memory = MEMORY,
					     .pool_memory = pool_memory,
					     .worker_dir = stage_directory,
					     .without = both,
				     },
				     &err);
	if (!stage->sandbox)
		fail_msg("%s", err.text);
}

bool report_has(const json_t *report, const char *layer)
{
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(report, "layers"), i, name)
		if (!strcmp(json_string_value(name), layer))
			return true;
	return false;
}

const char *report_lacks(const json_t *report, const char *layer)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(report, "absent"), i, entry)
		if (!strcmp(json_string_value(json_object_get(entry, "layer")), layer))
			return json_string_value(json_object_get(entry, "errno"));
	return NULL;
}

bool stage_has(const struct stage *stage, const char *layer)
{
	json_t *report = sandbox_report(stage->sandbox);
	bool has = report_has(report, layer);

	json_decref(report);
	return has;
}

int stage_open(void **state)
{
	struct stage *stage = xcalloc(1, sizeof *stage);
	struct rlmd_error err = {0};

	stage->fds_before = count_fds();
	stage->base = event_base_new();
	stage->sandbox = stage_sandbox(stage->base, NULL, &err);
	if (!stage->sandbox)
		print_error("%s\n", err.text);
	*state = stage;
	return stage->sandbox ? 0 : -1;
}

/* Whatever a test did: no descriptor, no child and no zombie is left (G9). */
int stage_close(void **state)
{
	struct stage *stage = *state;
	int left;

	sandbox_free(stage->sandbox);
	event_base_free(stage->base);
	left = count_fds() - stage->fds_before;
	free(stage);
	if (left)
		print_error("%d descriptors left\n", left);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
		print_error("a child is left\n");
		return -1;
	}
	return left ? -1 : 0;
}

static void on_exit_of(void *owner, const struct process_exit *exit)
{
	struct cast *cast = owner;

	cast->exits++;
	cast->exit = *exit;
	event_base_loopbreak(cast->stage->base);
}

static void on_spawn(void *owner, const struct spawned *spawned, const struct rlmd_error *err)
{
	struct cast *cast = owner;

	cast->spawns++;
	if (spawned) {
		cast->process = spawned->process;
		cast->from = spawned->from;
		cast->to = spawned->to;
	} else {
		cast->error = *err;
	}
	event_base_loopbreak(cast->stage->base);
}

struct spawn *begin(struct cast *cast, struct stage *stage, const int *files, size_t count,
		    size_t extra)
{
	*cast = (struct cast){.stage = stage, .to = -1, .from = -1};
	return sandbox_spawn(stage->sandbox, files, count, extra, on_spawn, cast);
}

void end(struct cast *cast)
{
	process_free(cast->process);
	if (cast->to >= 0)
		close(cast->to);
	if (cast->from >= 0)
		close(cast->from);
}

void enter(struct cast *cast, struct stage *stage)
{
	begin(cast, stage, NULL, 0, 0);
	assert_int_equal(cast->spawns, 0);
	event_base_dispatch(stage->base);
	assert_int_equal(cast->spawns, 1);
	if (!cast->process)
		fail_msg("%s", cast->error.text);
}

void await_exit(struct cast *cast)
{
	process_on_exit(cast->process, on_exit_of, cast);
	assert_int_equal(cast->exits, 0);
	event_base_dispatch(cast->stage->base);
	assert_int_equal(cast->exits, 1);
}

/* One line of what it says, or all until it closes the pipe. */
char *hear(const struct cast *cast, bool line)
{
	char *heard = xcalloc(1, 1 << 16);
	size_t size = 0;

	for (;;) {
		struct pollfd ready = {.fd = cast->from, .events = POLLIN};
		int count = poll(&ready, 1, SOON);
		ssize_t got;

		if (count < 0 && errno == ENOMEM)
			continue; /* refused by test_refusals.py, which means the program's */
		if (count <= 0)
			fail_msg("nothing heard after: %s", heard);
		got = read(cast->from, heard + size, line ? 1 : (1 << 16) - 1 - size);
		if (got <= 0 || (line && heard[size] == '\n')) {
			heard[size] = '\0';
			return heard;
		}
		size += (size_t)got;
	}
}

void expect_line(const struct cast *cast, const char *expected)
{
	auto_free char *heard = hear(cast, true);

	assert_string_equal(heard, expected);
}

void tell(struct cast *cast, const char *code)
{
	assert_int_equal(write(cast->to, code, strlen(code)), strlen(code));
	close(take_fd(&cast->to));
}

/* Lets a worker of its own run `code`; what it said, and how it ended. */
char *perform(struct stage *stage, const char *code, struct process_exit *ret_exit)
{
	struct cast cast;
	char *heard;

	enter(&cast, stage);
	tell(&cast, code);
	expect_line(&cast, "here");
	heard = hear(&cast, false);
	await_exit(&cast);
	*ret_exit = cast.exit;
	end(&cast);
	return heard;
}

void expect(struct stage *stage, const char *code, const char *expected)
{
	struct process_exit exit;
	auto_free char *heard = perform(stage, code, &exit);

	if (strcmp(heard, expected))
		fail_msg("expected: %s\nheard: %s\nof: %s", expected, heard, code);
	assert_false(exit.signaled);
	assert_int_equal(exit.status, 0);
}

/* Until a process that somebody else reaps is over. */
void await_death(pid_t pid)
{
	struct pollfd over = {.fd = pidfd_open(pid, 0), .events = POLLIN};

	assert_true(over.fd >= 0);
	assert_int_equal(poll(&over, 1, SOON), 1);
	close(over.fd);
}

int memory_file(const char *content)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	return fd;
}
