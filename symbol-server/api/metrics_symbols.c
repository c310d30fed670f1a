/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "symbol-server/api/metrics_text.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

static void put_tables(struct buffer *out, struct symbolizer *symbolizer)
{
#define STATE_TEXT(name_, meaning_) #name_,
	static const char *const states[] = {MODULE_STATES(STATE_TEXT)};
#undef STATE_TEXT
	struct symbolizer_counters symbols;

	symbolizer_counters(symbolizer, &symbols);
	metrics_describe(out, "modules", "gauge", "Modules by state.");
	for (size_t i = 0; i < MODULE_STATE_COUNT; i++)
		buffer_printf(out, "farflame_server_modules{state=\"%s\"} %" PRIu64 "\n", states[i],
			      symbols.modules_by_state[i]);
	COUNTER("modules_evicted_total", symbols.modules_evicted,
		"Modules without a table that made room for others.");
	COUNTER("modules_refused_total", symbols.modules_refused,
		"Times a new module found no room, all known ones being in use.");
	COUNTER("conversions_total", symbols.conversions, "Debug files converted.");
	COUNTER("conversions_failed_total", symbols.conversions_failed,
		"Debug files that could not be converted.");
	COUNTER("fetches_total", symbols.fetches, "Questions to debuginfod servers.");
	COUNTER("fetches_failed_total", symbols.fetches_failed,
		"Questions to debuginfod servers without a file as answer.");
	COUNTER("uploads_total", symbols.uploads, "Uploads accepted.");
	COUNTER("uploads_refused_total", symbols.uploads_refused, "Uploads refused.");
	COUNTER("uploads_damaged_total", symbols.uploads_damaged,
		"Uploaded files that were not what had been sent, deleted when they were needed.");
	COUNTER("uploads_evicted_total", symbols.uploads_evicted,
		"Uploaded files that made room for others (--upload-disk).");
	GAUGE("upload_files", symbols.upload_files, "Uploaded files that are kept.");
	GAUGE("upload_disk_bytes", symbols.upload_bytes,
	      "Bytes that uploaded files take on disk, those being received included.");
	GAUGE("upload_disk_limit_bytes", symbols.upload_limit_bytes,
	      "What they may take (--upload-disk); 0: no limit.");
	GAUGE("symbol_tables", symbols.tables_in_memory, "Symbol tables in memory.");
	GAUGE("symbol_table_bytes", symbols.table_bytes, "Bytes of symbol tables in memory.");
	GAUGE("symbol_tables_on_disk", symbols.tables_on_disk,
	      "Packed symbol tables in symbols.db.");
	GAUGE("symbol_disk_bytes", symbols.disk_bytes, "Bytes of packed symbol tables.");
	COUNTER("symbol_tables_dropped_total", symbols.tables_dropped,
		"Packed symbol tables that made room for others.");
	GAUGE("symbol_queue", symbols.queue, "Modules that wait for a source or conversion.");
}

static void put_source_count(struct buffer *out, const struct source_state *state,
			     const char *answer, uint64_t count)
{
	buffer_printf(out,
		      "farflame_server_source_questions_total{source=\"%s\",answer=\"%s\"} %" PRIu64
		      "\n",
		      state->url, answer, count);
}

/* Their URLs have nothing in them that a label may not have. */
static void put_sources(struct buffer *out, struct symbol_sources *sources)
{
	struct source_state states[SOURCES_MAX];
	size_t count = symbol_sources_states(sources, states, SOURCES_MAX);

	if (!count)
		return;
	metrics_describe(
		out, "source_up", "gauge",
		"1: the debuginfod server is asked; 0: it did not answer and has a pause.");
	for (size_t i = 0; i < count; i++)
		buffer_printf(out, "farflame_server_source_up{source=\"%s\"} %d\n", states[i].url,
			      !states[i].is_closed);
	metrics_describe(
		out, "source_questions_total", "counter",
		"Questions to debuginfod servers by answer; not_asked: turned away in a pause.");
	for (size_t i = 0; i < count; i++) {
		put_source_count(out, &states[i], "found", states[i].found);
		put_source_count(out, &states[i], "not_found", states[i].not_found);
		put_source_count(out, &states[i], "failed", states[i].failed);
		put_source_count(out, &states[i], "not_asked", states[i].turned_away);
	}
	metrics_describe(out, "source_received_bytes_total", "counter",
			 "Bytes of files that debuginfod servers sent.");
	for (size_t i = 0; i < count; i++)
		buffer_printf(out,
			      "farflame_server_source_received_bytes_total{source=\"%s\"} %" PRIu64
			      "\n",
			      states[i].url, states[i].bytes);
}

static void put_directories(struct buffer *out, struct symbol_directories *directories)
{
	struct symbol_directories_progress now;

	symbol_directories_progress(directories, &now);
	GAUGE("symbol_dir_read", now.first_pass_done, "1: all symbol directories were read once.");
	GAUGE("symbol_dir_files", now.files, "Files in symbol directories.");
	GAUGE("symbol_dir_elf_files", now.elf_files, "ELF files among them.");
	GAUGE("symbol_dir_packages", now.packages,
	      "Packages among them, which are not read: a debuginfod reads such.");
	GAUGE("symbol_dir_unreadable", now.unreadable + now.damaged,
	      "Files and folders of symbol directories that could not be read.");
	GAUGE("symbol_dir_left_out", now.left_out,
	      "Files of symbol directories beyond the limits.");
	GAUGE("symbol_dir_not_answering", now.not_answering,
	      "Symbol directories whose file system does not answer.");
	GAUGE("symbol_dir_index_bytes", now.bytes, "Memory of the index of symbol directories.");
	COUNTER("debuglinks_refused_total", now.wrong_checksums,
		"Files of the name in .gnu_debuglink with another checksum.");
}

void metrics_put_symbols(struct buffer *out, struct symbolizer *symbolizer)
{
	put_tables(out, symbolizer);
	put_sources(out, symbolizer_sources(symbolizer));
	put_directories(out, symbolizer_directories(symbolizer));
}
