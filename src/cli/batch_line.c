#include "cli/batch_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/money.h"
#include "cli/figure.h"

enum {
	PART_MAX = 96,
	TENANTS_SHOWN = 5,
	NAME_SHOWN = 16,
};

/* In the order in which they stand. */
enum part {
	PART_STOPPING,
	PART_DONE,
	PART_FAILED,
	PART_AT_WORK,
	PART_CALLS,
	PART_COST,
	PART_LEFT,
	PART_TENANTS,
	PARTS
};

/* The first to go first. */
static const enum part expendable[] = {PART_TENANTS, PART_CALLS, PART_AT_WORK, PART_STOPPING,
				       PART_LEFT,    PART_COST,  PART_FAILED,  PART_DONE};

void batch_line_duration(int64_t ms, char out[static 24])
{
	int64_t minutes = (ms + 30000) / 60000;

	if (ms < 60000)
		snprintf(out, 24, "%" PRId64 "s", (ms > 0 ? ms : 0) / 1000);
	else if (minutes < 60)
		snprintf(out, 24, "%" PRId64 "m", minutes);
	else if (minutes < 24 * 60)
		snprintf(out, 24, "%" PRId64 "h%02dm", minutes / 60, (int)(minutes % 60));
	else
		snprintf(out, 24, "%" PRId64 "d%02dh", minutes / 60 / 24, (int)(minutes / 60 % 24));
}

static int64_t all_of(const int64_t jobs[STORE_JOB_STATES])
{
	int64_t all = 0;

	for (int state = 0; state < STORE_JOB_STATES; state++)
		all += jobs[state];
	return all;
}

static int64_t over_of(const int64_t jobs[STORE_JOB_STATES])
{
	return jobs[STORE_JOB_SUCCEEDED] + jobs[STORE_JOB_FAILED];
}

/* A name is data: what is no letter of ASCII has a width that nobody knows. */
static void format_tenant(const struct scoreboard_tenant *tenant, char out[static 80])
{
	char name[NAME_SHOWN + 1], over[24], all[24];

	snprintf(name, sizeof name, "%s", *tenant->name ? tenant->name : "-");
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	figure_count(over_of(tenant->jobs), over);
	figure_count(all_of(tenant->jobs), all);
	snprintf(out, 80, "%s %s/%s%s%s", name, over, all,
		 tenant->stop == TURN_BUSY ? " "
		 : tenant->stop            ? " stopped: "
					   : "",
		 scoreboard_stop_name(tenant->stop));
}

/* Those that are shown end with how many there are beside them. */
static void format_tenants(const struct scoreboard *board, char out[static PART_MAX])
{
	char one[80], more[32];
	size_t size = 0, shown = 0;

	*out = '\0';
	if (board->count < 2)
		return;
	for (; shown < board->count && shown < TENANTS_SHOWN; shown++) {
		format_tenant(board->tenants[shown], one);
		if (size + strlen(one) + sizeof more >= PART_MAX)
			break;
		size += (size_t)snprintf(out + size, PART_MAX - size, "%s%s", shown ? ", " : "",
					 one);
	}
	if (shown < board->count)
		snprintf(out + size, PART_MAX - size, ", %zu more", board->count - shown);
}

static void format_parts(const struct scoreboard *board, const struct scoreboard_sum *sum,
			 bool stopping, char parts[static PARTS][PART_MAX])
{
	char money[32], left[24];

	memset(parts, 0, PARTS * sizeof *parts);
	money_format(sum->cost, money);
	batch_line_duration(sum->left_ms, left);
	if (stopping)
		snprintf(parts[PART_STOPPING], PART_MAX, "finishing (Ctrl-C stops now)");
	snprintf(parts[PART_DONE], PART_MAX, "%" PRId64 " of %" PRId64, over_of(sum->jobs),
		 all_of(sum->jobs));
	if (sum->jobs[STORE_JOB_FAILED])
		snprintf(parts[PART_FAILED], PART_MAX, "%" PRId64 " failed",
			 sum->jobs[STORE_JOB_FAILED]);
	snprintf(parts[PART_AT_WORK], PART_MAX, "%" PRId64 " at work", sum->at_work);
	snprintf(parts[PART_CALLS], PART_MAX, "%" PRId64 " call%s", sum->calls_in_flight,
		 sum->calls_in_flight == 1 ? "" : "s");
	snprintf(parts[PART_COST], PART_MAX, "%s", money);
	if (sum->left_ms >= 0)
		snprintf(parts[PART_LEFT], PART_MAX, "%s left", left);
	format_tenants(board, parts[PART_TENANTS]);
}

/* Returns how long it would be. */
static size_t join(char parts[static PARTS][PART_MAX], char line[static LIVE_LINE_MAX])
{
	size_t size = 0;

	*line = '\0';
	for (int part = 0; part < PARTS; part++) {
		if (!*parts[part])
			continue;
		if (size < LIVE_LINE_MAX)
			snprintf(line + size, LIVE_LINE_MAX - size, "%s%s", size ? " | " : "",
				 parts[part]);
		size += strlen(parts[part]) + (size ? 3 : 0);
	}
	return size;
}

void batch_line_format(const struct scoreboard *board, const struct scoreboard_sum *sum,
		       bool stopping, size_t width, char line[static LIVE_LINE_MAX])
{
	char parts[PARTS][PART_MAX];

	if (width >= LIVE_LINE_MAX)
		width = LIVE_LINE_MAX - 1;
	format_parts(board, sum, stopping, parts);
	if (stopping && join(parts, line) > width)
		snprintf(parts[PART_STOPPING], PART_MAX, "finishing");
	for (int gone = 0; gone < PARTS && join(parts, line) > width; gone++)
		*parts[expendable[gone]] = '\0';
	if (join(parts, line) > width)
		*line = '\0';
}
