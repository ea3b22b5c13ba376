#include "store/libpq.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

static const char *const names[] = {
#define NAME(name) #name,
	LIBPQ_FUNCTIONS(NAME)
#undef NAME
};

enum { FUNCTIONS = sizeof names / sizeof *names };

static struct libpq libpq;
static void *library;

const struct libpq *libpq_open(struct rlmd_error *err)
{
	void *functions[FUNCTIONS];
	const char *problem;

	static_assert(sizeof functions == sizeof libpq, "it has functions and nothing else");
	if (library)
		return &libpq;
	dlerror(); /* of before */
	library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && i < FUNCTIONS; i++)
		functions[i] = dlsym(library, names[i]);
	problem = dlerror();
	if (problem) {
		error_set(err, RLMD_ERROR_USAGE,
			  "a store in PostgreSQL needs its client library, version 14 or later: "
			  "%s; install libpq5 (Debian, Ubuntu) or libpq (Fedora), or give the path "
			  "of a file as the store",
			  problem);
		if (library)
			dlclose(library);
		library = NULL;
		return NULL;
	}
	memcpy(&libpq, functions, sizeof functions);
	return &libpq;
}
