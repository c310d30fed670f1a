/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/series_limit.h"

#include <stdio.h>
#include <string.h>

#include "symbol-server/store/rules/sender_shares.h"

enum series_verdict series_limit_judge(const struct series_asked *asked)
{
	if (asked->is_known ||
	    (!asked->is_closed && share_allows(asked->host, asked->all, asked->most)))
		return SERIES_OWN;
	return asked->is_other_known || asked->all <= asked->most + asked->most / 4
		       ? SERIES_OTHER
		       : SERIES_REFUSED;
}

void series_limit_tell(struct batch_refusals *told, uint32_t most)
{
	if (told && !told->profiles++)
		snprintf(told->sentence, sizeof told->sentence,
			 "the limit of %u series a day is reached (--series-limit): profiles of "
			 "series that are new today are not stored",
			 most);
}

struct text series_host(const struct batch_series *series)
{
	for (uint32_t i = 0; i < series->label_count; i++)
		if (series->labels[i].name.length == 4 &&
		    !memcmp(series->labels[i].name.at, "host", 4))
			return series->labels[i].value;
	return (struct text){"", 0};
}

void other_series_init(struct other_series *other, struct text host)
{
	uint32_t count = 0;

	if (host.length)
		other->labels[count++] = (struct batch_label){{"host", 4}, host, false};
	other->labels[count++] = (struct batch_label){{"process", 7}, {"other", 5}, false};
	other->labels[count++] = (struct batch_label){{"service", 7}, {"other", 5}, false};
	other->series = (struct batch_series){other->labels, count};
}
