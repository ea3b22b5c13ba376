#include "cli/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define SYSTEM_FILE     "/etc/rlmd/rlmd.conf"
#define VARIABLE_PREFIX "RLMD_"

enum {
	LONG_OPTION = 256, /* what getopt_long() returns for the first row of the table */
	FORMER_OPTION = LONG_OPTION + OPTION_COUNT, /* and for the first one that goes */
	FORMER_MAX = 8,
	NAME_TEXT = 64, /* an option's name and what goes in front */
};

static const size_t offsets[OPTION_COUNT] = {
#define GROUP(heading)
#define OPTION(field, ...) [OPTION_##field] = offsetof(struct config, field),
#include "cli/options.def"
#undef OPTION
#undef GROUP
};

static void clear_list(struct config_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct config_list){0};
}

static void add_to_list(struct config_list *list, const char *text)
{
	list->items = xreallocarray(list->items, list->count + 2, sizeof *list->items);
	list->items[list->count++] = xstrdup(text);
	list->items[list->count] = NULL;
}

static void store(struct config *config, enum option_id id, union option_value value, bool again)
{
	void *member = (char *)config + offsets[id];

	switch (option_table[id].type) {
	case OPTION_IS_TEXT:
	case OPTION_IS_NAME:
	case OPTION_IS_CHOICE:
		free(*(char **)member);
		*(char **)member = xstrdup(value.text);
		break;
	case OPTION_IS_LIST:
	case OPTION_IS_PHRASES:
		if (!again)
			clear_list(member);
		add_to_list(member, value.text);
		break;
	case OPTION_IS_TALLY:
		*(int64_t *)member += value.number;
		break;
	case OPTION_IS_COUNT:
	case OPTION_IS_DURATION:
	case OPTION_IS_MONEY:
	case OPTION_IS_SIZE:
		*(int64_t *)member = value.number;
		break;
	case OPTION_IS_NUMBER:
		*(double *)member = value.real;
		break;
	case OPTION_IS_SWITCH:
		*(bool *)member = value.on;
		break;
	}
}

bool config_set(struct config *config, enum config_layer layer, enum option_id id,
		const char *string, struct rlmd_error *err)
{
	union option_value value;

	if (!option_value_read(&option_table[id], string, &value, err))
		return false;
	if (layer < config->layers[id])
		return true;
	store(config, id, value, layer == config->layers[id]);
	config->layers[id] = layer;
	return true;
}

void config_init(struct config *config)
{
	*config = (struct config){0};
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].standard) {
			bool legal = config_set(config, CONFIG_DEFAULT, (enum option_id)i,
						option_table[i].standard, NULL);

			assert(legal);
			(void)legal;
		}
}

void config_done(struct config *config)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		void *member = (char *)config + offsets[i];
		enum option_type type = option_table[i].type;

		if (type == OPTION_IS_TEXT || type == OPTION_IS_NAME || type == OPTION_IS_CHOICE)
			free(*(char **)member);
		if (type == OPTION_IS_LIST || type == OPTION_IS_PHRASES)
			clear_list(member);
	}
	tenants_done(&config->tenants);
	json_decref(config->notes);
	*config = (struct config){0};
}

void config_copy(struct config *ret, const struct config *from)
{
	*ret = *from;
	ret->tenants = (struct tenants){0};
	ret->notes = NULL;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		void *member = (char *)ret + offsets[i];
		enum option_type type = option_table[i].type;
		const struct config_list *list = (const void *)((const char *)from + offsets[i]);

		if (type == OPTION_IS_TEXT || type == OPTION_IS_NAME || type == OPTION_IS_CHOICE)
			*(char **)member = xstrdup(*(char **)member);
		if (type != OPTION_IS_LIST && type != OPTION_IS_PHRASES)
			continue;
		*(struct config_list *)member = (struct config_list){0};
		for (size_t k = 0; k < list->count; k++)
			add_to_list(member, list->items[k]);
	}
}

bool config_given(const struct config *config, enum option_id id)
{
	return config->layers[id] != CONFIG_DEFAULT;
}

/* --- arguments ------------------------------------------------------------- */

static void fill_formers(enum command_id command, struct option *options)
{
	const struct option_former *former;
	size_t at = 0;

	for (int i = 0; i < FORMER_MAX && (former = option_former(command, &at)); i++)
		*options++ = (struct option){.name = former->name,
					     .has_arg = former->value ? no_argument
								      : required_argument,
					     .val = FORMER_OPTION + i};
	*options = (struct option){0};
}

static void fill_options(enum command_id command, struct option *options, char *letters)
{
	*letters++ = ':';
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_table[i];

		if (!option_is_of((enum option_id)i, command))
			continue;
		*options++ = (struct option){
			.name = row->name,
			.has_arg = row->argument                   ? required_argument
				   : row->type == OPTION_IS_SWITCH ? optional_argument
								   : no_argument,
			.val = LONG_OPTION + (int)i,
		};
		if (row->letter) {
			*letters++ = row->letter;
			if (row->argument)
				*letters++ = ':';
		}
	}
	fill_formers(command, options);
	*letters = '\0';
}

/* The option that getopt_long() found, by its letter or its name. */
static enum option_id option_of(enum command_id command, int code)
{
	if (code >= LONG_OPTION)
		return (enum option_id)(code - LONG_OPTION);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].letter == code && option_is_of((enum option_id)i, command))
			return (enum option_id)i;
	return OPTION_COUNT;
}

/* Whether several options begin like that; the error lists them. */
static bool ambiguous_option(enum command_id command, const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *candidates = buffer_new();
	auto_free char *list = NULL;
	size_t count = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_is_of((enum option_id)i, command) &&
		    !strncmp(option_table[i].name, name, strlen(name)))
			buffer_add_printf(candidates, "%s--%s", count++ ? ", " : "",
					  option_table[i].name);
	list = text_drain(candidates, NULL);
	if (count > 1)
		error_set(err, RLMD_ERROR_USAGE, "--%s may mean %s", name, list);
	return count > 1;
}

/* Whether the option, which the command lacks, is one of others; OPTION_COUNT is none. */
static bool foreign_option(enum command_id command, enum option_id id, struct rlmd_error *err)
{
	return id < OPTION_COUNT && !error_set(err, RLMD_ERROR_USAGE, "%s has no use for --%s",
					       command_table[command].name, option_table[id].name);
}

static bool unknown_letter(enum command_id command, char letter, struct rlmd_error *err)
{
	const char name[] = {'-', letter, '\0'};

	return !option_misnamed(command, name, err) &&
	       !foreign_option(command, option_of(COMMAND_ANY, letter), err) &&
	       error_set(err, RLMD_ERROR_USAGE, "there is no option -%c", letter);
}

/* getopt_long() says only that something is wrong; what it is stands in the arguments. */
static bool unknown_option(enum command_id command, char **argv, struct rlmd_error *err)
{
	const char *word = argv[optind - 1];
	char name[NAME_TEXT];
	const char *near;

	if (optopt && optopt < LONG_OPTION)
		return unknown_letter(command, (char)optopt, err);
	if (optopt && optopt < FORMER_OPTION)
		return error_set(err, RLMD_ERROR_USAGE, "--%s takes no value",
				 option_table[optopt - LONG_OPTION].name);
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	if (option_misnamed(command, name, err) ||
	    foreign_option(command, option_find(COMMAND_ANY, name), err) ||
	    ambiguous_option(command, name, err))
		return false;
	near = option_nearest_name(command, name);
	return error_set(err, RLMD_ERROR_USAGE, "there is no option --%s%s%s%s", name,
			 near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* The word of a long option that was taken just now, which may have been shortened. */
static void name_of_taken(char **argv, char name[static NAME_TEXT])
{
	const char *word = argv[optind - 1];

	if (optarg == word)
		word = argv[optind - 2];
	snprintf(name, NAME_TEXT, "%.*s", (int)strcspn(word + 2, "="), word + 2);
}

static bool use_former(struct config *config, enum command_id command, int code,
		       struct rlmd_error *err)
{
	const struct option_former *former = NULL;
	size_t at = 0;

	for (int i = FORMER_OPTION; i <= code; i++)
		former = option_former(command, &at);
	if (!config->notes)
		config->notes = json_array();
	json_array_append_new(config->notes,
			      json_sprintf("--%s goes with the next version: write %s",
					   former->name, former->instead));
	return config_set(config, CONFIG_ARGUMENT, former->now,
			  former->value ? former->value : optarg, err) ||
	       error_context(err, "--%s", former->name);
}

bool config_arguments(struct config *config, enum command_id command, int argc, char **argv,
		      int *ret_first, struct rlmd_error *err)
{
	struct option options[OPTION_COUNT + FORMER_MAX + 1];
	char letters[2 * OPTION_COUNT + 2], name[NAME_TEXT];
	int code;

	fill_options(command, options, letters);
	opterr = 0;
	optind = 0; /* start anew, with glibc's own state too */
	while ((code = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		enum option_id id;

		if (code == '?' || (code == ':' && optopt >= FORMER_OPTION))
			return unknown_option(command, argv, err);
		if (code >= FORMER_OPTION) {
			if (!use_former(config, command, code, err))
				return false;
			continue;
		}
		id = option_of(command, code == ':' ? optopt : code);
		if (code >= LONG_OPTION) {
			name_of_taken(argv, name);
			if (option_misnamed(command, name, err))
				return false;
		}
		if (code == ':')
			return error_set(err, RLMD_ERROR_USAGE, "--%s needs a value: %s",
					 option_table[id].name, option_table[id].argument);
		if (!config_set(config, CONFIG_ARGUMENT, id, optarg ? optarg : "yes", err))
			return error_context(err, "--%s", option_table[id].name);
	}
	*ret_first = optind;
	return true;
}

void config_hide_password(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(argv[i], "postgres"))
			address_hide(argv[i]);
}

/* --- environment ----------------------------------------------------------- */

/* Several values in one string are parted by commas; those that may have any, by line feeds. */
static bool set_from_string(struct config *config, enum config_layer layer, enum option_id id,
			    const char *value, struct rlmd_error *err)
{
	auto_free char *copy = xstrdup(value);
	enum option_type type = option_table[id].type;
	char *rest = copy, *item;

	if (type != OPTION_IS_LIST && type != OPTION_IS_PHRASES)
		return config_set(config, layer, id, value, err);
	while ((item = strsep(&rest, type == OPTION_IS_LIST ? ", " : "\n")))
		if (*item && !config_set(config, layer, id, item, err))
			return false;
	return true;
}

/* RLMD_MAX_COST, of max-cost */
static void name_variable(enum option_id id, char name[static NAME_TEXT])
{
	snprintf(name, NAME_TEXT, VARIABLE_PREFIX "%s", option_table[id].name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

bool config_environment(struct config *config, struct rlmd_error *err)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		char name[NAME_TEXT];
		const char *value;

		if (option_table[i].scope != OPTION_SETTING)
			continue;
		name_variable((enum option_id)i, name);
		value = getenv(name);
		if (value && *value &&
		    !set_from_string(config, CONFIG_ENVIRONMENT, (enum option_id)i, value, err))
			return error_context(err, "%s", name);
	}
	return true;
}

/* The option that the variable belongs to, or OPTION_COUNT. */
static enum option_id option_of_variable(const char *variable, size_t size)
{
	enum option_id id = 0;
	char name[NAME_TEXT];

	for (; id < OPTION_COUNT; id++) {
		name_variable(id, name);
		if (strlen(name) == size && !strncmp(variable, name, size))
			break;
	}
	return id;
}

static char *stray_variable(const char *variable, size_t size)
{
	enum option_id id = option_of_variable(variable, size);
	char names[OPTION_COUNT][NAME_TEXT];
	const char *known[OPTION_COUNT], *near;
	auto_free char *name = xstrndup(variable, size);
	size_t count = 0;

	if (id < OPTION_COUNT && option_table[id].scope == OPTION_SETTING)
		return NULL;
	if (id < OPTION_COUNT)
		return xasprintf("%s has no effect: --%s can stand on the command line only", name,
				 option_table[id].name);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].scope == OPTION_SETTING) {
			name_variable((enum option_id)i, names[count]);
			known[count] = names[count] + strlen(VARIABLE_PREFIX);
			count++;
		}
	near = option_nearest(name + strlen(VARIABLE_PREFIX), known, count);
	return xasprintf("%s has no effect: there is no such setting%s%s%s", name,
			 near ? "; did you mean " VARIABLE_PREFIX : "", near ? near : "",
			 near ? "?" : "");
}

json_t *config_stray_environment(void)
{
	json_t *sentences = json_array();

	for (char **variable = environ; *variable; variable++) {
		size_t size = strcspn(*variable, "=");
		auto_free char *sentence = NULL;

		if (strncmp(*variable, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) ||
		    !(*variable)[size] || !(*variable)[size + 1])
			continue;
		sentence = stray_variable(*variable, size);
		if (sentence)
			json_array_append_new(sentences, json_from_text(text_of(sentence)));
	}
	return sentences;
}

/* --- files ------------------------------------------------------------------ */

/* One file while inih reads it line by line. */
struct reading {
	struct config *config; /* lent */
	const char *path;      /* lent */
	FILE *file;            /* lent */
	enum config_layer layer;
	unsigned line;
	struct rlmd_error error; /* the first one */
};

static bool fail_at(struct reading *reading)
{
	return error_context(&reading->error, "%s:%u", reading->path, reading->line);
}

/* Two habits of inih are kept from it: the rest of a line that is too long would be the next
 * line, and an indented line more of the last value. */
static char *read_line(char *line, int size, void *stream)
{
	struct reading *reading = stream;
	size_t indent;

	if (reading->error.kind || !fgets(line, size, reading->file))
		return NULL;
	reading->line++;
	if (!strchr(line, '\n') && !feof(reading->file)) {
		error_set(&reading->error, RLMD_ERROR_USAGE, "the line is longer than %d bytes",
			  size - 2);
		fail_at(reading);
		return NULL;
	}
	indent = strspn(line, " \t");
	memmove(line, line + indent, strlen(line + indent) + 1);
	return line;
}

/* "[tenant acme]": a section that is more than settings. NULL: it is none. */
static const char *tenant_of(const char *section)
{
	size_t word = strcspn(section, " \t");

	return word == strlen("tenant") && !strncmp(section, "tenant", word)
		       ? section + word + strspn(section + word, " \t")
		       : NULL;
}

static bool use_setting(struct reading *reading, const char *section, const char *name,
			const char *value)
{
	enum option_id id = option_find(COMMAND_ANY, name);
	const char *tenant = tenant_of(section), *near;

	if (tenant)
		return tenants_set(&reading->config->tenants, tenant, name, value,
				   &reading->error) ||
		       error_context(&reading->error, "[%s]", section);
	if (*section && strcmp(section, "exec"))
		return error_set(&reading->error, RLMD_ERROR_USAGE,
				 "there is no section [%s]; settings need none, and tenants have "
				 "[tenant NAME]",
				 section);
	if (id < OPTION_COUNT && option_table[id].scope == OPTION_SETTING)
		return set_from_string(reading->config, reading->layer, id, value,
				       &reading->error) ||
		       error_context(&reading->error, "%s", name);
	if (id < OPTION_COUNT)
		return error_set(&reading->error, RLMD_ERROR_USAGE,
				 "'%s' can stand on the command line only", name);
	near = option_nearest_name(COMMAND_ANY, name);
	return error_set(&reading->error, RLMD_ERROR_USAGE, "there is no setting '%s'%s%s%s", name,
			 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int on_setting(void *owner, const char *section, const char *name, const char *value)
{
	struct reading *reading = owner;

	if (reading->error.kind)
		return 1;
	return use_setting(reading, section, name, value) || fail_at(reading);
}

bool config_file(struct config *config, enum config_layer layer, const char *path,
		 struct rlmd_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO too */
	auto_file FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct reading reading = {.config = config, .path = path, .file = file, .layer = layer};
	struct stat st;
	int bad;

	if (!file || fstat(fileno(file), &st))
		return error_errno(err, RLMD_ERROR_USAGE, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, RLMD_ERROR_USAGE, "cannot read %s: not a regular file", path);
	if (!file_is_ours(fileno(file), path, RLMD_ERROR_USAGE, err))
		return error_context(err, "the configuration");
	bad = ini_parse_stream(read_line, &reading, on_setting, &reading);
	if (!reading.error.kind && bad)
		error_set(&reading.error, RLMD_ERROR_USAGE,
			  "%s:%d: neither 'name = value' nor a comment", path, bad);
	if (!reading.error.kind)
		return true;
	*err = reading.error;
	return false;
}

static bool config_file_if_there(struct config *config, enum config_layer layer, const char *path,
				 struct rlmd_error *err)
{
	struct stat st;

	if (stat(path, &st) && (errno == ENOENT || errno == ENOTDIR))
		return true;
	return config_file(config, layer, path, err);
}

bool config_files(struct config *config, struct rlmd_error *err)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	auto_free char *user = NULL;

	if (config->config)
		return config_file(config, CONFIG_USER_FILE, config->config, err);
	if (xdg && *xdg == '/')
		user = xasprintf("%s/rlmd/rlmd.conf", xdg);
	else if (home && *home == '/')
		user = xasprintf("%s/.config/rlmd/rlmd.conf", home);
	return config_file_if_there(config, CONFIG_SYSTEM_FILE, SYSTEM_FILE, err) &&
	       (!user || config_file_if_there(config, CONFIG_USER_FILE, user, err));
}
