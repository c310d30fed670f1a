/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/overload.h"

/* Until a fold is through, a record is in the journal, in the file and in the file's log. */
static bool is_disk_full(const struct store_load *load)
{
	return load->max_disk && load->disk_left != UINT64_MAX && load->disk &&
	       load->disk_left < load->max_disk / 16 + 3 * load->unfolded;
}

bool store_is_overloaded(const struct store_load *load, struct error *err)
{
	if (load->is_closing)
		return !error_set(err, ERROR_BUSY, "the store is closing");
	if (load->waiting > load->most_waiting)
		return !error_set(err, ERROR_BUSY, "too much is waiting %s", load->waiting_for);
	if (load->refused && load->refused->kind)
		return !error_set(err, load->refused->kind, "%s", load->refused->message);
	if (is_disk_full(load))
		return !error_set(err, ERROR_BUSY,
				  "--max-disk is reached, and nothing older is left to be deleted");
	if (load->unfolded <= load->most_unfolded)
		return false;
	if (load->fold_error && load->fold_error->kind)
		return !error_set(err, ERROR_SYSTEM, "samples cannot be written: %s",
				  load->fold_error->message);
	return !error_set(err, ERROR_BUSY, "too much is waiting to be folded");
}
