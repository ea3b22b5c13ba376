#include "sandbox/filter.h"

#include <errno.h>
#include <jansson.h>
#include <linux/seccomp.h>
#include <rlmd/sandbox.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

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
	if (!file_seal(fd)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "cannot seal the filter");
		return -1;
	}
	return take_fd(&fd);
}

/* Written as an expression of C would be, with the arguments counted as the table counts them. */
#define EQUAL(argument, value)      "argument " #argument " is " #value
#define WITHIN(argument, mask)      "argument " #argument " has no bit but " #mask
#define LACKS(argument, mask)       "argument " #argument " lacks " #mask
#define FUTEX_OPERATION(name)       "argument 1 is " #name ", private or not, on either clock"
#define FUTEX_PRIVATELY(name)       "argument 1 is " #name ", private, on either clock"
#define SOCKET_TYPE(argument, type) "argument " #argument " is " #type ", whether it blocks or not"
#define ALLOW(name, reason)         {#name, "allow", {NULL}, reason},
#define ALLOW_IF(name, reason, ...) {#name, "allow", {__VA_ARGS__}, reason},
#define ANSWER(name, error, reason) {#name, #error, {NULL}, reason},
#define KILL(name, reason)          {#name, "kill", {NULL}, reason},
#define NEWEST(number)

/* clang-format off */
static const struct filter_rule rules[] = {
#include "seccomp/worker.def"
};
/* clang-format on */

#undef ALLOW
#undef ALLOW_IF
#undef ANSWER
#undef KILL
#undef NEWEST
#define ALLOW(name, reason)
#define ALLOW_IF(name, reason, ...)
#define ANSWER(name, error, reason)
#define KILL(name, reason)
#define NEWEST(number) NEWEST_CALL = (number)

enum {
#include "seccomp/worker.def"
};

const struct filter_rule *filter_rules(size_t *ret_count)
{
	*ret_count = sizeof rules / sizeof rules[0];
	return rules;
}

int filter_newest_call(void)
{
	return NEWEST_CALL;
}

char *rlmd_sandbox_policy(void)
{
	json_t *array = json_make_array();
	json_auto_t *policy = json_make("{s:o, s:s, s:i, s:s}", "rules", array, "others", "EPERM",
					"newest", NEWEST_CALL, "younger", "ENOSYS");

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		json_t *conditions = json_make_array();

		for (size_t k = 0; k < FILTER_CONDITIONS_MAX && rules[i].conditions[k]; k++)
			json_append(conditions, json_make_string(rules[i].conditions[k]));
		json_append(array, json_make("{s:s, s:s, s:o, s:s}", "call", rules[i].call,
					     "answer", rules[i].answer, "conditions", conditions,
					     "reason", rules[i].reason));
	}
	return json_to_string(policy);
}
