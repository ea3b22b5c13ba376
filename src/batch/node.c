#include "batch/node.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "batch/node_name.h"
#include "batch/store_explain.h"
#include "store/store.h"

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
		store_explain(result, &err);
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

	switch (news) {
	case STORE_WENT_AWAY:
		node->away = true;
		node->options.warn(node->options.owner,
				   "the store cannot be reached: no job is begun until it can, "
				   "those at work go on");
		return;
	case STORE_CAME_BACK:
		node->away = false;
		node->options.warn(node->options.owner, "the store can be reached again");
		break;
	case STORE_CHANGED:
		break;
	}
	if (node->open)
		node->options.changed(node->options.owner);
}

struct node *node_new(struct event_base *base, const struct node_options *options,
		      struct rlmd_error *err)
{
	struct node *node = xcalloc(1, sizeof *node);
	const struct store_options store = {.news = on_news, .owner = node};

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
	return node->away;
}
