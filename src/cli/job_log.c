#include "cli/job_log.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"

bool job_log_is(int fd)
{
	static const char *const services[] = {"GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"};
	struct stat st;
	bool service = false;

	for (size_t i = 0; i < sizeof services / sizeof *services; i++)
		service = service || (getenv(services[i]) && *getenv(services[i]));
	return service && !fstat(fd, &st) && !S_ISREG(st.st_mode);
}

static bool is_visible_ascii(char c)
{
	return c > ' ' && c <= '~';
}

/* A carriage return ends a line, too, and white space before a command is any that Unicode has: all
 * beyond ASCII counts as such. */
static void disarm_lines(struct rlmd_text text, struct evbuffer *out)
{
	bool begins = true;
	size_t done = 0;

	for (size_t i = 0; i < text.size; i++) {
		char c = text.bytes[i];

		if (begins && c == ':' && i + 1 < text.size && text.bytes[i + 1] == ':') {
			evbuffer_add(out, text.bytes + done, i - done);
			evbuffer_add_printf(out, "\\x3a");
			done = i + 1;
		}
		begins = c == '\n' || c == '\r' || (begins && !is_visible_ascii(c));
	}
	evbuffer_add(out, text.bytes + done, text.size - done);
}

void job_log_disarm(struct rlmd_text text, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *lines = evbuffer_new();

	disarm_lines(text, lines);
	text_disarm(text_in(lines), "\\x5b", out);
}
