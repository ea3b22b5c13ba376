#include "batch/node.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "batch/batch_store.h"
#include "store/store.h"

/* --- names ---------------------------------------------------------------------------- */

enum { WORD = 64, START_FIELD = 22 };

/* Of this machine, and of how it numbers processes here. */
struct here {
	char boot[WORD], pids[WORD], times[WORD];
};

static bool read_line(const char *path, char *ret, size_t size)
{
	auto_file FILE *file = fopen(path, "re");

	if (!file || !fgets(ret, (int)size, file))
		return false;
	ret[strcspn(ret, "\n")] = 0;
	return true;
}

/* "pid:[4026531836]" as its number. */
static void read_namespace(const char *path, char ret[WORD])
{
	char link[WORD] = "";
	ssize_t size = readlink(path, link, sizeof link - 1);
	const char *number = size > 0 ? strchr(link, '[') : NULL;

	snprintf(ret, WORD, "%.*s", number ? (int)strcspn(number + 1, "]") : 1,
		 number ? number + 1 : "-");
}

static void look_around(struct here *ret)
{
	if (!read_line("/proc/sys/kernel/random/boot_id", ret->boot, sizeof ret->boot))
		snprintf(ret->boot, sizeof ret->boot, "-");
	read_namespace("/proc/self/ns/pid", ret->pids);
	read_namespace("/proc/self/ns/time", ret->times);
}

/* When a process began, in ticks since the start of the machine; 0: it has ended, and its parent
 * has not asked how; -1: nobody can know. */
static int64_t start_of(long pid)
{
	char path[WORD], line[1024];
	const char *rest;
	int64_t start = -1;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!read_line(path, line, sizeof line) || !(rest = strrchr(line, ')')))
		return -1;
	if (rest[1] == ' ' && (rest[2] == 'Z' || rest[2] == 'X'))
		return 0;
	for (int field = 2; rest && field < START_FIELD; field++)
		rest = strchr(rest + 1, ' ');
	return rest && sscanf(rest, " %" SCNd64, &start) == 1 ? start : -1;
}

void node_name_get(char ret[NODE_NAME_SIZE])
{
	char host[WORD] = "";
	struct here here;

	look_around(&here);
	gethostname(host, sizeof host - 1);
	snprintf(ret, NODE_NAME_SIZE, "%s:%ld:%" PRId64 ":%s:%s:%s", host, (long)getpid(),
		 start_of(getpid()), here.pids, here.times, here.boot);
}

/* kill(2) also knows those that /proc hides. */
static bool is_gone(long pid, int64_t start)
{
	int64_t now;

	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return true;
	now = start_of(pid);
	return now >= 0 && now != start;
}

void node_name_tell(struct rlmd_text name, char ret[NODE_TOLD_SIZE])
{
	auto_free char *copy = text_copy(name);
	const char *colon = strchr(copy, ':');
	int host = (int)(colon ? colon - copy : 0);

	snprintf(ret, NODE_TOLD_SIZE, "process %ld on %.*s",
		 colon ? strtol(colon + 1, NULL, 10) : 0L, host < WORD ? host : WORD, copy);
}

bool node_name_is_dead(struct rlmd_text name)
{
	auto_free char *copy = text_copy(name);
	char pids[WORD], times[WORD], boot[WORD];
	const char *numbers = strchr(copy, ':');
	struct here here;
	int64_t start;
	long pid;

	if (!numbers ||
	    sscanf(numbers, ":%ld:%" SCNd64 ":%63[^:]:%63[^:]:%63[^:]", &pid, &start, pids, times,
		   boot) != 5 ||
	    pid <= 0 || start <= 0)
		return false;
	look_around(&here);
	return *here.boot != '-' && *here.pids != '-' && !strcmp(boot, here.boot) &&
	       !strcmp(pids, here.pids) && !strcmp(times, here.times) && is_gone(pid, start);
}

/* --- this process ----------------------------------------------------------------------- */

struct node {
	struct node_options options;
	struct store *store; /* owned */
	struct query *query; /* lent */
	char name[NODE_NAME_SIZE];
	bool open, away;
};

static void tell_opened(struct node *node, const struct store_result *result)
{
	struct rlmd_error err;

	node->open = !result->fault;
	if (result->fault)
		batch_store_explain(result, &err);
	node->options.opened(node->options.owner, result->fault ? &err : NULL);
}

static void on_nodes(void *owner, const struct store_result *result)
{
	struct node *node = owner;

	node->query = NULL;
	for (size_t i = 0; i < result->count; i++)
		if (node_name_is_dead(result->nodes[i].node))
			store_release(node->store, result->nodes[i].node, NULL, NULL);
	tell_opened(node, result);
}

static void on_store(void *owner, const struct store_result *result)
{
	struct node *node = owner;

	if (result->fault)
		tell_opened(node, result);
	else
		node->query = store_nodes(node->store, 0, on_nodes, node);
}

static void on_news(void *owner, enum store_news news)
{
	struct node *node = owner;

	if (news != STORE_CHANGED) {
		node->away = news == STORE_WENT_AWAY || news == STORE_HELD;
		node->options.warn(node->options.owner, batch_store_news(news));
	}
	if (node->open && !node->away)
		node->options.changed(node->options.owner);
}

struct node *node_new(struct event_base *base, const struct node_options *options,
		      struct rlmd_error *err)
{
	struct node *node = xcalloc(1, sizeof *node);
	const struct store_options store = {
		.existing = options->existing &&
			    !(options->waits && store_is_shared(options->store)),
		.node = node->name,
		.news = on_news,
		.owner = node,
	};

	node->options = *options;
	node_name_get(node->name);
	node->store = store_open(base, options->store, &store, on_store, err);
	if (node->store)
		return node;
	node_free(node);
	return NULL;
}

void node_free(struct node *node)
{
	if (!node)
		return;
	store_forget(node->query);
	store_free(node->store);
	free(node);
}

struct store *node_store(const struct node *node)
{
	return node->store;
}

const char *node_name(const struct node *node)
{
	return node->name;
}

bool node_is_away(const struct node *node)
{
	return node->away || !node->open;
}
