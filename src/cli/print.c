#include "cli/print.h"

#include <rlmd/price.h>
#include <rlmd/rlmd.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/tell.h"

int print_text(struct rlmd_text text)
{
	struct rlmd_error err = {0};
	struct output *output = output_new(OUTPUT_ANSWER, NULL, NULL, &err);
	bool ok = output && output_text(output, text, &err);

	if (!ok && !(output && output_reader_gone(output)))
		tell_error("%s", err.text);
	output_free(output);
	return rlmd_error_exit_status(err.kind);
}

int print_json(const json_t *value)
{
	auto_free char *dump = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY |
							 JSON_REAL_PRECISION(JSON_DIGITS));
	auto_free char *line = xasprintf("%s\n", dump);

	return print_text(text_of(line));
}

int print_version(void)
{
	struct rlmd_price_table *prices = rlmd_price_table_open(NULL, NULL);
	auto_free char *line = xasprintf("rlmd %s (prices of %s)\n", RLMD_VERSION,
					 prices ? rlmd_price_table_date(prices)
						: "no date: none found");

	rlmd_price_table_unref(prices);
	return print_text(text_of(line));
}
