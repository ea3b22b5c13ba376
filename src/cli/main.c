/*
 * The program: what every command needs of its process, and the table of commands.
 */
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/tell.h"

/*
 * A closed descriptor would be given to the next file that is opened, and then be written to.
 * Standard input becomes empty, standard output a place where writing fails, as before.
 */
static void fill_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

/*
 * Keys are in our memory: no core file, no debugger of the same user. Those of the kernel's
 * keyrings are not ours to hand on: a session of our own, where there are any.
 */
static void guard_secrets(void)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef RLMD_SANITIZED /* LeakSanitizer looks at us as a debugger would */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

/* Workers, transfers and large texts take descriptors: as many as we may have. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int show_help(void)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	buffer_add_printf(out, "usage: rlmd COMMAND ...\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		buffer_add_printf(out, "  rlmd %-8s %s\n", command_table[i].name,
				  command_table[i].summary);
	buffer_add_printf(out, "\n'rlmd help COMMAND' says more, and so does rlmd-COMMAND(1).\n");
	return command_print(text_in(out));
}

static int unknown_command(const char *name)
{
	const char *near = command_nearest(name);

	if (near)
		tell_error("there is no command '%s'; did you mean '%s'?", name, near);
	else
		tell_error("there is no command '%s'; 'rlmd --help' lists them, and 'rlmd exec' "
			   "answers a task",
			   name);
	return rlmd_error_exit_status(RLMD_ERROR_USAGE);
}

/* `rlmd --json exec ...`: each command has options of its own, so that its name comes first. */
static int options_first(int argc, char **argv)
{
	int i = 1, size = (int)strcspn(argv[1], "="); /* its value may be a secret */

	while (i < argc && command_find(argv[i]) == COMMAND_COUNT)
		i++;
	if (i < argc)
		tell_error("'%.*s' stands before the command: options come behind it, as in 'rlmd "
			   "%s %.*s'",
			   size, argv[1], argv[i], size, argv[1]);
	else
		tell_error("there is no command: options come behind it, as in 'rlmd exec %.*s'; "
			   "'rlmd --help' lists the commands",
			   size, argv[1]);
	return rlmd_error_exit_status(RLMD_ERROR_USAGE);
}

static int no_command(void)
{
	tell_error("no command was given; 'rlmd --help' lists what they take:");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		tell_hint("  rlmd %-7s %s", command_table[i].name, command_table[i].summary);
	return rlmd_error_exit_status(RLMD_ERROR_USAGE);
}

static int run_command(int argc, char **argv)
{
	enum command_id id = command_find(argv[0]);

	return id < COMMAND_COUNT ? session_command(id, argc, argv) : unknown_command(argv[0]);
}

/* `rlmd help COMMAND` is `rlmd COMMAND --help`. */
static int help(int argc, char **argv)
{
	char *arguments[] = {argv[argc - 1], (char *)"--help", NULL};

	if (argc < 2)
		return show_help();
	if (argc == 2)
		return run_command(2, arguments);
	tell_error("help is about one command: '%s' is one word too many", argv[2]);
	return rlmd_error_exit_status(RLMD_ERROR_USAGE);
}

int main(int argc, char **argv)
{
	fill_descriptors();
	interrupt_install();
	guard_secrets();
	raise_descriptors();
	/* A write that nobody reads, or that ulimit -f forbids, fails like any other. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* If our parent ignored it, the kernel would reap workers, and we could not know how they
	 * ended. */
	signal(SIGCHLD, SIG_DFL);
	alloc_install();

	if (argc < 2)
		return no_command();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return show_help();
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version"))
		return command_print_version();
	if (*argv[1] == '-')
		return options_first(argc, argv);
	return run_command(argc - 1, argv + 1);
}
