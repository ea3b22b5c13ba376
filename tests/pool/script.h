/*
 * pool/script.h - what the other side of the pipes is made of: bytes, and no more.
 *
 * Runs in a forked process, so it asserts nothing: a script that hears what it
 * does not expect ends with SCRIPT_LOST, and the test sees that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRIPT_LOST = 42 };

/* Members of `llm_query` that ask nothing of the answers. */
#define USUAL "\"turns\":[],\"system\":null,\"max_tokens\":null,\"temperature\":null"

void put_bytes(int out, const void *bytes, size_t size);
void put_length(int out, uint32_t length);
void say(int out, const char *json); /* a frame */

/* The JSON of the next frame, static; ends the process at end of file. */
const char *hear(int in);
void expect(int in, const char *part); /* the next frame must contain it */

void handshake(int in, int out);   /* up to `started`, honestly */
void begin_block(int in, int out); /* and up to `exec` */
void say_done(int out, const char *printed);
