/*
 * The sealed filter, evaluated without a kernel: every call's number against a
 * table that is checked in, and the arguments that decide.
 *
 * Compiled together with the filter itself, once for each architecture that the
 * policy is for (FILTER_ARCH); both run on either.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <rlmd/sandbox.h>
#include <seccomp.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "sandbox/filter_compile.h"

#if FILTER_ARCH == AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define FOREIGN AUDIT_ARCH_ARM
#endif
#define REFUSE             (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN            (SECCOMP_RET_ERRNO | ENOSYS)
#define ALLOWED            SECCOMP_RET_ALLOW
#define HIGH               (1ULL << 32)
#define THREAD             0x3d0f00
#define CLOCK_OF_PROCESS_1 ((uint32_t)(~1U << 3 | 2)) /* as of clock_getcpuclockid() */

enum { VALUES = 1 << 15 }; /* of an argument, from 0 on, that are tried one by one */

static struct filter filter;

static int build(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	return filter_compile(&filter, &err) ? 0 : -1;
}

/* The part of classic BPF that a seccomp filter may use and libseccomp does. */
static uint32_t evaluate_data(const struct seccomp_data *data)
{
	uint32_t accumulator = 0, jumped;
	size_t at;

	for (at = 0; at < filter.size; at++) {
		const struct sock_filter *code = &filter.code[at];

		switch (code->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(code->k <= sizeof *data - sizeof accumulator);
			memcpy(&accumulator, (const char *)data + code->k, sizeof accumulator);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= code->k;
			continue;
		case BPF_RET | BPF_K:
			return code->k;
		case BPF_JMP | BPF_JA:
			at += code->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			jumped = accumulator == code->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			jumped = accumulator > code->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			jumped = accumulator >= code->k;
			break;
		default:
			fail_msg("unexpected instruction %#x at %zu", code->code, at);
			return 0;
		}
		at += jumped ? code->jt : code->jf;
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t evaluate(long number, const uint64_t arguments[6])
{
	struct seccomp_data data = {.nr = (int)number, .arch = FILTER_ARCH};

	memcpy(data.args, arguments, sizeof data.args);
	return evaluate_data(&data);
}

#define ARGUMENTS(...) ((const uint64_t[6]){__VA_ARGS__})

static const char *action_name(uint32_t action, char out[static 16])
{
	if (action == SECCOMP_RET_ALLOW)
		return "allow";
	if (action == SECCOMP_RET_KILL_PROCESS)
		return "kill";
	snprintf(out, 16, "errno %u", action & SECCOMP_RET_DATA);
	return out;
}

struct attempt {
	long number; /* on the machine that compiles it */
	uint64_t arguments[6];
	uint32_t answer;
};

/* One line for each argument that decides, on both sides of the line. */
static const struct attempt attempts[] = {
	{SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}, ALLOWED},
	{SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 5}, ALLOWED},
	{SYS_mmap, {0, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS}, REFUSE},
	{SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS}, REFUSE},
	{SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_LOCKED}, REFUSE},
	{SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_HUGETLB}, REFUSE},
	{SYS_mprotect, {0, 4096, PROT_READ | PROT_WRITE}, ALLOWED},
	{SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC}, REFUSE},
	{SYS_mprotect, {0, 4096, PROT_READ | HIGH}, REFUSE},
	{SYS_mremap, {0, 1, 2, MREMAP_MAYMOVE}, ALLOWED},
	{SYS_mremap, {0, 1, 2, MREMAP_DONTUNMAP}, REFUSE},
	{SYS_madvise, {0, 4096, MADV_DONTNEED}, ALLOWED},
	{SYS_madvise, {0, 4096, MADV_WIPEONFORK}, REFUSE},
	{SYS_futex, {0, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME}, ALLOWED},
	{SYS_futex, {0, FUTEX_WAIT}, ALLOWED},
	{SYS_futex, {0, FUTEX_WAKE}, REFUSE},
	{SYS_futex, {0, FUTEX_WAKE | FUTEX_PRIVATE_FLAG}, ALLOWED},
	{SYS_futex, {0, FUTEX_WAKE_BITSET}, REFUSE},
	{SYS_futex, {0, FUTEX_REQUEUE}, REFUSE},
	{SYS_futex, {0, FUTEX_CMP_REQUEUE}, REFUSE},
	{SYS_futex, {0, FUTEX_LOCK_PI}, REFUSE},
	{SYS_futex, {0, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG}, REFUSE},
	{SYS_futex, {0, FUTEX_CMP_REQUEUE_PI}, REFUSE},
	{SYS_sched_getaffinity, {0}, ALLOWED},
	{SYS_sched_getaffinity, {1}, REFUSE},
	{SYS_clone, {THREAD}, ALLOWED},
	{SYS_clone, {SIGCHLD}, REFUSE},
	{SYS_clone, {THREAD | CLONE_NEWUSER}, REFUSE},
	{SYS_clone, {THREAD | HIGH}, REFUSE},
	{SYS_clone, {THREAD & ~(uint64_t)CLONE_THREAD}, REFUSE},
	{SYS_clone3, {0}, UNKNOWN},
	{SYS_tgkill, {FILTER_OWN_PID, 1, SIGABRT}, ALLOWED},
	{SYS_tgkill, {FILTER_OWN_PID, 1, SIGSTOP}, REFUSE},
	{SYS_tgkill, {1, 1, SIGABRT}, REFUSE},
	{SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID}, ALLOWED},
	{SYS_clock_gettime, {CLOCK_OF_PROCESS_1}, REFUSE},
	{SYS_clock_getres, {CLOCK_MONOTONIC}, ALLOWED},
	{SYS_clock_getres, {CLOCK_OF_PROCESS_1}, REFUSE},
	{SYS_clock_nanosleep, {CLOCK_MONOTONIC}, ALLOWED},
	{SYS_clock_nanosleep, {CLOCK_PROCESS_CPUTIME_ID}, REFUSE},
	{SYS_clock_nanosleep, {CLOCK_OF_PROCESS_1}, REFUSE},
	{SYS_fcntl, {0, F_GETFD}, ALLOWED},
	{SYS_fcntl, {0, F_DUPFD_CLOEXEC}, ALLOWED},
	{SYS_fcntl, {0, F_SETFL, O_NONBLOCK}, ALLOWED},
	{SYS_fcntl, {0, F_SETFL, O_NONBLOCK | O_ASYNC}, REFUSE},
	{SYS_fcntl, {0, F_SETOWN, 1}, REFUSE},
	{SYS_fcntl, {0, F_SETSIG, SIGKILL}, REFUSE},
	{SYS_fcntl, {0, F_SETPIPE_SZ, 1 << 20}, REFUSE},
	{SYS_fcntl, {0, F_SETLEASE}, REFUSE},
	{SYS_fcntl, {0, F_NOTIFY}, REFUSE},
	{SYS_fcntl, {0, F_DUPFD_CLOEXEC | HIGH}, REFUSE},
	{SYS_ioctl, {0, 0x5401}, ALLOWED}, /* TCGETS */
	{SYS_ioctl, {0, 0x5412}, REFUSE},  /* TIOCSTI */
	{SYS_ioctl, {0, 0x5401 | HIGH}, REFUSE},
	{SYS_ioctl, {0, 0x541b}, REFUSE}, /* FIONREAD */
	{SYS_prlimit64, {0, 7, 0, 1}, ALLOWED},
	{SYS_prlimit64, {0, 7, 1, 0}, REFUSE},
	{SYS_prlimit64, {1, 7, 0, 1}, REFUSE},
	{SYS_socketpair, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0}, ALLOWED},
	{SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0}, REFUSE},
	{SYS_socketpair, {AF_INET, SOCK_STREAM, 0}, REFUSE},
	{SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, REFUSE},
	{SYS_sendto, {0, 1, 1, 0, 0}, ALLOWED},
	{SYS_sendto, {0, 1, 1, MSG_OOB, 0}, REFUSE},
	{SYS_sendto, {0, 1, 1, 0, 1}, REFUSE},
	{SYS_recvfrom, {0, 1, 1, 0, 0}, ALLOWED},
	{SYS_recvfrom, {0, 1, 1, MSG_OOB, 0}, REFUSE},
	{SYS_recvfrom, {0, 1, 1, MSG_PEEK, 0}, REFUSE},
};

/* A call's number on the filter's architecture. */
static int number_of(long native)
{
	auto_free char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)native);

	return seccomp_syscall_resolve_name_arch(FILTER_ARCH, name);
}

/* An allowed attempt at the call, to vary; NULL where its arguments decide nothing. */
static const struct attempt *allowed_attempt(int number)
{
	for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
		if (attempts[i].answer == ALLOWED && number_of(attempts[i].number) == number)
			return &attempts[i];
	return NULL;
}

static bool allowed_with(const struct attempt *attempt, int argument, uint64_t value)
{
	uint64_t arguments[6];

	memcpy(arguments, attempt->arguments, sizeof arguments);
	arguments[argument] = value;
	return evaluate(number_of(attempt->number), arguments) == ALLOWED;
}

/* Which of the bits may be turned over, one at a time, and which small values may stand there. */
static void write_argument(FILE *out, const struct attempt *attempt, int argument)
{
	uint64_t base = attempt->arguments[argument], free_bits = 0;
	int first = -1;

	for (int bit = 0; bit < 64; bit++)
		if (allowed_with(attempt, argument, base ^ 1ULL << bit))
			free_bits |= 1ULL << bit;
	if (free_bits == ~0ULL)
		return;
	fprintf(out, "    argument %d of %#" PRIx64 ": free bits %#" PRIx64 ", values", argument,
		base, free_bits);
	for (int value = 0; value <= VALUES; value++) {
		bool allowed = value < VALUES && allowed_with(attempt, argument, (uint64_t)value);

		if (allowed && first < 0)
			first = value;
		if (allowed || first < 0)
			continue;
		fprintf(out, first == value - 1 ? " %d" : " %d-%d", first, value - 1);
		first = -1;
	}
	fprintf(out, "\n");
}

static void write_call(FILE *out, int number)
{
	auto_free char *name = seccomp_syscall_resolve_num_arch(FILTER_ARCH, number);
	const struct attempt *attempt = allowed_attempt(number);
	uint32_t zeros = evaluate(number, ARGUMENTS(0));
	uint32_t ones = evaluate(number, ARGUMENTS(~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL));
	char one[16], two[16];

	if (zeros == REFUSE && ones == REFUSE && !attempt)
		return;
	fprintf(out, "%-3d %-20s %-8s %s\n", number, name, action_name(zeros, one),
		action_name(ones, two));
	for (int argument = 0; attempt && argument < 6; argument++)
		write_argument(out, attempt, argument);
}

/* G1-G7: a change of what any call answers is a change of the checked-in table. FILTER_WRITE=1
 * writes it anew; then its diff is what to review. */
static void every_number_answers_as_the_table_says(void **state)
{
	struct rlmd_error err = {0};
	auto_free char *expected = file_read(getenv(FILTER_TABLE), 1 << 16, NULL, &err);
	auto_free char *actual = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&actual, &size);

	(void)state;
	for (int number = 0; number <= filter_newest_call(); number++)
		write_call(out, number);
	fclose(out);
	if (getenv("FILTER_WRITE"))
		assert_true(file_write(getenv(FILTER_TABLE), text_of(actual), &err));
	assert_non_null(expected);
	assert_string_equal(actual, expected);
}

/* G7: what is younger than the policy does not exist, with whatever arguments. */
static void younger_calls_do_not_exist(void **state)
{
	(void)state;
	for (int number = filter_newest_call() + 1; number <= 600; number++) {
		assert_int_equal(evaluate(number, ARGUMENTS(0)), UNKNOWN);
		assert_int_equal(evaluate(number, ARGUMENTS(~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL)),
				 UNKNOWN);
	}
}

/* Every call whose arguments decide is tried with some that are allowed, so that none is left out
 * of the table. */
static void every_condition_is_tried(void **state)
{
	size_t count;
	const struct filter_rule *rules = filter_rules(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		if (rules[i].conditions[0] &&
		    !allowed_attempt(seccomp_syscall_resolve_name_arch(FILTER_ARCH, rules[i].call)))
			fail_msg("no attempt at %s is allowed", rules[i].call);
}

/* G7: the tables of other architectures are no way around this one. */
static void foreign_tables_kill(void **state)
{
	struct seccomp_data foreign = {.nr = 1, .arch = FOREIGN};

	(void)state;
	for (foreign.nr = 0; foreign.nr < 600; foreign.nr++)
		assert_int_equal(evaluate_data(&foreign), SECCOMP_RET_KILL_PROCESS);
	foreign.arch = FILTER_ARCH == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
	for (foreign.nr = 0; foreign.nr < 600; foreign.nr++)
		assert_int_equal(evaluate_data(&foreign), SECCOMP_RET_KILL_PROCESS);
#if FILTER_ARCH == AUDIT_ARCH_X86_64
	assert_int_equal(evaluate(0x40000000 + SYS_write, ARGUMENTS(0)), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(evaluate(0x40000000 + 520, ARGUMENTS(0)), SECCOMP_RET_KILL_PROCESS);
#endif
}

/* G3, G4, G5, G7, G8: only the arguments that the standard library needs. */
static void arguments_decide(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
		if (evaluate(number_of(attempts[i].number), attempts[i].arguments) !=
		    attempts[i].answer)
			fail_msg("attempt %zu, call %ld", i, attempts[i].number);
}

/* The worker writes its pid over one constant; a second one would let a signal through. */
static void own_pid_stands_once(void **state)
{
	size_t i, count = 0;

	(void)state;
	for (i = 0; i < filter.size; i++)
		count += filter.code[i].k == FILTER_OWN_PID;
	assert_int_equal(count, 1);
}

/* The program has the filter that was looked at here. */
static void the_program_has_it(void **state)
{
	(void)state;
	if (seccomp_arch_native() != FILTER_ARCH)
		return; /* it was built for this machine, not for that one */
	assert_int_equal(filter_of_workers.size, filter.size);
	assert_memory_equal(filter_of_workers.code, filter.code,
			    filter.size * sizeof filter.code[0]);
}

/* The filter cannot be changed after it was built. */
static void memory_file_is_sealed(void **state)
{
	struct rlmd_error err = {0};
	auto_close int fd = filter_memfd(&filter, &err);
	struct sock_filter code[FILTER_CODE_MAX];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, code, sizeof code, 0), filter.size * sizeof code[0]);
	assert_memory_equal(code, filter.code, filter.size * sizeof code[0]);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
}

/* The text for people is the table that it was compiled from, rule by rule. */
static void the_policy_can_be_read(void **state)
{
	auto_free char *text = rlmd_sandbox_policy();
	json_auto_t *policy = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *told, *rule;
	const struct filter_rule *rules;
	const char *call, *answer, *reason;
	size_t count, i, k;

	(void)state;
	rules = filter_rules(&count);
	told = json_object_get(policy, "rules");
	assert_int_equal(json_array_size(told), count);
	assert_true(count > 60);
	assert_int_equal(json_integer_value(json_object_get(policy, "newest")),
			 filter_newest_call());
	json_array_foreach (told, i, rule) {
		json_t *conditions;

		assert_int_equal(json_unpack(rule, "{s:s, s:s, s:o, s:s !}", "call", &call,
					     "answer", &answer, "conditions", &conditions, "reason",
					     &reason),
				 0);
		assert_string_equal(call, rules[i].call);
		assert_string_equal(answer, rules[i].answer);
		assert_string_equal(reason, rules[i].reason);
		assert_true(*reason);
		for (k = 0; k < FILTER_CONDITIONS_MAX && rules[i].conditions[k]; k++)
			assert_string_equal(json_string_value(json_array_get(conditions, k)),
					    rules[i].conditions[k]);
		assert_int_equal(json_array_size(conditions), k);
		/* Calls that are allowed under a condition say so, and nothing else has any. */
		assert_true(!k || !strcmp(answer, "allow"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_answers_as_the_table_says),
		cmocka_unit_test(younger_calls_do_not_exist),
		cmocka_unit_test(every_condition_is_tried),
		cmocka_unit_test(foreign_tables_kill),
		cmocka_unit_test(arguments_decide),
		cmocka_unit_test(own_pid_stands_once),
		cmocka_unit_test(the_program_has_it),
		cmocka_unit_test(memory_file_is_sealed),
		cmocka_unit_test(the_policy_can_be_read),
	};

	return cmocka_run_group_tests_name(FILTER_TABLE, tests, build, NULL);
}
