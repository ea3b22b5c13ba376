#include "cli/isolation.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

struct rlmd_sandbox *isolation_open(struct event_base *base, const struct config *config,
				    const struct log *log, struct rlmd_error *err)
{
	auto_free char *template = file_shipped("worker", "template.py");
	struct sandbox_config settings = {
		.python = config->python,
		.preload = (const char *const *)config->preload.items,
		.worker_memory = (size_t)config->worker_memory,
		.first_uid = (uint32_t)config->first_uid,
		.worker_dir = template,
		.log = log,
	};

	if (access(template, R_OK)) {
		error_errno(err, RLMD_ERROR_SANDBOX,
			    "the worker's files are neither beside the program nor installed: "
			    "build all targets, or install; %s",
			    template);
		return NULL;
	}
	*strrchr(template, '/') = '\0';
	return sandbox_new(base, &settings, err);
}

bool isolation_suffices(const json_t *report, const char *level, struct rlmd_error *err)
{
	const char *reached = json_string_value(json_object_get(report, "level"));

	if (!level || strcmp(reached ? reached : "", level) >= 0)
		return true;
	return error_set(err, RLMD_ERROR_SANDBOX, "isolation %s is less than --require %s",
			 reached ? reached : "none", level);
}
