#include "engine/posts.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/loop.h"

struct post {
	rlmd_post_fn *fn;
	void *arg; /* lent */
	STAILQ_ENTRY(post) entry;
};

STAILQ_HEAD(post_list, post);

struct posts {
	pthread_mutex_t lock; /* of the list */
	struct post_list list;
	int fd;              /* owned: an eventfd(2) */
	int loop_fd;         /* lent; -1: not known */
	struct event *woken; /* owned */
};

static struct post *take_first(struct post_list *list)
{
	struct post *first = STAILQ_FIRST(list);

	if (first)
		STAILQ_REMOVE_HEAD(list, entry);
	return first;
}

static struct post *take(struct posts *posts)
{
	struct post *first;

	pthread_mutex_lock(&posts->lock);
	first = take_first(&posts->list);
	pthread_mutex_unlock(&posts->lock);
	return first;
}

/* One a turn of the loop: a function may end the turn, or take long. */
static void on_woken(evutil_socket_t fd, short what, void *owner)
{
	struct post *post = take(owner);
	eventfd_t one;

	(void)what;
	eventfd_read(fd, &one);
	if (post)
		post->fn(post->arg);
	free(post);
}

struct posts *posts_new(struct event_base *base, struct rlmd_error *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	struct posts *posts;

	if (fd < 0) {
		error_errno(err, RLMD_ERROR_MACHINE, "cannot make an eventfd");
		return NULL;
	}
	posts = xcalloc(1, sizeof *posts);
	pthread_mutex_init(&posts->lock, NULL);
	STAILQ_INIT(&posts->list);
	posts->fd = fd;
	posts->loop_fd = -1;
	posts->woken = loop_event(base, fd, EV_READ | EV_PERSIST, on_woken, posts);
	loop_add(posts->woken, NULL);
	return posts;
}

/* In a forked child another thread of the parent may hold the lock for ever. */
void posts_free(struct posts *posts)
{
	struct post *post;

	if (!posts)
		return;
	event_free(posts->woken);
	close(posts->fd);
	while ((post = take_first(&posts->list)))
		free(post);
	free(posts);
}

void posts_add(struct posts *posts, rlmd_post_fn *fn, void *arg)
{
	struct post *post = xcalloc(1, sizeof *post);

	post->fn = fn;
	post->arg = arg;
	pthread_mutex_lock(&posts->lock);
	STAILQ_INSERT_TAIL(&posts->list, post, entry);
	pthread_mutex_unlock(&posts->lock);
	eventfd_write(posts->fd, 1);
}

int posts_loop_fd(struct posts *posts)
{
	if (posts->loop_fd < 0)
		posts->loop_fd = loop_fd(posts->fd);
	return posts->loop_fd;
}
