/*
 * base/log.h - one line a happening, on standard error.
 *
 * Define LOG_MODULE before including it. What happened in a run (prompts,
 * code, outputs, charges) is not log but trace: trace/trace.h.
 */
#pragma once

enum log_level {
	LOG_ERROR,
	LOG_WARNING, /* the default */
	LOG_INFO,
	LOG_DEBUG,
};

#ifndef LOG_MODULE
#define LOG_MODULE "rlmd"
#endif

#define LOG(level, ...) log_write(level, LOG_MODULE, __VA_ARGS__)

/* Everything is escaped, so that what a model or a worker wrote cannot steer a terminal. */
void log_write(enum log_level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void log_set_level(enum log_level);

/* Called before a line is written, so that a status line can step aside. NULL: nobody. */
void log_set_interlude(void (*before)(void));

/* Lets libevent's own messages join; call it once. */
void log_install(void);
