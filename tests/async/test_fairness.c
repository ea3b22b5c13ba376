/* Whose turn it is, of several flows: by counts, and of many random ones by what must always hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async/scheduler.h"
#include "base/alloc.h"

enum { FLOWS = 12, CALLS = 40, CROWD = 100000 };

/* One permit that is wanted, or had. */
struct call {
	struct job *job;
	struct permit *permit; /* NULL: neither */
	int priority;
	int64_t number; /* the order in which they came */
};

/* A flow as it should be, beside the real one. */
struct job {
	struct flow *flow; /* NULL: there is none */
	struct job *above; /* NULL: right below the scheduler */
	char name;
	unsigned weight;
	size_t limit, held;
	struct call calls[CALLS];
};

static struct event_base *base;
static struct scheduler *scheduler;
static struct job top, jobs[FLOWS];
static int64_t numbers;
static bool keeps;       /* whoever is served has its permit until it is taken; else a moment */
static char served[512]; /* names, in their order */
static void (*on_served)(struct call *);

static void leave(struct call *call)
{
	if (permit_held(call->permit))
		for (struct job *job = call->job; job; job = job->above)
			job->held--;
	permit_free(call->permit);
	call->permit = NULL;
}

/* One at a time: the loop comes back after each. */
static void on_permit(void *owner)
{
	struct call *call = owner;
	size_t length = strlen(served);

	if (length + 1 < sizeof served) {
		served[length] = call->job->name;
		served[length + 1] = '\0';
	}
	for (struct job *job = call->job; job; job = job->above)
		job->held++;
	if (on_served)
		on_served(call);
	if (!keeps)
		leave(call);
	event_base_loopbreak(base);
}

static void ask(struct job *job, struct call *call, int priority)
{
	*call = (struct call){.job = job, .priority = priority, .number = numbers++};
	call->permit = permit_ask(job->flow, priority, on_permit, call);
}

static struct job *open_job(int index, struct job *above, unsigned weight)
{
	struct job *job = &jobs[index];

	*job = (struct job){.flow = flow_new(above->flow, weight),
			    .above = above,
			    .name = (char)('a' + index),
			    .weight = weight,
			    .limit = FLOW_UNLIMITED};
	return job;
}

static void close_job(struct job *job)
{
	for (int i = 0; i < CALLS; i++)
		leave(&job->calls[i]);
	flow_free(job->flow);
	job->flow = NULL;
}

static void limit(struct job *job, size_t most)
{
	job->limit = most;
	flow_set_limit(job->flow, most);
}

/* So many more are served, if as many may be. */
static const char *serve(int count)
{
	served[0] = '\0';
	while (count--)
		event_base_loop(base, EVLOOP_NONBLOCK);
	return served;
}

static int set_up(void **state)
{
	(void)state;
	base = event_base_new();
	scheduler = scheduler_new(base, 1);
	top = (struct job){.flow = scheduler_flow(scheduler), .limit = 1};
	memset(jobs, 0, sizeof jobs);
	keeps = false;
	on_served = NULL;
	return 0;
}

/* The last ones are below the first ones. */
static int tear_down(void **state)
{
	(void)state;
	for (int i = FLOWS; i--;)
		close_job(&jobs[i]);
	scheduler_free(scheduler);
	event_base_free(base);
	return 0;
}

static int count_of(char name)
{
	int count = 0;

	for (const char *at = served; *at; at++)
		count += *at == name;
	return count;
}

static void ask_often(struct job *job, int count)
{
	for (int i = 0; i < CALLS && count; i++)
		if (!job->calls[i].permit) {
			ask(job, &job->calls[i], 0);
			count--;
		}
	assert_int_equal(count, 0);
}

static struct call crowd[CROWD];

static void ask_in_crowds(struct job *job, int count)
{
	for (int i = 0; i < count; i++)
		ask(job, &crowd[i], 0);
}

static void leave_in_crowds(int count)
{
	for (int i = 0; i < count; i++)
		leave(&crowd[i]);
}

/* A call waits for one turn of the job that has ten thousand, and so does each after it. */
static void test_a_call_beside_ten_thousand(void **state)
{
	struct job *many = open_job(0, &top, 1), *one = open_job(1, &top, 1);

	(void)state;
	ask_in_crowds(many, 10000);
	assert_string_equal(serve(5), "aaaaa");
	for (int i = 0; i < 5; i++) {
		ask_often(one, 1);
		assert_non_null(strchr(serve(2), 'b'));
	}
	ask_often(one, 3);
	assert_int_equal(strspn(serve(6), "ab"), 6);
	assert_null(strstr(served, "aa"));
	leave_in_crowds(10000);
}

static void ask_again(struct call *call)
{
	if (call->job->name == 'b')
		ask_often(call->job, 1);
}

/* A flow that always has one call takes turns with one that has many: neither is before the other.
 */
static void test_one_after_the_other(void **state)
{
	struct job *many = open_job(0, &top, 1), *one = open_job(1, &top, 1);

	(void)state;
	on_served = ask_again;
	ask_in_crowds(many, 100);
	ask_often(one, 1);
	assert_string_equal(serve(10), "ababababab");
	on_served = NULL;
	leave_in_crowds(100);
}

/* With more permits than one, too: the next that comes free is its own. */
static void test_the_next_permit(void **state)
{
	struct job *many = open_job(0, &top, 1), *one = open_job(1, &top, 1);

	(void)state;
	keeps = true;
	limit(&top, 4);
	ask_in_crowds(many, 10000);
	assert_string_equal(serve(9), "aaaa");
	ask_often(one, 1);
	assert_string_equal(serve(3), "");
	leave(&crowd[2]);
	assert_string_equal(serve(3), "b");
	leave_in_crowds(10000);
}

/* A flow that was idle while another was served a hundred times takes turns with it, and no more.
 */
static void test_no_credit(void **state)
{
	struct job *busy = open_job(0, &top, 1), *idle = open_job(1, &top, 1);

	(void)state;
	ask_in_crowds(busy, 200);
	serve(100);
	ask_often(idle, 20);
	assert_string_equal(serve(10), "bababababa");
	leave_in_crowds(200);
}

/* Of weights 1, 2 and 4: in every seven turns they have as many. */
static void test_weights(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		ask_often(open_job(i, &top, 1U << i), 40);
	for (int round = 0; round < 10; round++) {
		serve(7);
		for (int i = 0; i < 3; i++)
			assert_int_equal(count_of((char)('a' + i)), 1 << i);
	}
}

/* A tenant's share is its own, however many jobs it has, or opens one after the other. */
static void test_tenants(void **state)
{
	struct job *tenant = open_job(0, &top, 1), *other = open_job(1, &top, 1);

	(void)state;
	ask_often(open_job(2, tenant, 1), 10);
	ask_often(open_job(3, tenant, 1), 10);
	ask_often(other, 20);
	assert_string_equal(serve(8), "cbdbcbdb");
	for (int i = 4; i < 8; i++) {
		close_job(&jobs[i - 2]);
		ask_often(open_job(i, tenant, 1), 10);
		serve(8);
		assert_int_equal(count_of('b'), 4);
		if (i < 6)
			ask_often(other, 8);
		else
			ask_often(other, 4);
	}
}

/* At its limit a flow leaves the others what it may not take; it has saved nothing up there. */
static void test_limit(void **state)
{
	struct job *limited = open_job(0, &top, 1), *other = open_job(1, &top, 1);

	(void)state;
	keeps = true;
	limit(limited, 2);
	limit(&top, 30);
	ask_often(limited, 20);
	ask_often(other, 40);
	assert_int_equal(strlen(serve(40)), 30);
	assert_int_equal(count_of('a'), 2);
	limit(limited, 5);
	limit(&top, 40);
	assert_string_equal(serve(4), "abab");
	limit(limited, 0);
	leave(&limited->calls[0]);
	leave(&other->calls[0]);
	assert_string_equal(serve(4), "bbbb");
}

/* A hundred thousand in line, who leave from the midst: others are served all the same. */
static void test_a_hundred_thousand(void **state)
{
	struct job *many = open_job(0, &top, 1), *one = open_job(1, &top, 1);

	(void)state;
	ask_in_crowds(many, CROWD);
	for (int i = 0; i < CROWD; i += 2)
		leave(&crowd[i]);
	ask_often(one, 1);
	assert_non_null(strchr(serve(2), 'b'));
	for (int i = 0; i < CROWD / 2; i++)
		serve(1);
	for (int i = 0; i < CROWD; i++)
		assert_null(crowd[i].permit);
}

/* Two flows below the same one are served by their weights, while both could always be served. */
static struct {
	bool both;
	double had[2];
} pairs[FLOWS][FLOWS];

static bool is_ready(const struct job *job)
{
	bool waits = false;

	for (int i = 0; i < CALLS; i++)
		waits |= job->calls[i].permit && !permit_held(job->calls[i].permit);
	for (int i = 0; i < FLOWS && !waits; i++)
		waits = jobs[i].flow && jobs[i].above == job && is_ready(&jobs[i]);
	return waits && job->held < job->limit;
}

static void look(void)
{
	bool ready[FLOWS];

	for (int i = 0; i < FLOWS; i++)
		ready[i] = is_ready(&jobs[i]);
	for (int i = 0; i < FLOWS; i++)
		for (int k = 0; k < FLOWS; k++) {
			bool both = ready[i] && ready[k] && jobs[i].above == jobs[k].above;

			if (!both || !pairs[i][k].both)
				memset(&pairs[i][k], 0, sizeof pairs[i][k]);
			pairs[i][k].both = both;
		}
}

static long turns, comparisons; /* comparisons: with what another flow had */

/* Start-time fair queueing's bound: a turn of each. */
static void check_share(const struct job *job)
{
	size_t index = (size_t)(job - jobs);

	for (size_t i = 0; i < FLOWS; i++) {
		double most = 1.0 / job->weight + 1.0 / jobs[i].weight + 1e-3;

		if (i == index || !pairs[index][i].both)
			continue;
		comparisons++;
		pairs[index][i].had[0] += 1.0 / job->weight;
		pairs[i][index].had[1] += 1.0 / job->weight;
		assert_true(pairs[index][i].had[0] - pairs[index][i].had[1] <= most);
	}
}

static void check_turn(struct call *call)
{
	assert_true(permit_held(call->permit));
	for (const struct job *job = call->job; job; job = job->above) {
		assert_true(job->held <= job->limit);
		if (job != &top)
			check_share(job);
	}
	for (int i = 0; i < CALLS; i++) {
		const struct call *other = &call->job->calls[i];

		if (!other->permit || permit_held(other->permit))
			continue;
		assert_true(other->priority < call->priority ||
			    (other->priority == call->priority && other->number > call->number));
	}
	look();
}

static uint32_t dice;

static unsigned roll(unsigned sides)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % sides;
}

enum { TENANTS = 3, BELOW_TENANTS = 9 };

static void open_random_jobs(void)
{
	for (int i = 0; i < FLOWS; i++) {
		bool below = i >= TENANTS && i < BELOW_TENANTS;

		open_job(i, below ? &jobs[i % TENANTS] : &top, 1 + roll(5));
	}
}

static void end_one_of(struct job *leaf)
{
	for (int i = 0; i < CALLS; i++)
		if (permit_held(leaf->calls[i].permit)) {
			leave(&leaf->calls[i]);
			return;
		}
}

static void change_something(void)
{
	struct job *job = &jobs[roll(FLOWS)], *leaf = &jobs[TENANTS + roll(FLOWS - TENANTS)];
	struct call *call = &leaf->calls[roll(CALLS)];

	switch (roll(40)) {
	case 0:
		limit(&top, roll(8));
		break;
	case 1:
		limit(job, roll(2) ? roll(6) : FLOW_UNLIMITED);
		break;
	default:
		if (roll(2))
			end_one_of(leaf);
		else if (!call->permit)
			ask(leaf, call, (int)roll(3));
		else
			leave(call);
	}
	look();
}

/* Flows come, leave, change and are served: never more than there are, never fewer than could
 * be, each flow its share, and of one flow the right one. */
static void test_random_flows(void **state)
{
	(void)state;
	turns = comparisons = 0;
	keeps = true;
	on_served = check_turn;
	for (dice = 1; dice <= 20; dice++) {
		uint32_t seed = dice;

		open_random_jobs();
		for (int step = 0; step < 4000; step++) {
			change_something();
			if (roll(3))
				continue;
			while (*serve(1))
				turns++;
			assert_false(is_ready(&top));
		}
		for (int i = FLOWS; i--;)
			close_job(&jobs[i]);
		look();
		dice = seed;
	}
	assert_true(turns > 10000 && comparisons > 10000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_call_beside_ten_thousand),
		TEST(test_one_after_the_other),
		TEST(test_the_next_permit),
		TEST(test_no_credit),
		TEST(test_weights),
		TEST(test_tenants),
		TEST(test_limit),
		TEST(test_a_hundred_thousand),
		TEST(test_random_flows),
	};

	return cmocka_run_group_tests_name("fairness", tests, NULL, NULL);
}
