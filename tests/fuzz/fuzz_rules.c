/*
 * The rules of a repository: its ignore rules, its attributes and its configuration. The
 * first line is a path to ask for.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "lister/repo_config.h"
#include "lister/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text text = text_from(data, size);
	size_t end = text_line_end(text, 0);
	auto_free char *path = text_copy(text_slice(text, 0, end));
	struct rlmd_text rest = text_slice(text, end, size);
	struct rules *rules = rules_new(size % 2);
	struct repo_config config = {.fold = false};

	rules_add_ignores(rules, "", rest);
	rules_add_attributes(rules, "", rest);
	rules_ignore(rules, path, false);
	rules_ignore(rules, path, true);
	rules_state(rules, path, RULES_GENERATED);
	repo_config_read(&config, rest);
	repo_config_done(&config);
	rules_free(rules);
	return 0;
}
