#include "base/abi.h"

#include <rlmd/rlmd.h>
#include <string.h>

/* A larger size was never set: no struct of ours is that large. */
enum { SIZE_SANE = 4096 };

static size_t size_of(const void *theirs)
{
	size_t size;

	memcpy(&size, theirs, sizeof size);
	return size;
}

static bool is_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

bool abi_copy_in(void *ours, size_t our_size, const void *theirs, size_t least, const char *what,
		 struct rlmd_error *err)
{
	size_t size;

	memset(ours, 0, our_size);
	if (!theirs)
		return true;
	size = size_of(theirs);
	if (size < least || size > SIZE_SANE)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the size of struct %s is %zu: set it to sizeof(struct %s), and "
				 "the rest to zero first",
				 what, size, what);
	if (size > our_size && !is_zero((const char *)theirs + our_size, size - our_size))
		return error_set(err, RLMD_ERROR_USAGE,
				 "struct %s asks for something that rlmd %s does not have", what,
				 RLMD_VERSION);
	memcpy(ours, theirs, size < our_size ? size : our_size);
	return true;
}

bool abi_copy_out(void *theirs, const void *ours, size_t our_size, size_t least)
{
	size_t size;

	if (!theirs || size_of(theirs) < least || size_of(theirs) > SIZE_SANE)
		return false;
	size = size_of(theirs);
	memset(theirs, 0, size);
	memcpy(theirs, ours, size < our_size ? size : our_size);
	memcpy(theirs, &size, sizeof size);
	return true;
}

const char *rlmd_version(void)
{
	return RLMD_VERSION;
}
