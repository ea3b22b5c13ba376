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
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
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
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	evbuffer_add_printf(out, "usage: rlmd COMMAND ...\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		evbuffer_add_printf(out, "  rlmd %-6s %-15s %s\n", command_table[i].name,
				    command_table[i].arguments, command_table[i].summary);
	evbuffer_add_printf(out, "\n'rlmd help COMMAND' says more, and so does rlmd(1).\n");
	return print_text(text_in(out));
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

static int run_command(int argc, char **argv)
{
	enum command_id id = command_find(argv[0]);

	return id < COMMAND_COUNT ? command_table[id].run(argc, argv) : unknown_command(argv[0]);
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
	/* Who started us may have it ignored: the kernel would reap workers, and nobody knew how
	 * they ended. */
	signal(SIGCHLD, SIG_DFL);
	alloc_install();

	if (argc < 2) {
		tell_error("what shall be done? 'rlmd --help' lists the commands");
		return rlmd_error_exit_status(RLMD_ERROR_USAGE);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return show_help();
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version"))
		return print_version();
	return run_command(argc - 1, argv + 1);
}
