/*
 * A program of the build: compiles the filter, and writes it as a C file to the path that is its
 * first argument; the second is the name of the filter. libseccomp may make another filter, and no
 * error, where memory runs out meanwhile: so it is compiled twice.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/filter_compile.h"

static bool compile(struct filter *filter)
{
	static struct filter again;
	struct rlmd_error err;

	if (!filter_compile(filter, &err) || !filter_compile(&again, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	if (filter->size == again.size &&
	    !memcmp(filter->code, again.code, again.size * sizeof again.code[0]))
		return true;
	fprintf(stderr, "libseccomp does not make the same filter twice\n");
	return false;
}

static void embed(const struct filter *filter, const char *name, FILE *out)
{
	fprintf(out,
		"#include \"sandbox/filter.h\"\n\nconst struct filter %s = {\n"
		"\t.code = {\n",
		name);
	for (size_t i = 0; i < filter->size; i++)
		fprintf(out, "\t\t{%#x, %d, %d, %#x},\n", filter->code[i].code, filter->code[i].jt,
			filter->code[i].jf, filter->code[i].k);
	fprintf(out, "\t},\n\t.size = %zu,\n};\n", filter->size);
}

int main(int argc, char **argv)
{
	auto_file FILE *out = argc == 3 ? fopen(argv[1], "we") : NULL;
	static struct filter filter;

	if (!out) {
		fprintf(stderr, "usage: filter_embed FILE.c NAME\n");
		return 2;
	}
	if (!compile(&filter))
		return 1;
	embed(&filter, argv[2], out);
	return fflush(out) ? 1 : 0;
}
