/* Functions that glibc has from 2.36 on, for a program that runs on 2.34, too: the option
 * `portable` of the build. man 3 arc4random, man 2 pidfd_open, man 2 pidfd_send_signal. */
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

void arc4random_buf(void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = getrandom((char *)bytes + done, size - done, 0);

		if (got > 0)
			done += (size_t)got;
	}
}

unsigned arc4random(void)
{
	unsigned number;

	arc4random_buf(&number, sizeof number);
	return number;
}

int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

int pidfd_send_signal(int pidfd, int number, siginfo_t *info, unsigned flags)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, info, flags);
}
