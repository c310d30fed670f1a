/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 64 << 10, LIST_LIMIT = 1000 };

/* Rows every program has; read here, not stored in the program's struct. */
static const struct option_row own_rows[] = {
	{ .name = "config", .type = OPTION_TEXT, .argument = "FILE",
	  .help = "read options from FILE first, one key = value per line" },
	{ .name = "print-config", .type = OPTION_FLAG,
	  .help = "print the effective options as a file and exit" },
	{ .name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this list and exit" },
	{ .name = "version", .type = OPTION_FLAG, .help = "print the version and exit" },
	{ .name = NULL },
};

bool duration_parse(const char *text, int64_t *ms, struct error *err)
{
	static const struct { const char *name; int64_t ms; } units[] = {
		{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 },
	};
	char *end = NULL;
	unsigned long long number;

	errno = 0;
	number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
	if (!end || errno)
		return error_set(err, ERROR_OPTION,
				 "'%s' is not a duration such as 500ms, 10s, 5m, 2h or 7d", text);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (number > (unsigned long long)(INT64_MAX / units[i].ms))
			return error_set(err, ERROR_OPTION, "'%s' is too long", text);
		*ms = (int64_t)number * units[i].ms;
		return true;
	}
	return error_set(err, ERROR_OPTION, "'%s' needs a unit: ms, s, m, h or d, such as 10s", text);
}

bool size_parse(const char *text, uint64_t *bytes, struct error *err)
{
	static const char units[] = "KMGT";
	char *end = NULL;
	const char *unit;
	unsigned long long number;
	unsigned shift = 0;

	errno = 0;
	number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
	if (end && !errno && *end) {
		unit = strchr(units, toupper((unsigned char)*end));
		shift = unit ? 10 * (unsigned)(unit - units + 1) : 64;
		end++;
	}
	if (!end || errno || *end || shift > 40 || number > UINT64_MAX >> shift)
		return error_set(err, ERROR_OPTION, "'%s' is not a size such as 4096, 512K, 20M or 2G",
				 text);
	*bytes = (uint64_t)number << shift;
	return true;
}

static void *place(const struct option_row *row, void *values)
{
	return (char *)values + row->offset;
}

static bool set_uint(const struct option_row *row, const char *text, uint32_t *out,
		     struct error *err)
{
	char *end = NULL;
	unsigned long number;

	errno = 0;
	number = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
	if (!end || *end || errno || number < row->minimum || number > row->maximum)
		return error_set(err, ERROR_OPTION,
				 "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
				 row->name, row->minimum, row->maximum, text);
	*out = (uint32_t)number;
	return true;
}

static bool set_choice(const struct option_row *row, const char *text, uint32_t *out,
		       struct error *err)
{
	const char *at = row->argument;
	size_t length = strlen(text);

	for (uint32_t i = 0; at; i++) {
		const char *bar = strchr(at, '|');
		size_t width = bar ? (size_t)(bar - at) : strlen(at);

		if (width == length && !memcmp(at, text, length)) {
			*out = i;
			return true;
		}
		at = bar ? bar + 1 : NULL;
	}
	return error_set(err, ERROR_OPTION, "--%s takes %s, not '%s'", row->name, row->argument, text);
}

static bool set_list(const struct option_row *row, const char *text, struct option_list *list,
		     struct error *err)
{
	const char **texts;

	if (list->count >= LIST_LIMIT)
		return error_set(err, ERROR_LIMIT, "--%s is given more than %d times", row->name,
				 LIST_LIMIT);
	texts = realloc(list->texts, (list->count + 1) * sizeof *texts);
	if (!texts)
		return error_set(err, ERROR_MEMORY, "no memory for --%s", row->name);
	list->texts = texts;
	list->texts[list->count++] = text;
	return true;
}

static bool in_range(const struct option_row *row, uint64_t value, const char *text,
		     struct error *err)
{
	if (value >= row->minimum && (!row->maximum || value <= row->maximum))
		return true;
	return error_set(err, ERROR_OPTION, "--%s: '%s' is outside of what it can be (%s)", row->name,
			 text, row->help);
}

/* text is borrowed for the life of the process. */
static bool set_value(const struct option_row *row, const char *text, void *values,
		      struct error *err)
{
	void *out = place(row, values);
	int64_t ms;
	uint64_t bytes;

	switch (row->type) {
	case OPTION_FLAG:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return error_set(err, ERROR_OPTION, "--%s takes true or false, not '%s'",
					 row->name, text);
		*(bool *)out = !strcmp(text, "true");
		return true;
	case OPTION_UINT:
		return set_uint(row, text, out, err);
	case OPTION_TEXT:
		*(const char **)out = text;
		return true;
	case OPTION_LIST:
		return set_list(row, text, out, err);
	case OPTION_DURATION:
		if (!duration_parse(text, &ms, err))
			return error_prefix(err, "--%s", row->name);
		if (!in_range(row, (uint64_t)ms, text, err))
			return false;
		*(int64_t *)out = ms;
		return true;
	case OPTION_SIZE:
		if (!size_parse(text, &bytes, err))
			return error_prefix(err, "--%s", row->name);
		if (!in_range(row, bytes, text, err))
			return false;
		*(uint64_t *)out = bytes;
		return true;
	case OPTION_CHOICE:
		return set_choice(row, text, out, err);
	case OPTION_LATER:
		break;
	}
	return error_set(err, ERROR_UNSUPPORTED, "--%s: %s", row->name, row->help);
}

static const struct option_row *find(const struct option_row *rows, const char *name, size_t length)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == length && !memcmp(rows->name, name, length))
			return rows;
	return NULL;
}

static const struct option_row *find_letter(const struct option_row *rows, char letter)
{
	for (; rows->name; rows++)
		if (rows->letter && rows->letter == letter)
			return rows;
	return NULL;
}

/* --- the file --- */

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static bool read_line(const struct option_program *program, char *line, void *values,
		      struct error *err)
{
	char *equals;
	const struct option_row *row;
	char *key, *value;
	size_t length;

	line = trim(line);
	if (!*line || *line == '#')
		return true;
	equals = strchr(line, '=');
	if (!equals)
		return error_set(err, ERROR_OPTION, "'%s' is not key = value", line);
	*equals = '\0';
	key = trim(line);
	row = find(program->rows, key, strlen(key));
	if (!row || row->command_line_only)
		return error_set(err, ERROR_OPTION, "there is no option '%s' in a file", key);
	value = trim(equals + 1);
	length = strlen(value);
	if (length > 1 && (*value == '"' || *value == '\'') && value[length - 1] == *value)
		return error_set(err, ERROR_OPTION,
				 "the value of '%s' stands in quotes, which would be part of it: write "
				 "it without",
				 key);
	return set_value(row, value, values, err);
}

static char *read_file(const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t length;

	if (!file) {
		error_set_system(err, errno, "open '%s'", path);
		return NULL;
	}
	text = calloc(1, FILE_LIMIT + 1);
	length = text ? fread(text, 1, FILE_LIMIT + 1, file) : 0;
	if (!text || ferror(file) || length > FILE_LIMIT) {
		error_set(err, length > FILE_LIMIT ? ERROR_LIMIT : ERROR_SYSTEM, "'%s' %s", path,
			  length > FILE_LIMIT ? "is larger than an options file can be" :
						"cannot be read");
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

static bool read_config(const struct option_program *program, const char *path, void *values,
			struct error *err)
{
	char *text = read_file(path, err); /* kept: values borrow from it */
	unsigned number = 1;

	if (!text)
		return false;
	for (char *line = text; line; number++) {
		char *newline = strchr(line, '\n');

		if (newline)
			*newline = '\0';
		if (!read_line(program, line, values, err))
			return error_prefix(err, "%s:%u", path, number);
		line = newline ? newline + 1 : NULL;
	}
	return true;
}

/* --- the command line --- */

/* What one argument means: its row and value. value NULL: a flag without one. */
struct argument {
	const struct option_row *row;
	const char *value;
	bool is_own;
};

static bool read_argument(const struct option_program *program, int argc, char **argv, int *i,
			  struct argument *out, struct error *err)
{
	const char *text = argv[*i], *equals = NULL;

	*out = (struct argument){ 0 };
	if (text[0] == '-' && text[1] == '-' && text[2]) {
		size_t length;

		equals = strchr(text, '=');
		length = equals ? (size_t)(equals - text - 2) : strlen(text + 2);
		out->row = find(program->rows, text + 2, length);
		if (!out->row && (out->row = find(own_rows, text + 2, length)))
			out->is_own = true;
	} else if (text[0] == '-' && text[1] && !text[2]) {
		out->row = find_letter(program->rows, text[1]);
		if (!out->row && (out->row = find_letter(own_rows, text[1])))
			out->is_own = true;
	} else {
		return error_set(err, ERROR_OPTION, "'%s' is not an option (try --help)", text);
	}
	if (!out->row)
		return error_set(err, ERROR_OPTION, "there is no option '%s' (try --help)", text);
	if (equals) {
		out->value = equals + 1;
	} else if (out->row->type != OPTION_FLAG && out->row->argument) {
		if (*i + 1 >= argc)
			return error_set(err, ERROR_OPTION, "%s needs a value: %s", text,
					 out->row->argument);
		out->value = argv[++*i];
	}
	return true;
}

static bool set_defaults(const struct option_program *program, void *values, struct error *err)
{
	for (const struct option_row *row = program->rows; row->name; row++)
		if (row->fallback && row->type != OPTION_LATER && row->type != OPTION_LIST &&
		    !set_value(row, row->fallback, values, err))
			return false;
	return true;
}

static const char *config_path(const struct option_program *program, int argc, char **argv,
			       bool asked[3], struct error *err)
{
	const char *path = "";

	for (int i = 1; i < argc; i++) {
		struct argument argument;

		if (!read_argument(program, argc, argv, &i, &argument, err))
			return NULL;
		if (!argument.is_own)
			continue;
		if (argument.row == &own_rows[0])
			path = argument.value;
		else
			asked[argument.row - own_rows - 1] = true;
	}
	return path;
}

static bool set_arguments(const struct option_program *program, int argc, char **argv, void *values,
			  struct error *err)
{
	for (int i = 1; i < argc; i++) {
		struct argument argument;

		if (!read_argument(program, argc, argv, &i, &argument, err))
			return false;
		if (!argument.is_own && !set_value(argument.row, argument.value ? argument.value : "true",
						   values, err))
			return false;
	}
	return true;
}

enum options_action options_read(const struct option_program *program, int argc, char **argv,
				 void *values, struct error *err)
{
	bool asked[3] = { false }; /* print-config, help, version */
	const char *path;

	if (argc == 2 && !strcmp(argv[1], "--help-man")) {
		options_man(program, stdout);
		return OPTIONS_DONE;
	}
	path = config_path(program, argc, argv, asked, err);
	if (!path)
		return OPTIONS_FAILED;
	if (asked[1]) {
		options_help(program, stdout);
		return OPTIONS_DONE;
	}
	if (asked[2]) {
		printf("%s %s\n", program->name, program->version);
		return OPTIONS_DONE;
	}
	if (!set_defaults(program, values, err) ||
	    (*path && !read_config(program, path, values, err)) ||
	    !set_arguments(program, argc, argv, values, err))
		return OPTIONS_FAILED;
	if (asked[0]) {
		options_print_config(program, values, stdout);
		return OPTIONS_DONE;
	}
	return OPTIONS_RUN;
}

/* --- what the table prints --- */

static void help_row(const struct option_row *row, FILE *out)
{
	char left[80];
	int used;

	used = row->letter ? snprintf(left, sizeof left, "-%c, --%s", row->letter, row->name) :
			     snprintf(left, sizeof left, "    --%s", row->name);
	if (row->argument && row->type != OPTION_FLAG)
		snprintf(left + used, sizeof left - (size_t)used, " %s", row->argument);
	fprintf(out, "  %-32s %s%s", left, row->type == OPTION_LATER ? "(not yet) " : "", row->help);
	if (row->fallback && *row->fallback && row->type != OPTION_FLAG)
		fprintf(out, " (default %s)", row->fallback);
	if (row->type == OPTION_LIST)
		fputs(" (may be repeated)", out);
	fputc('\n', out);
}

void options_help(const struct option_program *program, FILE *out)
{
	fprintf(out, "usage: %s [options]\n%s\n\n", program->name, program->summary);
	for (const struct option_row *row = program->rows; row->name; row++)
		help_row(row, out);
	for (const struct option_row *row = own_rows; row->name; row++)
		help_row(row, out);
	fputs("\nDurations are <int>(ms|s|m|h|d); sizes are bytes or <int>(K|M|G|T).\n", out);
}

static void print_choice(const struct option_row *row, uint32_t index, FILE *out)
{
	const char *at = row->argument;

	while (index-- && (at = strchr(at, '|')))
		at++;
	if (at)
		fprintf(out, "%.*s", (int)strcspn(at, "|"), at);
}

static void print_duration(int64_t ms, FILE *out)
{
	static const struct { const char *name; int64_t ms; } units[] = {
		{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
	};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (ms % units[i].ms == 0 && (ms || i == 3)) {
			fprintf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
			return;
		}
}

/* A password in an address is not shown: what is printed ends up in tickets and logs. */
static void print_text(const char *text, FILE *out)
{
	const char *user = strstr(text, "://"), *end, *colon;

	user = user ? user + 3 : text + strlen(text);
	end = memrchr(user, '@', strcspn(user, "/?"));
	colon = end ? memchr(user, ':', (size_t)(end - user)) : NULL;
	if (colon)
		fprintf(out, "%.*s:***%s", (int)(colon - text), text, end);
	else
		fputs(text, out);
}

/* As a person would write it. */
static void print_size(uint64_t bytes, FILE *out)
{
	static const char units[] = "KMGT";
	unsigned unit = 0;

	while (unit < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	fprintf(out, "%" PRIu64, bytes);
	if (unit)
		fputc(units[unit - 1], out);
}

static void print_row(const struct option_row *row, const void *values, FILE *out)
{
	const void *at = (const char *)values + row->offset;
	const struct option_list *list = at;

	fprintf(out, "\n# %s\n", row->help);
	if (row->type == OPTION_LIST) {
		if (!list->count)
			fprintf(out, "# %s =\n", row->name);
		for (size_t i = 0; i < list->count; i++) {
			fprintf(out, "%s = ", row->name);
			print_text(list->texts[i], out);
			fputc('\n', out);
		}
		return;
	}
	if (row->type == OPTION_TEXT && !*(const char *const *)at) {
		fprintf(out, "# %s =\n", row->name);
		return;
	}
	fprintf(out, "%s = ", row->name);
	switch (row->type) {
	case OPTION_FLAG:
		fputs(*(const bool *)at ? "true" : "false", out);
		break;
	case OPTION_UINT:
		fprintf(out, "%" PRIu32, *(const uint32_t *)at);
		break;
	case OPTION_TEXT:
		print_text(*(const char *const *)at, out);
		break;
	case OPTION_DURATION:
		print_duration(*(const int64_t *)at, out);
		break;
	case OPTION_SIZE:
		print_size(*(const uint64_t *)at, out);
		break;
	case OPTION_CHOICE:
		print_choice(row, *(const uint32_t *)at, out);
		break;
	case OPTION_LIST:
	case OPTION_LATER:
		break;
	}
	fputc('\n', out);
}

void options_print_config(const struct option_program *program, const void *values, FILE *out)
{
	fprintf(out, "# %s %s: one key = value per line, as on the command line without the dashes.\n",
		program->name, program->version);
	for (const struct option_row *row = program->rows; row->name; row++)
		if (!row->command_line_only && row->type != OPTION_LATER)
			print_row(row, values, out);
}

static void man_row(const struct option_row *row, FILE *out)
{
	fputs(".It ", out);
	if (row->letter)
		fprintf(out, "Fl %c , ", row->letter);
	fprintf(out, "Fl -%s", row->name);
	if (row->argument && row->type != OPTION_FLAG)
		fprintf(out, " Ar %s", row->argument);
	fprintf(out, "\n%s%s.\n", row->type == OPTION_LATER ? "Not in this version: " : "", row->help);
	if (row->fallback && *row->fallback && row->type != OPTION_FLAG)
		fprintf(out, "Default: %s.\n", row->fallback);
	if (row->type == OPTION_LIST)
		fputs("May be repeated.\n", out);
}

void options_man(const struct option_program *program, FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (const struct option_row *row = program->rows; row->name; row++)
		man_row(row, out);
	for (const struct option_row *row = own_rows; row->name; row++)
		man_row(row, out);
	fputs(".El\n", out);
}
