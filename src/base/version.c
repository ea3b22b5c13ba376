#include <rlmd/rlmd.h>

const char *rlmd_version(void)
{
	return RLMD_VERSION;
}
