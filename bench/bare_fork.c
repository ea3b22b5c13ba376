/*
 * A fork that runs no Python after it: what the kernel takes for an interpreter
 * of this size. Loaded into bench/forker.py.
 */
#include <sys/types.h>
#include <unistd.h>

__attribute__((visibility("default"))) pid_t bare_fork(int out);

/* The child writes one byte and is gone. */
pid_t bare_fork(int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		ssize_t written = write(out, "!", 1);

		_exit(written != 1);
	}
	return pid;
}
