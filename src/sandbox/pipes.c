#include "sandbox/pipes.h"

#include <fcntl.h>
#include <unistd.h>

bool pipes_open(int ret_ours[2], int ret_theirs[2], struct rlmd_error *err)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC))
		return error_errno(err, RLMD_ERROR_SANDBOX, "no pipes for a worker");
	if (pipe2(from, O_CLOEXEC)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "no pipes for a worker");
		close(to[0]);
		close(to[1]);
		return false;
	}
	ret_ours[0] = from[0];
	ret_ours[1] = to[1];
	ret_theirs[0] = to[0];
	ret_theirs[1] = from[1];
	return true;
}
