#include "sandbox/uids.h"

#include <errno.h>
#include <fcntl.h>
#include <rlmd/sandbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

void uids_begin(struct uids *uids, uint32_t first)
{
	if (!first)
		first = UIDS_FIRST;
	uids->first = (first + UIDS_BLOCK - 1) / UIDS_BLOCK * UIDS_BLOCK;
}

void rlmd_sandbox_uids(uint32_t first_uid, uint32_t *ret_first, uint32_t *ret_count)
{
	struct uids uids = {0};

	uids_begin(&uids, first_uid);
	if (ret_first)
		*ret_first = uids.first;
	if (ret_count)
		*ret_count = UIDS_COUNT;
}

void uids_done(struct uids *uids)
{
	while (uids->claim_count)
		close(uids->claims[--uids->claim_count]);
	if (uids->locked)
		close(uids->file);
	free(uids->free);
}

/* A lock is only as good as the file: who else can open it could take all of them. */
int uids_lock(struct uids *uids, const char *path)
{
	auto_close int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
				   0600);
	struct flock lock = {.l_type = F_WRLCK};
	struct stat st;

	if (file < 0 || fstat(file, &st) || fcntl(file, F_OFD_GETLK, &lock))
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO)) {
		errno = EPERM;
		return -1;
	}
	uids->file = take_fd(&file);
	uids->locked = true;
	return 0;
}

/* Of the open file, not of the process: another sandbox of ours must not have it either. */
static bool lock_block(const struct uids *uids, unsigned block)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_start = (off_t)uids->first + block * UIDS_BLOCK,
		.l_len = UIDS_BLOCK,
	};

	if (!fcntl(uids->file, F_OFD_SETLK, &lock))
		return true;
	if (errno == EAGAIN || errno == EACCES)
		errno = EADDRINUSE;
	return false;
}

/* False and errno: EADDRINUSE where another has it. */
static bool name_block(struct uids *uids, unsigned block)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "rlmd-uids-%u",
			      uids->first + block * UIDS_BLOCK);

	if (claim < 0 ||
	    bind(claim, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length))
		return false;
	uids->claims[uids->claim_count++] = take_fd(&claim);
	return true;
}

static bool claim_more(struct uids *uids)
{
	unsigned first = 0, tried;

	/*
	 * Those who cannot see each other's claims, as they are in other containers, should
	 * not begin with the same one. Their pids may well be the same.
	 */
	(void)!getrandom(&first, sizeof first, GRND_NONBLOCK);
	for (tried = 0; tried < UIDS_BLOCKS; tried++) {
		unsigned block = (first % UIDS_BLOCKS + tried) % UIDS_BLOCKS;

		/* A lock that this file has already would be given again. */
		if (uids->claimed[block])
			continue;
		if (!(uids->locked ? lock_block(uids, block) : name_block(uids, block))) {
			if (errno != EADDRINUSE)
				return false;
			continue;
		}
		uids->claimed[block] = true;
		uids->block_count++;
		uids->free = xreallocarray(uids->free, uids->block_count * UIDS_BLOCK,
					   sizeof *uids->free);
		for (unsigned i = UIDS_BLOCK; i; i--)
			uids_give(uids, uids->first + block * UIDS_BLOCK + i - 1);
		return true;
	}
	errno = EADDRINUSE;
	return false;
}

bool uids_take(struct uids *uids, uint32_t *ret_uid, struct rlmd_error *err)
{
	if (!uids->free_count && !claim_more(uids))
		return error_errno(err, RLMD_ERROR_SANDBOX,
				   "no uid is left for a worker (%u to %u)", uids->first,
				   uids->first + UIDS_COUNT - 1);
	*ret_uid = uids->free[--uids->free_count];
	return true;
}

void uids_give(struct uids *uids, uint32_t uid)
{
	uids->free[uids->free_count++] = uid;
}
