/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a diff table → what change_test.h says of its rows. Of diff_table.c alone. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_DIFF_VERDICTS_H
#define SYMBOL_SERVER_FLAMEGRAPH_DIFF_VERDICTS_H

#include "symbol-server/flamegraph/diff_table.h"

struct diff_verdicts {
	const struct diff_table *table;
	struct change_range ranges[DIFF_SIDES];
	double exposures[DIFF_SIDES][DIFF_PARTS_MAX];
	struct change_model model;
	struct change_row *rows; /* by row's number */
	double *units;           /* likewise: value of an effective sample */
	double *log_p[2];        /* likewise: recorded, sustained; NAN: not tested */
	size_t *starts;          /* likewise: its first cell; one more ends the last */
	struct diff_cell *cells; /* by row, side, part */
	uint32_t *functions;     /* numbers */
	size_t function_count;
};

/* Sets is_recorded and sustained of all rows and the table's tested, recorded, sustained and
 * is_too_short. false: no memory. Release it in either case. */
bool diff_verdicts_make(struct diff_verdicts *verdicts, struct diff_table *table);

/* Sets the row's interval; rows may be in another order since. */
void diff_verdicts_interval(const struct diff_verdicts *verdicts, struct diff_row *row);

void diff_verdicts_release(struct diff_verdicts *verdicts);

#endif
