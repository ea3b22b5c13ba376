#include "batch/notices.h"

#include <inttypes.h>

#include "base/alloc.h"

char *notice_refused(const char *tenant, const struct rlmd_error *why)
{
	return xasprintf("%s%s%s: %s; %s jobs stay pending", *tenant ? "tenant '" : "the key",
			 tenant, *tenant ? "'" : "", why->text, *tenant ? "its" : "all such");
}

char *notice_halted(int64_t failed, int64_t ended)
{
	return xasprintf("%" PRId64 " of %" PRId64
			 " jobs that are over have failed: no job is begun any more, and the next "
			 "start goes on",
			 failed, ended);
}

char *notice_level(const char *level)
{
	return xasprintf("the code of several tenants runs with isolation %s from each other, as "
			 "--require allows; L3 is what tenants should have",
			 level);
}
