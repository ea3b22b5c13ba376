/*
 * examples/journal.c - a question that goes on where an earlier attempt at it was ended.
 *
 *     cc journal.c $(pkg-config --cflags --libs rlmd) -o journal
 *     ./journal DIRECTORY QUESTION
 *
 * The directory holds what this question has had, a file an entry: that is not paid for again.
 */
#include <fcntl.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int dir;
static char *last; /* the bytes of the entry that was looked for last */

static bool look(void *owner, const char *key, int64_t number, struct rlmd_text *ret)
{
	char name[128];
	struct stat st;
	int fd;

	(void)owner;
	snprintf(name, sizeof name, "%s.%lld", key, (long long)number);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return false;
	free(last);
	last = malloc((size_t)st.st_size + 1);
	*ret = (struct rlmd_text){last, (size_t)st.st_size};
	if (!last || read(fd, last, ret->size) != st.st_size)
		ret->size = 0; /* which is no entry: the job ends */
	close(fd);
	return true;
}

/* Whole or not at all, and on the disk before the job goes on. */
static bool save(const char *name, struct rlmd_text bytes)
{
	int fd = openat(dir, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool saved = fd >= 0 && write(fd, bytes.bytes, bytes.size) == (ssize_t)bytes.size &&
		     !fsync(fd) && !renameat(dir, "new", dir, name) && !fsync(dir);

	if (fd >= 0)
		close(fd);
	return saved;
}

static void keep(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		 struct rlmd_journal_entry *entry)
{
	struct rlmd_error err = {.kind = RLMD_ERROR_INPUT, .text = "it cannot be written"};
	char name[128];

	(void)owner;
	snprintf(name, sizeof name, "%s.%lld", key, (long long)number);
	if (save(name, bytes))
		rlmd_journal_kept(entry);
	else
		rlmd_journal_failed(entry, &err);
}

static bool add_ollama(struct rlmd_engine *engine, struct rlmd_error *err)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "ollama"};
	struct rlmd_provider *provider = rlmd_provider_new(&options, err);
	bool added = provider && rlmd_engine_add_provider(engine, NULL, provider, err);

	rlmd_provider_unref(provider);
	return added;
}

static bool answer(struct rlmd_engine *engine, const char *question, struct rlmd_error *err)
{
	struct rlmd_journal journal = {.size = sizeof journal, .look = look, .keep = keep};
	struct rlmd_job_options options = {.size = sizeof options, .journal = &journal};
	struct rlmd_usage usage = {.size = sizeof usage};
	const struct rlmd_result *result;
	struct rlmd_text output;
	struct rlmd_job *job;

	options.task = rlmd_text_of(question);
	job = rlmd_job_start(engine, &options, err);
	if (!job || !rlmd_engine_wait(engine, job, err))
		return false;
	result = rlmd_job_result(job);
	if (!rlmd_result_success(result)) {
		*err = *rlmd_result_error(result);
		return false;
	}
	output = rlmd_result_output(result);
	rlmd_result_usage(result, &usage);
	printf("%.*s\n", (int)output.size, output.bytes);
	printf("%lld of %lld calls were had before\n", (long long)usage.journaled_calls,
	       (long long)usage.llm_calls);
	return true;
}

int main(int argc, char **argv)
{
	struct rlmd_engine *engine;
	struct rlmd_error err = {0};

	if (argc != 3 || (dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fprintf(stderr, "usage: journal DIRECTORY QUESTION\n");
		return 2;
	}
	engine = rlmd_engine_new(NULL, &err);
	if (!engine || !add_ollama(engine, &err) || !answer(engine, argv[2], &err))
		fprintf(stderr, "journal: %s\n", err.text);
	rlmd_engine_free(engine); /* and the job */
	free(last);
	close(dir);
	return rlmd_error_exit_status(err.kind);
}
