#include "llm/cache.h"

#include <errno.h>
#include <event2/buffer.h>
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
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "llm/body.h"
#include "llm/cache_sweep.h"
#include "llm/entry.h"
#include "llm/key.h"
#include "llm/provider.h"

enum {
	HASH_SIZE = 32,
	HEX_SIZE = EXCHANGE_ID_SIZE,
	ENTRY_MAX = 64 << 20, /* bytes */
	HEAD_MAX = 128,       /* bytes of an entry's first line */
	PARTS = 16,           /* of the size: after so much was written the rest is looked at */
	AHEAD_MS = 60000,     /* that another machine's clock may go before ours */
};

static const char format[] = "rlmd-cache-1";

struct cache {
	char *dir; /* owned */
	int fd;    /* owned: the directory */
	int64_t size;
	int64_t written;     /* bytes, since it was looked at */
	struct sweep *sweep; /* owned; NULL: it is not looked at */
	struct event *timer; /* owned: the next step of that */
};

/* --- the directory -------------------------------------------------------------- */

static bool is_safe(int fd, const char *dir, struct rlmd_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot use the cache %s", dir);
	if (st.st_uid != geteuid())
		return error_set(err, RLMD_ERROR_INPUT,
				 "the cache %s belongs to uid %ju and not to us (%ju), who could "
				 "put answers there: name a directory of your own",
				 dir, (uintmax_t)st.st_uid, (uintmax_t)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, RLMD_ERROR_INPUT,
				 "others may write to the cache %s, and could put answers there: "
				 "chmod 700 %s",
				 dir, dir);
	return true;
}

static int open_dir(const char *dir, struct rlmd_error *err)
{
	auto_close int fd = -1;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot make the cache %s", dir);
		return -1;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, RLMD_ERROR_INPUT,
			    "cannot use the cache %s, which has to be a directory and no link",
			    dir);
		return -1;
	}
	return is_safe(fd, dir, err) ? take_fd(&fd) : -1;
}

/* The next step, until it is within its size. */
static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct cache *cache = arg;

	(void)fd;
	(void)what;
	if (sweep_step(cache->sweep))
		sweep_free(take_pointer(&cache->sweep));
	else
		loop_post(cache->timer);
}

struct cache *cache_new(struct event_base *base, const char *dir, int64_t size,
			struct rlmd_error *err)
{
	int fd = open_dir(dir, err);
	struct cache *cache;

	if (fd < 0)
		return NULL;
	cache = xcalloc(1, sizeof *cache);
	cache->dir = xstrdup(dir);
	cache->fd = fd;
	cache->size = size;
	cache->timer = evtimer_new(base, on_sweep, cache);
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
	event_free(cache->timer);
	close(cache->fd);
	free(cache->dir);
	free(cache);
}

bool cache_is(const struct cache *cache, const char *dir, int64_t size)
{
	return cache->size == size && !strcmp(cache->dir, dir);
}

/* --- places ---------------------------------------------------------------------- */

static void hash_of(const struct evbuffer *bytes, unsigned char out[static HASH_SIZE])
{
	struct evbuffer *whole = (struct evbuffer *)bytes;

	if (!EVP_Digest(evbuffer_pullup(whole, -1), evbuffer_get_length(whole), out, NULL,
			EVP_sha256(), NULL))
		abort();
}

static EVP_MAC_CTX *code_begin(const unsigned char secret[static CACHE_SECRET_SIZE])
{
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0),
			       OSSL_PARAM_construct_end()};
	EVP_MAC *kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *code = EVP_MAC_CTX_new(kind);

	EVP_MAC_free(kind);
	if (!EVP_MAC_init(code, secret, CACHE_SECRET_SIZE, params))
		abort();
	return code;
}

static void code_add(void *code, struct rlmd_text piece)
{
	if (!EVP_MAC_update(code, (const unsigned char *)piece.bytes, piece.size))
		abort();
}

static void code_end(EVP_MAC_CTX *code, char out[static HEX_SIZE])
{
	unsigned char hash[HASH_SIZE];
	size_t size;

	if (!EVP_MAC_final(code, hash, &size, sizeof hash))
		abort();
	exchange_hex(hash, out);
	EVP_MAC_CTX_free(code);
}

/* Each with its length before it, so that no two lists are the same bytes. */
static void add(struct evbuffer *out, const char *text)
{
	evbuffer_add_printf(out, "%zu ", text ? strlen(text) : 0);
	evbuffer_add(out, text ? text : "", text ? strlen(text) : 0);
}

void cache_place_init(struct cache_place *place, const struct rlmd_provider *provider,
		      const char *tenant, const struct llm_request *request)
{
	auto_evbuffer struct evbuffer *whose = evbuffer_new(), *what = evbuffer_new();
	struct llm_request plain = *request;
	char id[EXCHANGE_ID_SIZE];
	EVP_MAC_CTX *code;

	add(whose, format);
	add(whose, tenant);
	add(whose, provider->key);
	hash_of(whose, place->secret);
	OPENSSL_cleanse(evbuffer_pullup(whose, -1), evbuffer_get_length(whose));

	plain.named = NULL; /* the provider's own name for the model counts, and not ours for it */
	exchange_id(&plain, id);
	add(what, provider->adapter ? provider->adapter->name : "custom");
	add(what, provider->url ? provider->url : provider->name);
	add(what, id);
	code = code_begin(place->secret);
	code_add(code, text_in(what));
	code_end(code, place->name);
	place->key = provider->key;
	cache_place_number(place, 0);
}

void cache_place_number(struct cache_place *place, int64_t n)
{
	snprintf(place->name + HEX_SIZE - 1, sizeof place->name - (HEX_SIZE - 1), "-%" PRId64, n);
}

/* --- entries ---------------------------------------------------------------------- */

/* What the code vouches for: which exchange it is, when it was had, and all of the answer, which is
 * to be added. */
static EVP_MAC_CTX *entry_code(const struct cache_place *place, int64_t created)
{
	auto_free char *which = xasprintf("%s %s %" PRId64 "\n", format, place->name, created);
	EVP_MAC_CTX *code = code_begin(place->secret);

	code_add(code, text_of(which));
	return code;
}

/* The bytes of an entry that may be one, new; NULL: it is none. */
static char *read_entry(int fd, size_t *ret_size)
{
	struct stat st;
	auto_free char *bytes = NULL;
	size_t size = 0;
	ssize_t n = 1;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH) || st.st_size <= 0 || st.st_size > ENTRY_MAX)
		return NULL;
	bytes = xreallocarray(NULL, (size_t)st.st_size, 1);
	while (size < (size_t)st.st_size && n > 0) {
		n = read(fd, bytes + size, (size_t)st.st_size - size);
		size += n > 0 ? (size_t)n : 0;
	}
	*ret_size = size;
	return take_pointer(&bytes);
}

static bool is_ours(const struct cache_place *place, struct rlmd_text entry, int64_t age_ms,
		    struct rlmd_text *ret_body)
{
	const char *end = memchr(entry.bytes, '\n', entry.size < HEAD_MAX ? entry.size : HEAD_MAX);
	int64_t created, now = clock_wall_ms();
	char head[HEAD_MAX + 1], given[HEX_SIZE], real[HEX_SIZE];
	EVP_MAC_CTX *code;

	if (!end)
		return false;
	/* The entry has no end of its own, which sscanf() would look for. */
	snprintf(head, sizeof head, "%.*s", (int)(end - entry.bytes), entry.bytes);
	if (sscanf(head, "rlmd-cache-1 %" SCNd64 " %64[0-9a-f]", &created, given) != 2)
		return false;
	*ret_body = text_from(end + 1, entry.size - (size_t)(end + 1 - entry.bytes));
	code = entry_code(place, created);
	code_add(code, *ret_body);
	code_end(code, real);
	return strlen(given) == HEX_SIZE - 1 && !CRYPTO_memcmp(given, real, HEX_SIZE - 1) &&
	       created <= now + AHEAD_MS && now - created <= age_ms;
}

bool cache_find(struct cache *cache, const struct cache_place *place, int64_t age_ms,
		struct exchange *ret)
{
	auto_close int fd = openat(cache->fd, place->name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const struct timespec used[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	size_t size;
	auto_free char *bytes = fd >= 0 ? read_entry(fd, &size) : NULL;
	struct rlmd_text body;

	if (!bytes || !is_ours(place, text_from(bytes, size), age_ms, &body))
		return false;
	if (!exchange_read_answer(body, ret, NULL))
		return false;
	futimens(fd, used); /* what cannot be marked as used only goes earlier */
	return true;
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
	loop_post(cache->timer);
}

/* The code of all that is behind it stands in the first line: so that is written again. */
static bool write_answer(int fd, const struct cache_place *place, struct body *answer,
			 struct rlmd_error *err)
{
	const struct keys keys = {(char **)&place->key, place->key != NULL};
	int64_t created = clock_wall_ms();
	EVP_MAC_CTX *code = entry_code(place, created);
	char hex[HEX_SIZE] = "", head[HEAD_MAX];
	int size = snprintf(head, sizeof head, "%s %" PRId64 " %0*d\n", format, created,
			    HEX_SIZE - 1, 0);
	bool ok = file_write_fd(fd, text_from(head, (size_t)size), err) &&
		  entry_write(answer, &keys, fd, code_add, code, err);

	code_end(code, hex);
	snprintf(head, sizeof head, "%s %" PRId64 " %s\n", format, created, hex);
	return ok && (pwrite(fd, head, (size_t)size, 0) == size ||
		      error_errno(err, RLMD_ERROR_INPUT, "write"));
}

/* A name of its own until it is whole: whoever is killed before leaves it to be swept. What is too
 * large is written for nothing, which hardly any is. */
static bool write_entry(struct cache *cache, const struct cache_place *place, struct body *answer,
			struct rlmd_error *err)
{
	char temporary[64];
	auto_close int fd = -1;
	int64_t size;

	snprintf(temporary, sizeof temporary, "%s%ju-%08x", SWEEP_TEMPORARY, (uintmax_t)getpid(),
		 arc4random());
	fd = openat(cache->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return error_errno(err, RLMD_ERROR_INPUT, "cannot write to the cache %s",
				   cache->dir);
	if (!write_answer(fd, place, answer, err)) {
		unlinkat(cache->fd, temporary, 0);
		return error_context(err, "cannot write to the cache %s", cache->dir);
	}
	size = lseek(fd, 0, SEEK_CUR);
	if (size > cache->size || size > ENTRY_MAX) {
		unlinkat(cache->fd, temporary, 0);
		return true;
	}
	if (renameat(cache->fd, temporary, cache->fd, place->name)) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot write to the cache %s", cache->dir);
		unlinkat(cache->fd, temporary, 0);
		return false;
	}
	count_written(cache, (size_t)size);
	return true;
}

bool cache_keep(struct cache *cache, const struct cache_place *place,
		const struct llm_response *response, struct rlmd_error *err)
{
	struct body *answer = entry_of_answer(response);
	bool ok = write_entry(cache, place, answer, err);

	body_free(answer);
	return ok;
}
