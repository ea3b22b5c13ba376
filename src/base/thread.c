#include "base/thread.h"

#include <errno.h>
#include <signal.h>

bool thread_start(pthread_t *ret, void *(*work)(void *), void *owner, struct rlmd_error *err)
{
	sigset_t all, before;
	int why;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	why = pthread_create(ret, NULL, work, owner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return !why || error_errno(err, RLMD_ERROR_INTERNAL, "cannot start a thread");
}
