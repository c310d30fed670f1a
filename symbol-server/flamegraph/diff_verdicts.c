/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/diff_verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDED, SUSTAINED };

static bool take_room(struct diff_verdicts *verdicts)
{
	size_t count = verdicts->table->count;

	verdicts->rows = calloc(count + 1, sizeof(*verdicts->rows));
	verdicts->units = calloc(3 * count + 1, sizeof(double));
	verdicts->starts = calloc(count + 2, sizeof(size_t));
	verdicts->cells = calloc(verdicts->table->cell_count + 1, sizeof(*verdicts->cells));
	verdicts->functions = calloc(count + 1, sizeof(uint32_t));
	if (!verdicts->rows || !verdicts->units || !verdicts->starts || !verdicts->cells ||
	    !verdicts->functions)
		return false;
	verdicts->log_p[RECORDED] = verdicts->units + count;
	verdicts->log_p[SUSTAINED] = verdicts->log_p[RECORDED] + count;
	return true;
}

/* Stable: each row's cells stay in the order in which parts were added. */
static void sort_cells(struct diff_verdicts *verdicts)
{
	const struct diff_table *table = verdicts->table;
	size_t *starts = verdicts->starts;

	for (size_t i = 0; i < table->cell_count; i++)
		starts[table->cells[i].row + 1]++;
	for (size_t i = 0; i < table->count; i++)
		starts[i + 1] += starts[i];
	for (size_t i = 0; i < table->cell_count; i++)
		verdicts->cells[starts[table->cells[i].row]++] = table->cells[i];
	memmove(starts + 1, starts, table->count * sizeof(*starts));
	starts[0] = 0;
}

static void set_ranges(struct diff_verdicts *verdicts)
{
	for (unsigned s = 0; s < DIFF_SIDES; s++) {
		const struct diff_whole *whole = &verdicts->table->whole[s];
		enum diff_norm norm = verdicts->table->norm;
		double by = norm == DIFF_RAW && whole->seconds > 0 ? whole->seconds : 1;

		verdicts->ranges[s].parts = whole->parts;
		for (uint32_t i = 0; i < whole->parts; i++) {
			double exposure = norm == DIFF_SHARE ? whole->part_values[i]
							     : whole->part_seconds[i] / by;

			verdicts->exposures[s][i] = exposure;
			verdicts->ranges[s].exposure += exposure;
		}
	}
}

static void weigh(const struct diff_verdicts *verdicts, struct diff_row *row)
{
	struct {
		double value, samples, squares, parts;
	} sums[DIFF_SIDES] = {0};

	for (size_t i = verdicts->starts[row->number]; i < verdicts->starts[row->number + 1]; i++) {
		const struct diff_cell *cell = &verdicts->cells[i];

		if (cell->samples <= 0)
			continue;
		sums[cell->side].value += cell->value;
		sums[cell->side].samples += cell->samples;
		sums[cell->side].squares += cell->value * cell->value / cell->samples;
		sums[cell->side].parts++;
	}
	for (unsigned s = 0; s < DIFF_SIDES; s++)
		change_weight_side(&row->weight, sums[s].value, sums[s].samples, sums[s].squares,
				   sums[s].parts);
}

/* effective: what a sample counts for, of functions' samples together. */
static bool weigh_all(struct diff_verdicts *verdicts, double *effective)
{
	const struct diff_table *table = verdicts->table;
	struct change_weight *weights = calloc(table->count + 1, sizeof(*weights));
	double fitted, samples = 0, counted = 0;

	if (!weights)
		return false;
	for (size_t i = 0; i < table->count; i++) {
		weigh(verdicts, &table->rows[i]);
		if (table->rows[i].is_process)
			continue;
		weights[verdicts->function_count] = table->rows[i].weight;
		verdicts->functions[verdicts->function_count++] = (uint32_t)i;
	}
	fitted = change_weights_fit(weights, verdicts->function_count);
	for (size_t i = 0; i < table->count; i++) {
		const struct change_weight *weight = &table->rows[i].weight;

		verdicts->units[i] = change_weight_of(weight, fitted);
		if (table->rows[i].is_process || weight->value <= 0)
			continue;
		samples += weight->samples;
		counted += weight->value / verdicts->units[i];
	}
	*effective = samples > 0 ? fmin(1, counted / samples) : 1;
	free(weights);
	return true;
}

static void sum_row(struct diff_verdicts *verdicts, size_t number)
{
	for (size_t i = verdicts->starts[number]; i < verdicts->starts[number + 1]; i++) {
		const struct diff_cell *cell = &verdicts->cells[i];
		struct change_sums *sums = &verdicts->rows[number].side[cell->side];
		double exposure = verdicts->exposures[cell->side][cell->part];
		double here = cell->value / verdicts->units[number];

		sums->count += here;
		if (exposure > 0)
			sums->squares += here * here / exposure;
	}
}

static void put_series(void *context, size_t at, unsigned side, double *counts, double *expected)
{
	const struct diff_verdicts *verdicts = context;
	uint32_t number = verdicts->functions[at];
	const struct change_range *range = &verdicts->ranges[side];

	for (uint32_t i = 0; i < range->parts; i++) {
		counts[i] = 0;
		expected[i] = range->exposure > 0
				      ? verdicts->rows[number].side[side].count *
						verdicts->exposures[side][i] / range->exposure
				      : 0;
	}
	for (size_t i = verdicts->starts[number]; i < verdicts->starts[number + 1]; i++)
		if (verdicts->cells[i].side == side)
			counts[verdicts->cells[i].part] += verdicts->cells[i].value /
							   verdicts->units[number];
}

static bool fit(struct diff_verdicts *verdicts)
{
	struct change_row *rows = calloc(verdicts->function_count + 1, sizeof(*rows));
	bool ok = rows;

	for (size_t i = 0; ok && i < verdicts->function_count; i++)
		rows[i] = verdicts->rows[verdicts->functions[i]];
	ok = ok && change_model_fit(&verdicts->model, verdicts->ranges, rows,
				    verdicts->function_count, put_series, verdicts);
	free(rows);
	return ok;
}

static bool is_tested(const struct diff_verdicts *verdicts, size_t number)
{
	const struct change_sums *sums = verdicts->rows[number].side;
	const struct diff_whole *whole = verdicts->table->whole;
	double unit = verdicts->units[number];

	return sums[DIFF_BASE].count + sums[DIFF_COMPARE].count >= CHANGE_SAMPLES_MIN &&
	       (sums[DIFF_BASE].count * unit >= CHANGE_SHARE_MIN * whole[DIFF_BASE].common ||
		sums[DIFF_COMPARE].count * unit >= CHANGE_SHARE_MIN * whole[DIFF_COMPARE].common);
}

static void test_all(struct diff_verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->table->count; i++) {
		struct change_verdict verdict = {NAN, NAN, 0};

		if (is_tested(verdicts, i))
			verdict = change_test(&verdicts->model, verdicts->ranges,
					      &verdicts->rows[i]);
		verdicts->log_p[RECORDED][i] = verdict.recorded;
		verdicts->log_p[SUSTAINED][i] = verdict.sustained;
	}
}

/* Processes, then functions in those found. found: by row's number. */
static bool find(const struct diff_verdicts *verdicts, const double *log_p, bool *found)
{
	const struct diff_table *table = verdicts->table;
	size_t count = table->count;
	double *own = calloc(2 * count + 1, sizeof(*own)), *whole = own + count;
	uint32_t *family = calloc(count + 1, sizeof(*family));
	bool *is_process = calloc(count + 1, sizeof(*is_process));
	bool ok = own && family && is_process;

	for (size_t i = 0; ok && i < count; i++) {
		own[i] = table->rows[i].is_process ? NAN : log_p[i];
		whole[i] = table->rows[i].is_process ? log_p[i] : NAN;
		family[i] = table->rows[i].process;
	}
	ok = ok && change_families(own, family, count, found, whole, count, is_process);
	for (size_t i = 0; ok && i < count; i++)
		found[i] |= is_process[i];
	free(own);
	free(family);
	free(is_process);
	return ok;
}

static bool find_all(struct diff_verdicts *verdicts, struct diff_table *table)
{
	bool *recorded = calloc(2 * table->count + 1, sizeof(*recorded));
	bool *sustained = recorded + table->count;
	bool ok = recorded && find(verdicts, verdicts->log_p[RECORDED], recorded) &&
		  find(verdicts, verdicts->log_p[SUSTAINED], sustained);

	for (size_t i = 0; ok && i < table->count; i++) {
		struct diff_row *row = &table->rows[i];

		row->is_recorded = recorded[i];
		row->sustained = table->is_too_short ? DIFF_TOO_SHORT
				 : sustained[i]      ? DIFF_SUSTAINED
						     : DIFF_NOT_SUSTAINED;
		if (row->is_process)
			continue;
		table->tested += !isnan(verdicts->log_p[RECORDED][i]);
		table->recorded += row->is_recorded;
		table->sustained += row->sustained == DIFF_SUSTAINED;
	}
	free(recorded);
	return ok;
}

bool diff_verdicts_make(struct diff_verdicts *verdicts, struct diff_table *table)
{
	*verdicts = (struct diff_verdicts){.table = table};
	table->is_too_short = table->whole[DIFF_BASE].parts < CHANGE_PARTS_MIN ||
			      table->whole[DIFF_COMPARE].parts < CHANGE_PARTS_MIN;
	if (!take_room(verdicts))
		return false;
	sort_cells(verdicts);
	set_ranges(verdicts);
	if (!weigh_all(verdicts, &table->effective))
		return false;
	for (size_t i = 0; i < table->count; i++)
		sum_row(verdicts, i);
	if (!fit(verdicts))
		return false;
	test_all(verdicts);
	return find_all(verdicts, table);
}

void diff_verdicts_interval(const struct diff_verdicts *verdicts, struct diff_row *row)
{
	change_interval(&verdicts->model, verdicts->ranges, &verdicts->rows[row->number],
			&row->change_low, &row->change_high);
}

void diff_verdicts_release(struct diff_verdicts *verdicts)
{
	free(verdicts->rows);
	free(verdicts->units);
	free(verdicts->starts);
	free(verdicts->cells);
	free(verdicts->functions);
}
