/* batch/tenancies: what a tenant's jobs are given, which models they may ask, where their contexts
 * are. With a real engine, whose jobs never run. */
#include "batch/tenancies.h"

#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "batch/job_line.h"

enum { ASKED_MAX = 8 };

static struct {
	struct rlmd_engine *engine;
	struct tenants tenants;
	struct tenancy_needs needs[ASKED_MAX];
	size_t asked;
	char key_file[64]; /* that the last provider was wanted with */
} stage;

static struct rlmd_sandbox *give_sandbox(void *owner, const struct tenancy_needs *needs,
					 struct rlmd_error *err)
{
	(void)owner;
	(void)err;
	assert_true(stage.asked < ASKED_MAX);
	stage.needs[stage.asked++] = *needs;
	return (struct rlmd_sandbox *)&stage;
}

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	(void)owner;
	(void)request;
	fail();
}

static struct rlmd_provider *give_provider(void *owner, const char *kind, const char *key_file,
					   struct rlmd_error *err)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .name = kind, .ask = on_ask};

	(void)owner;
	strncpy(stage.key_file, key_file, sizeof stage.key_file - 1);
	if (!strcmp(key_file, "missing")) {
		error_set(err, RLMD_ERROR_USAGE, "no such key");
		return NULL;
	}
	return rlmd_provider_new(&options, err);
}

static void set(const char *tenant, const char *setting, const char *value)
{
	struct rlmd_error err;

	if (!tenants_set(&stage.tenants, tenant, setting, value, &err))
		fail_msg("%s", err.text);
}

static int set_up(void **state)
{
	(void)state;
	memset(&stage, 0, sizeof stage);
	stage.engine = rlmd_engine_new(NULL, NULL);
	return !stage.engine;
}

static int tear_down(void **state)
{
	(void)state;
	rlmd_engine_free(stage.engine);
	tenants_done(&stage.tenants);
	return 0;
}

static struct tenancies *open_tenancies(const char *require)
{
	const struct tenancies_options options = {
		.engine = stage.engine,
		.tenants = &stage.tenants,
		.kind = "openai",
		.require = require,
		.provider = give_provider,
		.sandbox = give_sandbox,
	};

	return tenancies_new(&options);
}

static void assert_able(const struct tenancy *tenancy)
{
	if (tenancy->unable.kind)
		fail_msg("%s: %s", tenancy->name, tenancy->unable.text);
}

/* Where rlmd.conf has none, all are as the command's settings are. */
static void test_nobody(void **state)
{
	struct tenancies *tenancies = open_tenancies(NULL);
	struct tenancy *nobody = tenancies_get(tenancies, text_of(""));
	struct rlmd_job_options options = {.model = "m", .subcall_model = "s"};

	(void)state;
	assert_able(nobody);
	assert_ptr_equal(tenancies_get(tenancies, text_of("")), nobody);
	assert_int_equal(tenancies_weight(nobody), 1);
	assert_null(stage.needs[0].require);
	assert_int_equal(stage.needs[0].parts, 1);
	assert_true(tenancies_give(nobody, NULL, &options, NULL));
	assert_null(options.tenant);
	assert_null(options.provider);
	assert_string_equal(options.model, "m");
	assert_string_equal(options.subcall_model, "s");
	assert_ptr_equal(options.group, nobody->group);
	assert_true(tenancies_give(nobody, "openai/other", &options, NULL));
	assert_string_equal(options.model, "openai/other");
	tenancies_free(tenancies);
	tenancies_free(NULL);
}

/* Uids of their own for those that rlmd.conf knows; all others share a place. */
static void test_needs(void **state)
{
	struct tenancies *tenancies;

	(void)state;
	set("acme", "worker-memory", "128M");
	set("acme", "require", "L4");
	set("acme", "weight", "3");
	set("beta", "require", "L1");
	tenancies = open_tenancies(NULL);
	tenancies_expect(tenancies, 2);
	assert_able(tenancies_get(tenancies, text_of("acme")));
	assert_able(tenancies_get(tenancies, text_of("beta")));
	assert_int_equal(tenancies_weight(tenancies_get(tenancies, text_of("acme"))), 3);
	assert_int_equal(stage.asked, 2);
	assert_int_equal(stage.needs[0].worker_memory, 128 << 20);
	assert_int_equal(stage.needs[0].uid_range, 0);
	assert_int_equal(stage.needs[0].parts, 2);
	assert_string_equal(stage.needs[0].require, "L4");
	assert_int_equal(stage.needs[1].uid_range, 1);
	assert_string_equal(stage.needs[1].require, "L3"); /* a tenant never gets less */
	tenancies_free(tenancies);
	tenancies = open_tenancies("L2"); /* the operator says that less will do */
	tenancies_expect(tenancies, 2);
	tenancies_get(tenancies, text_of("beta"));
	assert_string_equal(stage.needs[2].require, "L2");
	tenancies_free(tenancies);
}

/* Jobs of others than rlmd.conf has are not done with the operator's key. */
static void test_strangers(void **state)
{
	struct tenancies *tenancies;
	struct tenancy *stranger, *nobody;

	(void)state;
	set("acme", "weight", "1");
	tenancies = open_tenancies(NULL);
	stranger = tenancies_get(tenancies, text_of("evil"));
	nobody = tenancies_get(tenancies, text_of(""));
	assert_true(stranger->stranger && nobody->stranger);
	assert_int_equal(stranger->unable.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(stranger->unable.text, "evil"));
	assert_non_null(strstr(nobody->unable.text, "--default-tenant NAME"));
	tenancies_free(tenancies);
}

static void assert_model(const struct tenancy *tenancy, const char *model, const char *wanted)
{
	struct rlmd_job_options options = {.model = "usual"};
	struct rlmd_error err = {0};
	bool good = tenancies_give(tenancy, model, &options, &err);

	if (wanted) {
		assert_true(good);
		assert_string_equal(options.model, wanted);
	} else {
		assert_false(good);
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	}
}

/* A tenant with a key asks under it, whatever a job's model begins with, and nobody else does. */
static void test_keys(void **state)
{
	struct tenancies *tenancies;
	struct tenancy *acme, *beta, *gone;

	(void)state;
	set("acme", "key-file", "acme.key");
	set("beta", "weight", "1");
	set("gone", "key-file", "missing");
	tenancies = open_tenancies("L1");
	acme = tenancies_get(tenancies, text_of("acme"));
	beta = tenancies_get(tenancies, text_of("beta"));
	assert_able(acme);
	assert_able(beta);
	assert_string_equal(stage.key_file, "acme.key");
	assert_string_equal(acme->provider, "acme.openai");
	assert_model(acme, "openai/m", "m");
	assert_model(acme, "acme.openai/m", "m");
	assert_model(acme, "org/m", "org/m");
	assert_model(acme, "anthropic/m", NULL); /* it has no key there */
	assert_model(beta, "anthropic/m", "anthropic/m");
	assert_model(beta, "acme.openai/m", NULL); /* another one's key */
	gone = tenancies_get(tenancies, text_of("gone"));
	assert_string_equal(gone->unable.text, "no such key");
	tenancies_free(tenancies);
}

static void test_models(void **state)
{
	struct tenancies *tenancies;
	struct tenancy *acme;
	struct rlmd_job_options options = {.model = "usual", .subcall_model = "small-2"};

	(void)state;
	set("acme", "models", "big*, small");
	tenancies = open_tenancies(NULL);
	acme = tenancies_get(tenancies, text_of("acme"));
	assert_model(acme, "big-1", "big-1");
	assert_model(acme, "other", NULL);
	assert_model(acme, NULL, "small"); /* the first that is one name */
	assert_true(tenancies_give(acme, "big-1", &options, NULL));
	assert_null(options.subcall_model); /* it may not use the command's */
	assert_int_equal(options.model_count, 2);
	assert_string_equal(options.models[1], "small");
	assert_string_equal(options.tenant, "acme");
	tenancies_free(tenancies);
}

static char *path_of(const struct tenancy *tenancy, const char *text, struct rlmd_error *err)
{
	struct job_line line;
	char *path;

	assert_true(job_line_read(text_of(text), &line, err));
	path = tenancies_path(tenancy, &line, "/jobs", err);
	job_line_done(&line);
	return path;
}

#define FILE_LINE(path) "{\"custom_id\":\"a\",\"task\":\"t\",\"context_file\":\"" path "\"}"

static void test_contexts(void **state)
{
	char root[] = "/tmp/test_tenancies-XXXXXX";
	auto_free char *inside = NULL, *free_path = NULL, *file = NULL, *real = NULL;
	auto_free char *line = NULL;
	struct rlmd_error err = {0};
	struct tenancies *tenancies;
	struct tenancy *acme;

	(void)state;
	assert_non_null(mkdtemp(root));
	file = xasprintf("%s/a", root);
	assert_true(file_write(file, text_of("x"), NULL));
	set("acme", "root", root);
	tenancies = open_tenancies(NULL);
	acme = tenancies_get(tenancies, text_of("acme"));
	line = xasprintf(FILE_LINE("%s"), file);
	inside = path_of(acme, line, &err);
	real = realpath(file, NULL);
	assert_string_equal(inside, real);
	assert_null(path_of(acme, FILE_LINE("/etc/passwd"), &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_null(path_of(acme, "{\"custom_id\":\"a\",\"task\":\"t\"}", &err));
	assert_int_equal(err.kind, RLMD_ERROR_NONE);
	tenancies_free(tenancies);
	tenants_done(&stage.tenants);
	memset(&stage.tenants, 0, sizeof stage.tenants);
	tenancies = open_tenancies(NULL); /* no tenants: paths are as they stand */
	free_path = path_of(tenancies_get(tenancies, text_of("")), FILE_LINE("x"), &err);
	assert_string_equal(free_path, "/jobs/x");
	tenancies_free(tenancies);
	assert_int_equal(unlink(file) | rmdir(root), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nobody), TEST(test_needs),  TEST(test_strangers),
		TEST(test_keys),   TEST(test_models), TEST(test_contexts),
	};

	alloc_install();
	return cmocka_run_group_tests_name("tenancies", tests, NULL, NULL);
}
