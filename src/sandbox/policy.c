#include "sandbox/policy.h"

#include <jansson.h>
#include <rlmd/sandbox.h>
#include <sys/syscall.h>

#include "base/json.h"
#include "sandbox/filter.h"

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
static const struct policy_rule rules[] = {
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

const struct policy_rule *policy_rules(size_t *ret_count)
{
	*ret_count = sizeof rules / sizeof rules[0];
	return rules;
}

int policy_newest_call(void)
{
	return NEWEST_CALL;
}

char *rlmd_sandbox_policy(void)
{
	json_t *array = json_array();
	json_auto_t *policy = json_pack("{s:o, s:s, s:i, s:s}", "rules", array, "others", "EPERM",
					"newest", NEWEST_CALL, "younger", "ENOSYS");

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		json_t *conditions = json_array();

		for (size_t k = 0; k < POLICY_CONDITIONS_MAX && rules[i].conditions[k]; k++)
			json_array_append_new(conditions, json_string(rules[i].conditions[k]));
		json_array_append_new(array,
				      json_pack("{s:s, s:s, s:o, s:s}", "call", rules[i].call,
						"answer", rules[i].answer, "conditions", conditions,
						"reason", rules[i].reason));
	}
	return json_to_string(policy);
}
