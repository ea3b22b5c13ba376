#include "sandbox/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

static bool kernel_filters(struct rlmd_error *err)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ||
	       error_errno(err, RLMD_ERROR_SANDBOX,
			   "the kernel has no seccomp filters that kill a process: seccomp");
}

int filter_memfd(const struct filter *filter, struct rlmd_error *err)
{
	auto_close int fd = memfd_create("filter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct rlmd_text code = text_from(filter->code, filter->size * sizeof filter->code[0]);

	if (!kernel_filters(err))
		return -1;
	if (fd < 0) {
		error_errno(err, RLMD_ERROR_SANDBOX, "memfd_create");
		return -1;
	}
	if (!file_write_fd(fd, code, err))
		return -1;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "cannot seal the filter");
		return -1;
	}
	return take_fd(&fd);
}
