/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/fleet/tally.h"

#include <inttypes.h>

#include "tests/tools/fleet/body.h"

/* As the folded format shows a frame that nobody has a name for. */
static void put_frame(FILE *file, const struct world *world, const struct world_location *location)
{
	switch (location->kind) {
	case WORLD_NATIVE:
		fprintf(file, "%s+0x%" PRIx64, world->modules[location->module].name,
			location->address);
		break;
	case WORLD_KERNEL:
		fprintf(file, "vmlinux+0x%" PRIx64 "_[k]", location->address);
		break;
	case WORLD_NAMED:
		fprintf(file, "function_%u", location->function);
		break;
	case WORLD_ANONYMOUS:
		fputs("[anon]", file);
		break;
	}
}

static void put_sample(FILE *file, const struct world *world, const struct world_app *app,
		       const struct world_sample *sample, bool is_fresh)
{
	const struct world_stack *stack = &app->stacks[sample->stack];

	fprintf(file, "[\"%s\",\"", world_thread(sample->thread));
	if (stack->incomplete)
		fprintf(file, "[incomplete: %s];", world_sentences[stack->incomplete - 1]);
	for (uint32_t i = stack->depth; i--;) {
		if (is_fresh && !i)
			fprintf(file, "%s+0x@", world->modules[WORLD_FRESH_MODULE].name);
		else
			put_frame(file, world, &app->locations[app->frames[stack->first + i]]);
		if (i)
			fputc(';', file);
	}
	fprintf(file, "\",%" PRIu64 ",%" PRIu64 "]", sample->count, sample->value);
}

static void put_profile(FILE *file, const struct world *world, const struct world_template *from,
			const struct world_profile *profile)
{
	static const char *const labels[] = {"process", "service",   "container",
					     "pod",     "namespace", "version"};
	const char *comma = "";

	fprintf(file, "{\"type\":\"%s\",\"labels\":{", world->options.types[profile->type]);
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
		const char *value = world_label(world, from->app, profile->process, labels[i]);

		if (value)
			fprintf(file, "%s\"%s\":\"%s\"", comma, labels[i], value);
		comma = value ? "," : comma;
	}
	fputs("},\"samples\":[", file);
	for (uint32_t i = profile->first; i < profile->first + profile->count; i++) {
		fputs(i > profile->first ? "," : "", file);
		put_sample(file, world, &world->apps[from->app], &from->samples[i], i == 0);
	}
	fputs("]}", file);
}

void tally_start(FILE *file, const struct world *world, uint32_t hosts)
{
	const struct world_options *options = &world->options;
	char name[HOST_TEXT + 1], region[3];

	if (!file)
		return;
	fputs("fleet {\"types\":[", file);
	for (uint32_t i = 0; i < options->type_count; i++)
		fprintf(file, "%s\"%s\"", i ? "," : "", options->types[i]);
	fputs("]}\n", file);
	for (uint32_t i = 0; i < options->apps * options->templates; i++) {
		const struct world_template *from =
			&world->apps[i / options->templates].templates[i % options->templates];

		fprintf(file, "template %u {\"profiles\":[", i);
		for (uint32_t j = 0; j < from->profile_count; j++) {
			fputs(j ? "," : "", file);
			put_profile(file, world, from, &from->profiles[j]);
		}
		fputs("]}\n", file);
	}
	for (uint32_t i = 0; i < hosts; i++) {
		body_host(i, name, region);
		fprintf(file, "host %u {\"host\":\"%s\",\"region\":\"%s\"}\n", i, name, region);
	}
}

void tally_report(FILE *file, const struct tally_report *report, char state)
{
	if (file)
		fprintf(file,
			"report %u %u %" PRIu64 " %u %" PRId64 " %" PRIx64 " %" PRIu64 " %" PRIu64
			" %c\n",
			report->host, report->incarnation, report->seq, report->template,
			report->time_ms, report->fresh, report->taken, report->lost, state);
}
