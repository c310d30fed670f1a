/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a group of reports to be stored. */
#ifndef SYMBOL_SERVER_STORE_RULES_PENDING_REPORTS_H
#define SYMBOL_SERVER_STORE_RULES_PENDING_REPORTS_H

#include "symbol-server/store/samples.h"

struct pending_reports { /* zeroed to begin with */
	struct pending_report {
		samples_done_fn *done;
		void *context;
	} * list;
	uint32_t count, room;
};

/* done NULL: nobody asks, but there is a report. False: no memory. */
bool pending_reports_add(struct pending_reports *pending, samples_done_fn *done, void *context);
void pending_reports_answer(const struct pending_reports *pending, bool is_accepted,
			    const struct error *err);
void pending_reports_release(struct pending_reports *pending);

#endif
