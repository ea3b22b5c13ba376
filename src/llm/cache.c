#include "llm/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/timer.h"
#include "llm/key.h"
#include "llm/provider.h"
#include "net/body.h"

enum {
	HASH_SIZE = 32,
	HEX_SIZE = EXCHANGE_ID_SIZE,
	ENTRY_MAX = 64 << 20, /* bytes */
	HEAD_MAX = 128,       /* bytes of an entry's first line */
	DEPTH_MAX = 8,        /* of the JSON of its second */
	PARTS = 16,           /* of the size: after so much was written the rest is looked at */
	AHEAD_MS = 60000,     /* that another machine's clock may go before ours */
	STEP = 64,            /* files that are looked at in a turn of the loop */
	STEPS = 64,           /* of an age, from each power of two to the next */
	AGES = 60 * STEPS,
	LEFT_OVER_MS = 3600000, /* after which nobody is writing a temporary file any more */
};

static const char format[] = "rlmd-cache-2";

#define TEMPORARY ".new-" /* names of entries that are being written begin with it */

/* One look through the directory. First all entries are counted by how long nobody has used them;
 * where they are too many bytes, those that were not used for the longest go, in a second pass.
 * Takes the same memory whatever stands there, touches nothing that is no entry, and minds no other
 * process that does the same. */
struct sweep {
	DIR *dir; /* owned; NULL: there is nothing to be read */
	int64_t size, now;
	bool removes;        /* the second pass */
	int64_t total;       /* bytes */
	int oldest;          /* of the second pass: older ones go, */
	int64_t of_oldest;   /* and so many bytes of these */
	int64_t bytes[AGES]; /* by age */
};

struct cache {
	char *dir; /* owned */
	int fd;    /* owned: the directory */
	int64_t size;
	int64_t written;     /* bytes, since it was looked at */
	bool cut;            /* its files are those of the process that this one was forked from */
	struct sweep *sweep; /* owned; NULL: it is not looked at */
	struct timer *timer; /* owned: the next step of that */
};

/* --- keeping it within its size ----------------------------------------------------------- */

static struct sweep *sweep_new(int dir, int64_t size)
{
	struct sweep *sweep = xcalloc(1, sizeof *sweep);
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	sweep->dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!sweep->dir && fd >= 0)
		close(fd);
	sweep->size = size;
	sweep->now = clock_wall_ms();
	return sweep;
}

static void sweep_free(struct sweep *sweep)
{
	if (!sweep)
		return;
	if (sweep->dir)
		closedir(sweep->dir);
	free(sweep);
}

/* Exact below 64 ms, and to a sixty-fourth above. */
static int age_of(const struct sweep *sweep, const struct stat *st)
{
	int64_t used = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
	int64_t age = sweep->now - used;
	int power;

	if (age < STEPS)
		return age < 0 ? 0 : (int)age;
	power = 63 - __builtin_clzll((unsigned long long)age) - 6;
	if (power + 1 >= AGES / STEPS)
		return AGES - 1;
	return (power + 1) * STEPS + (int)((age >> power) & (STEPS - 1));
}

static bool is_entry(const char *name)
{
	const char *number = name + (HEX_SIZE - 1) + 1;

	return strspn(name, "0123456789abcdef") == (HEX_SIZE - 1) && name[(HEX_SIZE - 1)] == '-' &&
	       *number && strspn(number, "0123456789") == strlen(number);
}

static bool is_left_over(const struct sweep *sweep, const char *name, const struct stat *st)
{
	return !strncmp(name, TEMPORARY, sizeof TEMPORARY - 1) &&
	       sweep->now - (int64_t)st->st_mtim.tv_sec * 1000 > LEFT_OVER_MS;
}

static void look_at(struct sweep *sweep, const char *name)
{
	int dir = dirfd(sweep->dir), age;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (is_left_over(sweep, name, &st))
		unlinkat(dir, name, 0);
	if (!is_entry(name))
		return;
	age = age_of(sweep, &st);
	if (!sweep->removes) {
		sweep->bytes[age] += st.st_size;
		sweep->total += st.st_size;
	} else if (age > sweep->oldest) {
		unlinkat(dir, name, 0);
	} else if (age == sweep->oldest && sweep->of_oldest > 0 && !unlinkat(dir, name, 0)) {
		sweep->of_oldest -= st.st_size;
	}
}

/* True: there are not too many, and nothing is to be done. */
static bool end_count(struct sweep *sweep)
{
	int64_t beyond = sweep->total - sweep->size;

	if (sweep->removes || beyond <= 0)
		return true;
	for (sweep->oldest = AGES; sweep->oldest > 0 && beyond > 0;) {
		sweep->of_oldest = beyond;
		beyond -= sweep->bytes[--sweep->oldest];
	}
	sweep->removes = true;
	rewinddir(sweep->dir);
	return false;
}

static bool sweep_step(struct sweep *sweep)
{
	for (int i = 0; i < STEP; i++) {
		const struct dirent *file = sweep->dir ? readdir(sweep->dir) : NULL;

		if (!sweep->dir || (!file && end_count(sweep)))
			return true;
		if (file)
			look_at(sweep, file->d_name);
	}
	return false;
}

/* --- its life ------------------------------------------------------------------- */

/* The next step, until it is within its size. */
static void on_sweep(void *arg)
{
	struct cache *cache = arg;

	if (sweep_step(cache->sweep))
		sweep_free(take_pointer(&cache->sweep));
	else
		timer_post(cache->timer);
}

struct cache *cache_new(struct event_base *base, const char *dir, int64_t size,
			struct rlmd_error *err)
{
	int fd = file_own_directory(dir, "cache", err);
	struct cache *cache;

	if (fd < 0)
		return NULL;
	cache = xcalloc(1, sizeof *cache);
	cache->dir = xstrdup(dir);
	cache->fd = fd;
	cache->size = size;
	cache->timer = timer_new(base, on_sweep, cache);
	return cache;
}

void cache_free(struct cache *cache)
{
	if (!cache)
		return;
	if (cache->written && !cache->sweep)
		cache->sweep = sweep_new(cache->fd, cache->size);
	while (cache->sweep && !sweep_step(cache->sweep))
		;
	sweep_free(cache->sweep);
	timer_free(cache->timer);
	close(cache->fd);
	free(cache->dir);
	free(cache);
}

void cache_cut(struct cache *cache)
{
	cache->written = 0;
	cache->cut = true;
	sweep_free(take_pointer(&cache->sweep));
}

bool cache_is(const struct cache *cache, const char *dir, int64_t size)
{
	return cache->size == size && !strcmp(cache->dir, dir);
}

/* --- addresses ---------------------------------------------------------------------- */

static void hash_of(const struct evbuffer *bytes, unsigned char out[static HASH_SIZE])
{
	struct evbuffer *whole = (struct evbuffer *)bytes;

	if (!EVP_Digest(buffer_pullup(whole, -1), evbuffer_get_length(whole), out, NULL,
			EVP_sha256(), NULL))
		alloc_failed();
}

static EVP_MAC_CTX *code_begin(const unsigned char secret[static CACHE_SECRET_SIZE])
{
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0),
			       OSSL_PARAM_construct_end()};
	EVP_MAC *kind = xpresent(EVP_MAC_fetch(NULL, "HMAC", NULL));
	EVP_MAC_CTX *code = xpresent(EVP_MAC_CTX_new(kind));

	EVP_MAC_free(kind);
	if (!EVP_MAC_init(code, secret, CACHE_SECRET_SIZE, params))
		alloc_failed();
	return code;
}

static void code_add(EVP_MAC_CTX *code, struct rlmd_text piece)
{
	if (!EVP_MAC_update(code, (const unsigned char *)piece.bytes, piece.size))
		alloc_failed();
}

static void code_end(EVP_MAC_CTX *code, char out[static HEX_SIZE])
{
	unsigned char hash[HASH_SIZE];
	size_t size;

	if (!EVP_MAC_final(code, hash, &size, sizeof hash))
		alloc_failed();
	exchange_hex(hash, out);
	EVP_MAC_CTX_free(code);
}

/* Each with its length before it, so that no two lists are the same bytes. */
static void add(struct evbuffer *out, const char *text)
{
	buffer_add_printf(out, "%zu ", text ? strlen(text) : 0);
	buffer_add(out, text ? text : "", text ? strlen(text) : 0);
}

void cache_address_init(struct cache_address *address, const struct rlmd_provider *provider,
			const char *tenant, const struct llm_request *request)
{
	auto_evbuffer struct evbuffer *whose = buffer_new(), *what = buffer_new();
	struct llm_request plain = *request;
	char id[EXCHANGE_ID_SIZE];
	EVP_MAC_CTX *code;

	add(whose, format);
	add(whose, tenant);
	add(whose, provider->key);
	hash_of(whose, address->secret);
	OPENSSL_cleanse(buffer_pullup(whose, -1), evbuffer_get_length(whose));

	plain.named = NULL; /* the provider's own name for the model counts, and not ours for it */
	exchange_id(&plain, id);
	add(what, provider->adapter ? provider->adapter->name : "custom");
	add(what, provider->url ? provider->url : provider->name);
	add(what, id);
	code = code_begin(address->secret);
	code_add(code, text_in(what));
	code_end(code, address->name);
	address->key = provider->key;
	cache_address_number(address, 0);
}

void cache_address_number(struct cache_address *address, int64_t n)
{
	snprintf(address->name + HEX_SIZE - 1, sizeof address->name - (HEX_SIZE - 1), "-%" PRId64,
		 n);
}

/* --- entries ---------------------------------------------------------------------- */

/* The code covers the exchange's identity, its time, and all of the answer, which is to be added.
 */
static EVP_MAC_CTX *entry_code(const struct cache_address *address, int64_t created)
{
	auto_free char *which = xasprintf("%s %s %" PRId64 "\n", format, address->name, created);
	EVP_MAC_CTX *code = code_begin(address->secret);

	code_add(code, text_of(which));
	return code;
}

struct cache_reading {
	const struct cache_address *address; /* lent */
	int64_t age_ms;
	int fd;      /* owned */
	char *bytes; /* owned */
	size_t size, got;
	size_t body;       /* where the answer begins, behind the first line */
	EVP_MAC_CTX *code; /* owned: of what was read; NULL: it is no entry, or too old */
	char given[HEX_SIZE];
};

/* A file that may be an entry. */
static bool may_be_entry(int fd, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH) || st.st_size <= 0 || st.st_size > ENTRY_MAX)
		return false;
	*ret_size = (size_t)st.st_size;
	return true;
}

struct cache_reading *cache_find(struct cache *cache, const struct cache_address *address,
				 int64_t age_ms)
{
	auto_close int fd = openat(cache->fd, address->name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct cache_reading *reading;
	size_t size;

	if (fd < 0 || !may_be_entry(fd, &size))
		return NULL;
	reading = xcalloc(1, sizeof *reading);
	reading->address = address;
	reading->age_ms = age_ms;
	reading->fd = take_fd(&fd);
	reading->bytes = xreallocarray(NULL, size + 1, 1);
	reading->size = size;
	return reading;
}

static void read_head(struct cache_reading *reading)
{
	const char *end = memchr(reading->bytes, '\n',
				 reading->got < HEAD_MAX ? reading->got : HEAD_MAX);
	int64_t created, now = clock_wall_ms();
	char head[HEAD_MAX + 1];

	if (!end)
		return;
	/* The entry has no end of its own, which sscanf() would look for. */
	snprintf(head, sizeof head, "%.*s", (int)(end - reading->bytes), reading->bytes);
	if (sscanf(head, "rlmd-cache-2 %" SCNd64 " %64[0-9a-f]", &created, reading->given) != 2 ||
	    created > now + AHEAD_MS || now - created > reading->age_ms)
		return;
	reading->body = (size_t)(end + 1 - reading->bytes);
	reading->code = entry_code(reading->address, created);
}

bool cache_read(struct cache_reading *reading, size_t bytes)
{
	size_t before = reading->got, left = reading->size - before;
	size_t goal = before + (bytes < left ? bytes : left);
	ssize_t n = 1;

	while (reading->got < goal && n > 0) {
		n = read(reading->fd, reading->bytes + reading->got, goal - reading->got);
		reading->got += n > 0 ? (size_t)n : 0;
	}
	if (n <= 0)
		reading->size = reading->got;
	if (!before) {
		read_head(reading);
		before = reading->body;
	}
	if (reading->code)
		code_add(reading->code, text_from(reading->bytes + before, reading->got - before));
	return reading->code && reading->got < reading->size;
}

/* The line of facts, and behind it the text, which stays where it is read. */
static bool read_answer(struct cache_reading *reading, struct exchange *ret)
{
	struct rlmd_text all = text_from(reading->bytes + reading->body,
					 reading->got - reading->body);
	const char *end = memchr(all.bytes, '\n', all.size);
	size_t facts = end ? (size_t)(end + 1 - all.bytes) : 0;
	json_auto_t *entry = end ? json_read(text_slice(all, 0, facts), DEPTH_MAX, NULL) : NULL;

	if (!entry || !exchange_read(entry, ret, NULL))
		return false;
	free(ret->text);
	ret->text = take_pointer(&reading->bytes);
	ret->text_size = all.size - facts;
	memmove(ret->text, all.bytes + facts, ret->text_size);
	ret->text[ret->text_size] = '\0';
	return true;
}

bool cache_take(struct cache_reading *reading, struct exchange *ret)
{
	const struct timespec used[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	char real[HEX_SIZE];

	if (!reading->code)
		return false;
	code_end(take_pointer(&reading->code), real);
	if (strlen(reading->given) != HEX_SIZE - 1 ||
	    CRYPTO_memcmp(reading->given, real, HEX_SIZE - 1) || !read_answer(reading, ret))
		return false;
	futimens(reading->fd, used); /* what cannot be marked as used only goes earlier */
	return true;
}

void cache_reading_free(struct cache_reading *reading)
{
	if (!reading)
		return;
	close(reading->fd);
	free(reading->bytes);
	EVP_MAC_CTX_free(reading->code);
	free(reading);
}

void cache_forget(struct cache *cache, const char *name)
{
	unlinkat(cache->fd, name, 0);
}

static void count_written(struct cache *cache, size_t size)
{
	cache->written += (int64_t)size;
	if (cache->sweep || cache->written < cache->size / PARTS)
		return;
	cache->written = 0;
	cache->sweep = sweep_new(cache->fd, cache->size);
	timer_post(cache->timer);
}

/* A name of its own until it is whole: whoever is killed before leaves it to be swept. */
struct cache_file {
	struct exchange_file exchange;
	struct cache *cache;                 /* lent */
	const struct cache_address *address; /* lent */
	struct key_list keys;
	char temporary[64]; /* "": it has its own name */
	int64_t created;
	EVP_MAC_CTX *code; /* owned: of the entry */
};

static void on_piece(struct exchange_file *exchange, struct rlmd_text piece)
{
	code_add(((struct cache_file *)exchange)->code, piece);
}

/* The first line, which has the code of all that is behind it: so it is written twice, at first
 * with room for the code. */
static bool write_head(const struct cache_file *file, const char *code, struct rlmd_error *err)
{
	char head[HEAD_MAX];
	int size = snprintf(head, sizeof head, "%s %" PRId64 " %*s\n", format, file->created,
			    HEX_SIZE - 1, code);

	return pwrite(file->exchange.fd, head, (size_t)size, 0) == size ||
	       error_errno(err, RLMD_ERROR_INPUT, "write");
}

/* An answer that is too large was written for nothing; few are. */
static bool commit(struct exchange_file *exchange, struct rlmd_error *err)
{
	struct cache_file *file = (struct cache_file *)exchange;
	struct cache *cache = file->cache;
	int64_t size = lseek(exchange->fd, 0, SEEK_CUR);
	char code[HEX_SIZE];

	code_end(take_pointer(&file->code), code);
	if (size > cache->size || size > ENTRY_MAX)
		return true;
	if (!write_head(file, code, err))
		return false;
	if (renameat(cache->fd, file->temporary, cache->fd, file->address->name))
		return error_errno(err, RLMD_ERROR_INPUT, "rename");
	file->temporary[0] = '\0';
	count_written(cache, (size_t)size);
	return true;
}

static void free_file(struct exchange_file *exchange)
{
	struct cache_file *file = (struct cache_file *)exchange;

	if (file->temporary[0] && !file->cache->cut)
		unlinkat(file->cache->fd, file->temporary, 0);
	if (exchange->fd >= 0)
		close(exchange->fd);
	EVP_MAC_CTX_free(file->code);
	free(file);
}

static bool open_temporary(struct cache_file *file, struct rlmd_error *err)
{
	struct exchange_file *exchange = &file->exchange;

	snprintf(file->temporary, sizeof file->temporary, "%s%ju-%08x", TEMPORARY,
		 (uintmax_t)getpid(), arc4random());
	exchange->fd = openat(file->cache->fd, file->temporary,
			      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (exchange->fd < 0)
		return error_errno(err, RLMD_ERROR_INPUT, "open");
	return write_head(file, "", err) && lseek(exchange->fd, 0, SEEK_END) > 0;
}

struct exchange_file *cache_keep(struct cache *cache, const struct cache_address *address,
				 const struct llm_response *response, struct rlmd_error *err)
{
	struct cache_file *file = xcalloc(1, sizeof *file);

	file->cache = cache;
	file->address = address;
	file->keys = (struct key_list){(char **)&address->key, address->key != NULL};
	file->created = clock_wall_ms();
	file->code = entry_code(address, file->created);
	file->exchange = (struct exchange_file){
		.entry = exchange_facts(response),
		.rest = response->text,
		.keys = &file->keys,
		.path = cache->dir,
		.piece = on_piece,
		.commit = commit,
		.free = free_file,
	};
	if (open_temporary(file, err))
		return &file->exchange;
	error_context(err, "%s", cache->dir);
	exchange_file_free(&file->exchange);
	return NULL;
}
