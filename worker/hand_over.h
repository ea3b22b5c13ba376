/*
 * worker/hand_over.h - sends descriptors over a socket, where others' let it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * One message with up to LAUNCH_REPLY_FDS descriptors, or none. Where processes of this user have
 * too many on their way to each other, unix(7), it waits for them, some seconds at most. False:
 * errno says why.
 */
bool hand_over(int socket, const void *bytes, size_t size, const int *fds, size_t fd_count);
