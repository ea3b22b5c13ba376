#include "llm/cache_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
	STEP = 64,      /* files that are looked at in a turn of the loop */
	NAME_HASH = 64, /* characters of an entry's name before its number */
	STEPS = 64,     /* of an age, from each power of two to the next */
	AGES = 60 * STEPS,
	LEFT_OVER_MS = 3600000, /* after which nobody is writing a temporary file any more */
};

struct sweep {
	DIR *dir; /* owned; NULL: there is nothing to be read */
	int64_t size, now;
	bool removes;        /* the second pass */
	int64_t total;       /* bytes */
	int oldest;          /* of the second pass: older ones go, */
	int64_t of_oldest;   /* and so many bytes of these */
	int64_t bytes[AGES]; /* by age */
};

struct sweep *sweep_new(int dir, int64_t size)
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

void sweep_free(struct sweep *sweep)
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
	const char *number = name + NAME_HASH + 1;

	return strspn(name, "0123456789abcdef") == NAME_HASH && name[NAME_HASH] == '-' && *number &&
	       strspn(number, "0123456789") == strlen(number);
}

static bool is_left_over(const struct sweep *sweep, const char *name, const struct stat *st)
{
	return !strncmp(name, SWEEP_TEMPORARY, sizeof SWEEP_TEMPORARY - 1) &&
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

bool sweep_step(struct sweep *sweep)
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
