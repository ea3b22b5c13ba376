/* base/cleanup.h - locals that release themselves when their scope ends. */
#pragma once

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *variable)
{
	free(*(void **)variable);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_evbuffer(struct evbuffer **buffer)
{
	if (*buffer)
		evbuffer_free(*buffer);
}

#define auto_free     __attribute__((cleanup(cleanup_free)))
#define auto_close    __attribute__((cleanup(cleanup_close)))
#define auto_file     __attribute__((cleanup(cleanup_file)))
#define auto_evbuffer __attribute__((cleanup(cleanup_evbuffer)))

/* Gives the value up and leaves an empty one for the cleanup. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *take_pointer(void *variable)
{
	void **pointer = variable;
	void *taken = *pointer;

	*pointer = NULL;
	return taken;
}
