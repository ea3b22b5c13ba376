#include "batch/traces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

enum { NAME_LONGEST = 120, DIGITS = 16 };

struct traces {
	char *path;    /* owned */
	int directory; /* owned; -1: it is not open yet */
};

struct traces *traces_new(const char *results)
{
	struct traces *traces = xcalloc(1, sizeof *traces);

	traces->path = xasprintf("%s.traces", results);
	traces->directory = -1;
	return traces;
}

void traces_free(struct traces *traces)
{
	if (!traces)
		return;
	if (traces->directory >= 0)
		close(traces->directory);
	free(traces->path);
	free(traces);
}

static bool is_plain(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || (c == '.' && !first);
}

static char *name_of(const char *id)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	const struct rlmd_text whole = text_of(id);
	char digest[DIGEST_SIZE];

	for (const char *at = id; *at; at++) {
		if (evbuffer_get_length(out) >= NAME_LONGEST) {
			digest_texts(&whole, 1, digest);
			buffer_add_printf(out, "-%.*s", DIGITS, digest);
			break;
		}
		if (is_plain(*at, at == id))
			buffer_add(out, at, 1);
		else
			buffer_add_printf(out, "%%%02X", (unsigned char)*at);
	}
	buffer_add_printf(out, ".jsonl");
	return text_drain(out, NULL);
}

/* Whether the directory is our own and no link: others who can write there could have us write
 * anywhere. */
static bool open_directory(struct traces *traces, struct rlmd_error *err)
{
	int fd;

	if (traces->directory >= 0)
		return true;
	if (mkdir(traces->path, 0755) && errno != EEXIST)
		return error_errno(err, RLMD_ERROR_INTERNAL, "cannot make %s", traces->path);
	fd = open(traces->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, RLMD_ERROR_INTERNAL, "cannot open the directory %s",
				   traces->path);
	if (!file_is_ours(fd, traces->path, RLMD_ERROR_INTERNAL, err)) {
		close(fd);
		return false;
	}
	traces->directory = fd;
	return true;
}

bool traces_put(struct traces *traces, const char *custom_id, struct rlmd_text text,
		struct rlmd_error *err)
{
	auto_free char *name = name_of(custom_id);
	struct atomic_file file;
	bool written;

	if (!open_directory(traces, err))
		return false;
	written = atomic_file_open_in(&file, traces->directory, name, 0666);
	if (written) {
		written = file_write_fd(file.fd, text, err) &&
			  (atomic_file_commit(&file, false) ||
			   error_errno(err, RLMD_ERROR_INTERNAL, "cannot name it"));
		atomic_file_done(&file);
	} else {
		error_errno(err, RLMD_ERROR_INTERNAL, "cannot make it");
	}
	return written || error_context(err, "the trace %s/%s", traces->path, name);
}

void traces_remove(struct traces *traces, const char *custom_id)
{
	auto_free char *name = name_of(custom_id);
	struct rlmd_error ignored;

	if (!access(traces->path, F_OK) && open_directory(traces, &ignored))
		unlinkat(traces->directory, name, 0);
}
