/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may answer an agent with, whole and in pieces: both read the same. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "node-agent/network/http_answer.h"
#include "node-agent/ship/verdict.h"

static bool feed(struct http_answer *answer, const uint8_t *bytes, size_t length, size_t piece)
{
	size_t at = 0, used;
	bool ok = true;

	http_answer_init(answer);
	while (ok && at < length && !http_answer_is_done(answer)) {
		size_t step = length - at < piece ? length - at : piece;

		ok = http_answer_take(answer, bytes + at, step, &used, NULL);
		at += used;
	}
	return ok && http_answer_end(answer, NULL);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct http_answer whole, pieces;
	char sentence[300];

	if (length > 64 << 10)
		return;
	if (feed(&whole, bytes, length, length) != feed(&pieces, bytes, length, 3))
		abort();
	if (whole.status != pieces.status || whole.body.length != pieces.body.length ||
	    (whole.body.length && memcmp(whole.body.bytes, pieces.body.bytes, whole.body.length)))
		abort();
	if (whole.status)
		verdict_sentence(&whole, sentence, sizeof sentence);
	http_answer_release(&whole);
	http_answer_release(&pieces);
}
