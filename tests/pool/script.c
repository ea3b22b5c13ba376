#include "pool/script.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void put_bytes(int out, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t written = write(out, at, size);

		if (written <= 0)
			_exit(SCRIPT_LOST);
		at += written;
		size -= (size_t)written;
	}
}

void put_length(int out, uint32_t length)
{
	length = htonl(length);
	put_bytes(out, &length, sizeof length);
}

void say(int out, const char *json)
{
	put_length(out, (uint32_t)strlen(json));
	put_bytes(out, json, strlen(json));
}

static void take(int in, void *bytes, size_t size)
{
	char *at = bytes;

	while (size) {
		ssize_t got = read(in, at, size);

		if (got <= 0)
			_exit(got ? SCRIPT_LOST : 0);
		at += got;
		size -= (size_t)got;
	}
}

const char *hear(int in)
{
	static char json[(1 << 20) + 1];
	uint32_t length;

	take(in, &length, sizeof length);
	length = ntohl(length);
	if (length >= sizeof json)
		_exit(SCRIPT_LOST);
	take(in, json, length);
	json[length] = '\0';
	return json;
}

void expect(int in, const char *part)
{
	if (!strstr(hear(in), part))
		_exit(SCRIPT_LOST);
}

void handshake(int in, int out)
{
	say(out, "{\"type\":\"ready\",\"python\":\"3.11.2\",\"layers\":[\"seccomp\"]}");
	expect(in, "\"type\":\"start\"");
	say(out, "{\"type\":\"started\",\"error\":null,\"no_memory\":false}");
}

void begin_block(int in, int out)
{
	handshake(in, out);
	expect(in, "\"type\":\"exec\"");
}

void say_done(int out, const char *printed)
{
	char json[256];

	snprintf(json, sizeof json,
		 "{\"type\":\"done\",\"block\":1,\"stdout\":\"%s\",\"stderr\":\"\",\"error\":null,"
		 "\"missing\":null,\"final\":null,\"answer\":null}",
		 printed);
	say(out, json);
}
