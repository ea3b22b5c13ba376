/*
 * examples/threads.c - threads that ask, and one that has the engine.
 *
 *     cc threads.c $(pkg-config --cflags --libs rlmd) -pthread -o threads
 *     OPENAI_API_KEY=... ./threads 'Which host failed first?' 'Which one last?'
 *
 * An engine belongs to one thread. Others post functions to it, which start their jobs there, and
 * wait for the ends.
 */
#include <poll.h>
#include <pthread.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { QUESTIONS_MAX = 16 };

struct question {
	struct rlmd_engine *engine; /* lent */
	const char *text;           /* lent */
	char answer[200];
	bool answered; /* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t end;
};

static atomic_int left; /* questions without an answer */

static void set_answer(struct question *question, const char *words, size_t size)
{
	snprintf(question->answer, sizeof question->answer, "%.*s", (int)size, words);
	pthread_mutex_lock(&question->lock);
	question->answered = true;
	pthread_cond_signal(&question->end);
	pthread_mutex_unlock(&question->lock);
	atomic_fetch_sub(&left, 1);
}

/* In the engine's thread, as the next one. */
static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct rlmd_text output = rlmd_result_output(result);

	(void)job;
	set_answer(owner, output.bytes, output.size);
}

static void begin(void *owner)
{
	struct question *question = owner;
	struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = question};
	struct rlmd_job_options options = {.size = sizeof options, .hooks = &hooks};
	struct rlmd_error err = {0};

	options.task = rlmd_text_of(question->text);
	if (!rlmd_job_start(question->engine, &options, &err))
		set_answer(question, err.text, sizeof err.text);
}

/* A thread of the program's. */
static void *ask(void *owner)
{
	struct question *question = owner;

	if (!rlmd_engine_post(question->engine, begin, question, NULL))
		return NULL;
	pthread_mutex_lock(&question->lock);
	while (!question->answered)
		pthread_cond_wait(&question->end, &question->lock);
	pthread_mutex_unlock(&question->lock);
	printf("%s %s\n", question->text, question->answer);
	return NULL;
}

static int answer_all(struct rlmd_engine *engine, int count, char **words)
{
	static struct question questions[QUESTIONS_MAX];
	pthread_t threads[QUESTIONS_MAX];

	atomic_init(&left, count);
	for (int i = 0; i < count; i++) {
		questions[i].engine = engine;
		questions[i].text = words[i];
		pthread_mutex_init(&questions[i].lock, NULL);
		pthread_cond_init(&questions[i].end, NULL);
		if (pthread_create(&threads[i], NULL, ask, &questions[i]))
			return 1;
	}
	while (atomic_load(&left) && rlmd_engine_turn(engine, NULL)) {
		struct pollfd wait = {rlmd_engine_fd(engine), POLLIN, 0};
		int64_t next = atomic_load(&left) ? rlmd_engine_next_ms(engine) : 0;

		poll(&wait, 1, (int)next);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "openai"};
	struct rlmd_error err = {0};
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);
	struct rlmd_provider *provider = rlmd_provider_new(&options, &err);
	int status = 1;

	if (engine && provider && argc > 1 && argc <= QUESTIONS_MAX + 1 &&
	    rlmd_engine_add_provider(engine, NULL, provider, &err))
		status = answer_all(engine, argc - 1, argv + 1);
	if (err.kind)
		fprintf(stderr, "threads: %s\n", err.text);
	rlmd_provider_unref(provider);
	rlmd_engine_free(engine);
	return status;
}
