#include "llm/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "child.h"
#include "llm/key.h"
#include "llm/provider.h"
#include "net/body.h"

enum { DAY_MS = 86400000 };

static struct event_base *base;
static char dir[64];
static struct rlmd_provider *provider;
static struct llm_message message = {.role = LLM_USER};
static struct llm_request request = {
	.model = "m", .messages = &message, .message_count = 1, .max_tokens = 100};

static int setup(void **state)
{
	static const struct rlmd_provider_options config = {.kind = "ollama"};

	(void)state;
	strcpy(dir, "/tmp/rlmd-cache-XXXXXX");
	base = event_base_new();
	provider = provider_new(&config, NULL);
	message.text = text_of("a question");
	return !mkdtemp(dir) || !provider;
}

/* Each file of the directory; how many there are. */
static int each(void (*visit)(int dir_fd, const char *name))
{
	DIR *files = opendir(dir);
	const struct dirent *file;
	int count = 0;

	while ((file = readdir(files)))
		if (file->d_name[0] != '.') {
			visit(dirfd(files), file->d_name);
			count++;
		}
	closedir(files);
	return count;
}

static void remove_file(int dir_fd, const char *name)
{
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
}

static int teardown(void **state)
{
	(void)state;
	each(remove_file);
	provider_unref(provider);
	event_base_free(base);
	return rmdir(dir);
}

static struct cache *open_cache(int64_t size)
{
	struct rlmd_error err;
	struct cache *cache = cache_new(base, dir, size, &err);

	if (!cache)
		fail_msg("%s", err.text);
	return cache;
}

static struct cache_address address_of(const char *tenant, int64_t n)
{
	struct cache_address address;

	cache_address_init(&address, provider, tenant, &request);
	cache_address_number(&address, n);
	return address;
}

static void keep(struct cache *cache, const struct cache_address *address, const char *text)
{
	struct llm_response response = {.text = text_of(text), .model = "m-resolved"};

	struct exchange_file *file = cache_keep(cache, address, &response, NULL);

	assert_non_null(file);
	assert_int_equal(exchange_write(file, SIZE_MAX, NULL), EXCHANGE_WHOLE);
	exchange_file_free(file);
}

/* "" where there is none. */
static const char *find(struct cache *cache, const struct cache_address *address, int64_t age_ms)
{
	static char text[64];
	struct cache_reading *reading = cache_find(cache, address, age_ms);
	struct exchange exchange;

	*text = '\0';
	if (!reading)
		return text;
	while (cache_read(reading, 256))
		continue;
	if (cache_take(reading, &exchange)) {
		snprintf(text, sizeof text, "%.40s", exchange.text);
		assert_string_equal(exchange.model, "m-resolved");
		exchange_done(&exchange);
	}
	cache_reading_free(reading);
	return text;
}

static void test_found_again(void **state)
{
	struct cache *cache = open_cache(1 << 20), *other = open_cache(1 << 20);
	struct cache_address first = address_of(NULL, 0), second = address_of(NULL, 1);

	(void)state;
	assert_string_equal(find(cache, &first, DAY_MS), "");
	keep(cache, &first, "one");
	assert_string_equal(find(other, &first, DAY_MS), "one");
	assert_string_equal(find(other, &second, DAY_MS), "");
	keep(other, &first, "two");
	assert_string_equal(find(cache, &first, DAY_MS), "two");
	assert_string_equal(find(cache, &first, -1), "");
	cache_free(cache);
	cache_free(other);
}

/* The parts that identify a request do, and nothing else. */
static void test_places(void **state)
{
	struct cache_address plain = address_of(NULL, 0), same;
	char stop[] = "end", *stops[] = {stop, NULL};

	(void)state;
	request.deadline = 5;
	request.asked_tokens = 100;
	request.max_tokens = 64;
	request.turn = 3;
	message.text = text_of("with 3s left");
	message.timeless = text_of("a question");
	same = address_of(NULL, 0);
	assert_string_equal(plain.name, same.name);
	request.asked_tokens = 99;
	same = address_of(NULL, 0);
	assert_string_not_equal(plain.name, same.name);
	request.asked_tokens = 100;
	request.sampling.stops = (const char *const *)stops;
	request.sampling.stop_count = 1;
	same = address_of(NULL, 0);
	assert_string_not_equal(plain.name, same.name);
	request.sampling = (struct llm_sampling){0};
	message.role = LLM_SYSTEM;
	same = address_of(NULL, 0);
	assert_string_not_equal(plain.name, same.name);
	message = (struct llm_message){.role = LLM_USER};
	request.asked_tokens = 0;
	request.max_tokens = 100;
}

/* Neither by its name nor with it: who takes a tenant's entry for his own is not believed. */
static void test_tenants(void **state)
{
	struct cache *cache = open_cache(1 << 20);
	struct cache_address one = address_of("one", 0), two = address_of("two", 0), none;
	auto_free char *from = NULL, *to = NULL;

	(void)state;
	none = address_of(NULL, 0);
	keep(cache, &one, "secret");
	assert_string_not_equal(one.name, two.name);
	assert_string_equal(find(cache, &two, DAY_MS), "");
	assert_string_equal(find(cache, &none, DAY_MS), "");
	from = xasprintf("%s/%s", dir, one.name);
	to = xasprintf("%s/%s", dir, two.name);
	assert_int_equal(link(from, to), 0);
	assert_string_equal(find(cache, &two, DAY_MS), "");
	assert_string_equal(find(cache, &one, DAY_MS), "secret");
	cache_free(cache);
}

/* Two providers may have models of one name, and two keys may have different rights. */
static void test_providers(void **state)
{
	static const struct rlmd_provider_options configs[] = {
		{.kind = "openai", .base_url = "http://127.0.0.1:1/v1", .key = "one"},
		{.kind = "openai", .base_url = "http://127.0.0.1:2/v1", .key = "one"},
		{.kind = "openai", .base_url = "http://127.0.0.1:1/v1", .key = "two"},
		{.kind = "ollama", .base_url = "http://127.0.0.1:1/v1"},
	};
	enum { COUNT = sizeof configs / sizeof *configs };
	struct cache_address addresses[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		struct rlmd_provider *other = provider_new(&configs[i], NULL);

		assert_true(provider_bind(other, base, NULL) && provider_open(other, NULL));
		cache_address_init(&addresses[i], other, NULL, &request);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(addresses[i].name, addresses[j].name);
		provider_unbind(other);
		provider_unref(other);
	}
}

/* Others who may write could put answers there. */
static void test_what_others_may_write(void **state)
{
	static const mode_t others[] = {S_IWGRP, S_IWOTH};
	struct cache *cache = open_cache(1 << 20);
	struct cache_address address = address_of(NULL, 0);
	auto_free char *path = NULL;
	struct rlmd_error err;

	(void)state;
	keep(cache, &address, "an answer");
	path = xasprintf("%s/%s", dir, address.name);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(chmod(path, 0600 | others[i]), 0);
		assert_string_equal(find(cache, &address, DAY_MS), "");
		assert_int_equal(chmod(path, 0600), 0);
		assert_string_equal(find(cache, &address, DAY_MS), "an answer");
		assert_int_equal(chmod(dir, 0700 | others[i]), 0);
		assert_null(cache_new(base, dir, 1 << 20, &err));
		assert_non_null(strstr(err.text, "others may write to the cache"));
		assert_int_equal(chmod(dir, 0700), 0);
	}
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_string_equal(find(cache, &address, DAY_MS), "");
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_null(cache_new(base, dir, 1 << 20, &err));
		assert_non_null(strstr(err.text, "belongs to uid 65534 and not to us (0)"));
		assert_int_equal(chown(dir, 0, 0), 0);
	}
	cache_free(cache);
}

static int64_t ahead_ms; /* that the clock goes */

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

int64_t __wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() + ahead_ms;
}

/* An entry of the future would never be too old: a minute is left to the clocks of others. */
static void test_ages(void **state)
{
	static const struct {
		int64_t ahead_ms;
		bool found;
	} rows[] = {{0, true},
		    {-DAY_MS, true},
		    {-2 * (int64_t)DAY_MS, false},
		    {30000, true},
		    {DAY_MS, false}};
	struct cache *cache = open_cache(1 << 20);
	struct cache_address address = address_of(NULL, 0);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		ahead_ms = rows[i].ahead_ms;
		keep(cache, &address, "an answer");
		ahead_ms = 0;
		assert_string_equal(find(cache, &address, DAY_MS + DAY_MS / 2),
				    rows[i].found ? "an answer" : "");
	}
	cache_free(cache);
}

/* One that alone is more than all may be is not kept. */
static void test_too_large(void **state)
{
	struct cache *cache = open_cache(1000);
	struct cache_address address = address_of(NULL, 0);
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	keep(cache, &address, text);
	assert_int_equal(each(remove_file), 0);
	keep(cache, &address, "short");
	assert_string_equal(find(cache, &address, DAY_MS), "short");
	cache_free(cache);
}

/* An entry that is being written is the parent's, and stays, where the child of a fork gives it up.
 */
static void test_in_the_child_of_a_fork(void **state)
{
	struct cache *cache = open_cache(1 << 20);
	struct cache_address address = address_of(NULL, 0);
	struct llm_response response = {.text = text_of("an answer"), .model = "m-resolved"};
	struct exchange_file *file = cache_keep(cache, &address, &response, NULL);
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		cache_cut(cache);
		exchange_file_free(file);
		cache_free(cache);
		child_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(exchange_write(file, SIZE_MAX, NULL), EXCHANGE_WHOLE);
	exchange_file_free(file);
	assert_string_equal(find(cache, &address, DAY_MS), "an answer");
	cache_free(cache);
}

/* Every byte of an entry counts, and its length. */
static void test_damaged(void **state)
{
	struct cache *cache = open_cache(1 << 20);
	struct cache_address address = address_of(NULL, 0);
	auto_free char *path = NULL;
	struct stat st;
	int fd;

	(void)state;
	keep(cache, &address, "an answer");
	path = xasprintf("%s/%s", dir, address.name);
	fd = open(path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		char byte, other;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = (char)(byte ^ 1);
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		if (*find(cache, &address, DAY_MS))
			fail_msg("byte %ld does not count", (long)at);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_string_equal(find(cache, &address, DAY_MS), "an answer");
	for (off_t size = st.st_size - 1; size >= 0; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_string_equal(find(cache, &address, DAY_MS), "");
	}
	close(fd);
	cache_free(cache);
}

static int64_t total;

static void add_size(int dir_fd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
	total += st.st_size;
}

/* While it is open, in steps of the loop, and when it is closed. */
static void test_size(void **state)
{
	enum { ENTRIES = 400, SIZE = 40000 };
	struct cache *cache = open_cache(SIZE);
	struct cache_address last = address_of(NULL, ENTRIES - 1);

	(void)state;
	for (int i = 0; i < ENTRIES; i++) {
		struct cache_address address = address_of(NULL, i);

		keep(cache, &address, "forty bytes, or nearly so many, of text");
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	total = 0;
	assert_true(each(add_size) < ENTRIES);
	assert_true(total < 3 * SIZE);
	assert_string_not_equal(find(cache, &last, DAY_MS), "");
	cache_free(cache);
	total = 0;
	each(add_size);
	assert_in_range(total, SIZE / 2, SIZE);
}

/* A file of which the test has all pieces. */
struct noted {
	struct exchange_file file;
	struct evbuffer *pieces;
};

static void note(struct exchange_file *file, struct rlmd_text piece)
{
	evbuffer_add(((struct noted *)file)->pieces, piece.bytes, piece.size);
}

static bool commit(struct exchange_file *file, struct rlmd_error *err)
{
	(void)file;
	(void)err;
	return true;
}

static void free_noted(struct exchange_file *file)
{
	close(file->fd);
}

/* The bytes of a file with this entry, and with `rest` behind it, to `put`. */
static void write_to(struct evbuffer *put, const struct key_list *keys, struct body *entry,
		     struct rlmd_text rest)
{
	struct noted noted = {{.entry = entry,
			       .rest = rest,
			       .keys = keys,
			       .fd = open("/dev/null", O_WRONLY),
			       .piece = note,
			       .commit = commit,
			       .free = free_noted},
			      put};

	evbuffer_drain(put, evbuffer_get_length(put));
	assert_int_equal(exchange_write(&noted.file, 65536, NULL), EXCHANGE_MORE);
	assert_int_equal(exchange_write(&noted.file, SIZE_MAX, NULL), EXCHANGE_WHOLE);
	exchange_file_free(&noted.file);
}

/* Text that is written without a tree is what the tree says, but for keys; of a recording, and of a
 * cache. A key is cut by the end of the first piece in each. */
static void test_written_as_it_is(void **state)
{
	static char text[140000], key[] = "the-key-itself";
	struct llm_response response = {
		.model = "m", .thinking = text_of("th\"ought"), .usage.input = 7};
	const struct key_list keys = {(char *[]){key}, 1};
	auto_evbuffer struct evbuffer *put = evbuffer_new(), *facts = evbuffer_new();

	(void)state;
	for (size_t address = 65100; address < 65560; address++) {
		auto_evbuffer struct evbuffer *recorded = evbuffer_new();
		json_t *answer, *written;

		memset(text, '"', 100);
		memset(text + 100, 'x', sizeof text - 100);
		memcpy(text + address, key, strlen(key));
		response.text = text_from(text, sizeof text);
		write_to(recorded, &keys, exchange_entry(&request, &response, NULL),
			 text_of("\"order\":3}\n"));
		write_to(put, &keys, exchange_facts(&response), response.text);

		memcpy(text + address, "***", 3);
		memset(text + address + 3, 'x', strlen(key) - 3);
		response.text.size -= strlen(key) - 3;
		answer = exchange_answer(&response, NULL);
		written = json_read(text_in(recorded), 16, NULL);
		assert_true(json_equal(json_object_get(written, "response"),
				       json_object_get(answer, "response")));
		assert_int_equal(json_integer_value(json_object_get(written, "order")), 3);
		json_decref(written);
		assert_int_equal(text_in(recorded).bytes[text_in(recorded).size - 1], '\n');

		json_object_del(json_object_get(answer, "response"), "text");
		evbuffer_drain(facts, evbuffer_get_length(facts));
		json_write_line(answer, facts);
		json_decref(answer);
		assert_int_equal(text_in(put).size, text_in(facts).size + response.text.size);
		assert_memory_equal(text_in(put).bytes, text_in(facts).bytes, text_in(facts).size);
		assert_memory_equal(text_in(put).bytes + text_in(facts).size, text,
				    response.text.size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tenants, setup, teardown),
		cmocka_unit_test_setup_teardown(test_providers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_others_may_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_the_child_of_a_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size, setup, teardown),
		cmocka_unit_test(test_written_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
