/*
 * Memory that is short once: one allocation fails, all others are given; for LD_PRELOAD.
 *
 * STARVE_AT says which one of those of at least STARVE_LEAST bytes (0: none), counted in the
 * process that was started and in none of its children. STARVE_TOLD is a file for the count, at the
 * end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* They stand before the C library's, whatever is hidden elsewhere in the project. */
#pragma GCC visibility push(default)

/* glibc's own, which need no dlsym(). */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long count;
static long failing, least = 1;
static pid_t own; /* 0: nothing is counted yet */
static char told[4096];

static void tell(const char *word, long number)
{
	char line[100];
	int fd = *told ? open(told, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	int size = snprintf(line, sizeof line, "%s %ld\n", word, number);

	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)size);
	close(fd);
}

static long number_of(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

/* Programs that are started from here are not starved. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("STARVE_TOLD");

	failing = number_of("STARVE_AT", 0);
	least = number_of("STARVE_LEAST", 1);
	snprintf(told, sizeof told, "%s", path ? path : "");
	unsetenv("LD_PRELOAD");
	own = getpid();
}

__attribute__((destructor)) static void end(void)
{
	if (getpid() == own)
		tell("counted", atomic_load(&count));
}

static int fails(size_t size)
{
	long number;

	if (!own || size < (size_t)least || getpid() != own)
		return 0;
	number = atomic_fetch_add(&count, 1) + 1;
	if (number != failing)
		return 0;
	tell("failed", (long)size);
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	return fails(number * size) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size)
{
	return fails(size) ? NULL : __libc_realloc(memory, size);
}

void *reallocarray(void *memory, size_t number, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(number, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(memory, all);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	*ret = aligned_alloc(alignment, size);
	return *ret ? 0 : ENOMEM;
}
