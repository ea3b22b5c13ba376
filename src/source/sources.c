#include "source/sources.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/context.h"

static bool is_identifier(const char *string, size_t size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	if (!size || !memchr(letters, string[0], sizeof letters - 1))
		return false;
	for (size_t i = 1; i < size; i++)
		if (!memchr(letters, string[i], sizeof letters - 1) &&
		    !(string[i] >= '0' && string[i] <= '9'))
			return false;
	return true;
}

static const struct {
	const char *name, *what;
} taken[] = {
#define KEYWORD(name) {name, "a keyword of Python"},
#define HELPER(name)  {name, "a function of the worker"},
#define BUILTIN(name) {name, "a builtin of Python, which the code needs"},
#include "source/names.def"
#undef BUILTIN
#undef HELPER
#undef KEYWORD
};

bool sources_is_identifier(const char *name)
{
	return is_identifier(name, strlen(name));
}

bool sources_check_name(const char *what, const char *name, struct rlmd_error *err)
{
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (!strcmp(name, taken[i].name))
			return error_set(err, RLMD_ERROR_USAGE,
					 "a %s cannot be named '%s': %s; choose another name", what,
					 name, taken[i].what);
	if (!is_identifier(name, strlen(name)) || !strncmp(name, "__", 2) || strlen(name) > 200)
		return error_set(err, RLMD_ERROR_USAGE, "a %s cannot be named '%s'", what, name);
	return true;
}

static bool no_file(const char *path, struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT,
			 "cannot read %s: it is no regular file; pipe it into standard input and "
			 "use -c -",
			 path);
}

static bool parse_source(const char *given, struct source *source, struct rlmd_error *err)
{
	const char *equals = strchr(given, '=');
	struct stat st;

	source->path = given;
	if (equals && is_identifier(given, (size_t)(equals - given))) {
		source->name = xstrndup(given, (size_t)(equals - given));
		source->path = equals + 1;
		if (!sources_check_name("context", source->name, err))
			return false;
	}
	if (!*source->path)
		return error_set(err, RLMD_ERROR_USAGE, "a context '%s' names no file", given);
	if (!strcmp(source->path, "-"))
		return true;
	if (!strncmp(source->path, "git:", 4)) {
		source->revision = source->path + 4;
		source->directory = true;
		return *source->revision || error_set(err, RLMD_ERROR_USAGE,
						      "'%s' names no revision: git:REV, or "
						      "git:REV:PATH",
						      source->path);
	}
	if (stat(source->path, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", source->path);
	source->directory = S_ISDIR(st.st_mode);
	if (!source->directory && !S_ISREG(st.st_mode))
		return no_file(source->path, err);
	if (!source->directory)
		source->file = (struct file_id){st.st_dev, st.st_ino};
	return true;
}

bool sources_parse(const char *const *given, size_t count, struct source *sources,
		   struct rlmd_error *err)
{
	bool unnamed = false, standard_input = false;
	size_t variables = 0;

	for (size_t i = 0; i < count; i++) {
		if (!parse_source(given[i], &sources[i], err))
			return false;
		variables += sources[i].name || !unnamed;
		unnamed |= !sources[i].name;
		if (!strcmp(sources[i].path, "-") && standard_input)
			return error_set(err, RLMD_ERROR_USAGE,
					 "standard input can be read only once");
		standard_input |= !strcmp(sources[i].path, "-");
	}
	if (variables > CONTEXT_INPUTS_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%zu contexts with names of their own; there may be %d (those "
				 "without a name are one)",
				 variables, CONTEXT_INPUTS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *name = sources[i].name;
		bool twice = name && unnamed && !strcmp(name, "context");

		for (size_t j = 0; name && j < i; j++)
			twice |= sources[j].name && !strcmp(name, sources[j].name);
		if (twice)
			return error_set(err, RLMD_ERROR_USAGE, "two contexts are named '%s'",
					 name);
	}
	return true;
}

void sources_done(struct source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(sources[i].name);
}

int sources_open(const struct source *source, struct rlmd_error *err)
{
	struct stat st;
	int fd;

	if (!strcmp(source->path, "-"))
		return STDIN_FILENO;
	fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", source->path);
	else if (!S_ISREG(st.st_mode)) /* any more */
		no_file(source->path, err);
	else if ((size_t)st.st_size > CONTEXT_SIZE_MAX)
		error_set(err, RLMD_ERROR_INPUT,
			  "%s is larger than the %zu GiB that one variable can hold", source->path,
			  CONTEXT_SIZE_MAX >> 30);
	else
		return fd;
	sources_close(fd);
	return -1;
}

void sources_close(int fd)
{
	if (fd >= 0 && fd != STDIN_FILENO)
		close(fd);
}
