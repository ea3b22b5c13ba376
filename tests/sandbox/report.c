/*
 * Tells in one line of JSON what stands here and what a worker says of itself, or
 * why there is none: for tests that make the kernel refuse something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "stage.h"

static const char question[] =
	"import json\n"
	"say(json.dumps({'layers': layers, 'pid': os.getpid(), 'uid': os.getuid(),\n"
	"    'open': attempt('open(\"/etc/passwd\")')}))";

static json_t *refusal(const struct rlmd_error *err)
{
	return json_pack("{s:s, s:s}", "error", err->text, "kind", rlmd_error_name(err->kind));
}

static json_t *examine(struct stage *stage)
{
	auto_free char *heard = NULL;
	struct rlmd_error err = {0};
	struct cast cast;
	json_t *answer;

	stage->base = event_base_new();
	stage->sandbox = stage_sandbox(stage->base, NULL, &err);
	if (!stage->sandbox)
		return refusal(&err);
	begin(&cast, stage, NULL, 0, 0);
	event_base_dispatch(stage->base);
	if (cast.process) {
		tell(&cast, question);
		free(hear(&cast, true)); /* that it is there */
		heard = hear(&cast, true);
		answer = json_pack("{s:o, s:o}", "report", sandbox_report(stage->sandbox), "worker",
				   json_loads(heard, 0, NULL));
	} else {
		answer = refusal(&cast.error);
	}
	end(&cast);
	return answer;
}

int main(void)
{
	struct stage stage = {0};
	json_t *answer;

	if (stage_make_directory(NULL))
		return 1;
	answer = examine(&stage);
	json_dumpf(answer, stdout, JSON_COMPACT);
	puts("");
	json_decref(answer);
	fflush(stdout);
	sandbox_free(stage.sandbox);
	event_base_free(stage.base);
	return stage_remove_directory(NULL);
}
