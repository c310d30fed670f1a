/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/places.h"

#include "node-agent/kernel/stranger_reader.h"

enum { FILE_RETRY_S = 30 };

static void place_file(struct places *places, struct executable_ref ref, const struct mapping *row,
		       uint64_t address, struct located_frame *frame)
{
	uint64_t offset = address - row->start + row->file_offset;
	struct executable *executable = executables_get(places->executables, ref);

	if (!executables_address(places->executables, ref, offset, &frame->address))
		return;
	executable->sampled_s = executables_time(places->executables);
	frame->executable = executable;
	frame->place = PLACE_FILE;
}

/* --- a file's executable --- */

/* A child that is gone may share the mapping with its parent, which is there longer. */
static enum file_found resolve(struct places *places, const struct program *program,
			       struct mapping *row)
{
	const struct program *parent = programs_parent(places->programs, program);

	enum file_found found = mapped_files_resolve(
		places->files, row, program->process->key.tgid,
		program->process->is_current ? program->process->key.start_time_ns : 0);

	if (found == FILE_FOUND || found == FILE_ASKED || !parent)
		return found;
	return mapped_files_resolve(places->files, row, parent->process->key.tgid,
				    parent->process->key.start_time_ns);
}

/* Where it can be opened once more. */
static bool see_executable(struct places *places, const struct program *program,
			   const struct mapping *row, struct executable_ref ref)
{
	struct executable *executable = executables_get(places->executables, ref);

	if (executable && program->process->is_current) {
		executable->tgid = program->process->key.tgid;
		executable->mapping_start = row->start;
		executable->mapping_end = row->end;
	}
	return executable;
}

/* FOUND, ASKED, or else not to be had now. The row may turn out to be anonymous. */
static enum file_found find_executable(struct places *places, struct program *program,
				       struct mapping *row, uint64_t time_ns)
{
	const struct executable_ref ref = {row->executable, row->executable_index};
	uint32_t now_s = (uint32_t)(time_ns / 1000000000);
	enum file_found found;

	if (see_executable(places, program, row, ref))
		return FILE_FOUND;
	if (row->executable_index) {
		row->executable_index = row->executable = 0;
		mapping_set_changed(program->set);
	}
	if (now_s < row->retry_s)
		return FILE_FAILED;
	found = resolve(places, program, row);
	if (found == FILE_FOUND)
		mapping_set_changed(program->set);
	else if (found != FILE_ASKED)
		row->retry_s = now_s + FILE_RETRY_S;
	return found;
}

/* Ours is the 64-bit one; below 4 GiB there is a 32-bit process' own. */
static bool find_vdso(struct places *places, const struct mapping *row)
{
	if (places->has_no_vdso || (sizeof(void *) == 8 && row->end <= UINT32_MAX))
		return false;
	if (executables_get(places->executables, places->vdso))
		return true;
	places->has_no_vdso = !executables_add_vdso(places->executables, &places->vdso);
	return !places->has_no_vdso;
}

/* --- an address --- */

void places_locate(struct places *places, struct program *program, struct mapping *row,
		   uint64_t address, uint64_t time_ns, struct located_frame *frame)
{
	enum file_found found = FILE_FOUND;

	*frame = (struct located_frame){.place = PLACE_UNKNOWN, .since = row->since};
	if (row->kind == MAPPING_FILE)
		found = find_executable(places, program, row, time_ns);
	if (found == FILE_ASKED)
		frame->place = PLACE_ASKED;
	if (found != FILE_FOUND)
		return;
	if (row->kind == MAPPING_FILE)
		place_file(places, (struct executable_ref){row->executable, row->executable_index},
			   row, address, frame);
	else if (row->kind == MAPPING_VDSO && find_vdso(places, row))
		place_file(places, places->vdso, row, address, frame);
	else if (row->kind == MAPPING_UPROBE)
		frame->place = PLACE_UPROBE;
	else {
		frame->place = PLACE_ANONYMOUS;
		frame->address = address;
	}
}

bool places_read(struct places *places, const struct mapping *row, uint64_t address, void *to,
		 size_t length)
{
	const struct executable_ref ref = {row->executable, row->executable_index};
	const struct executable *executable = executables_get(
		places->executables, row->kind == MAPPING_VDSO ? places->vdso : ref);

	return row->kind != MAPPING_ANONYMOUS && executable && executable->fd >= 0 &&
	       stranger_file_read(executable->fd, address - row->start + row->file_offset, to,
				  length);
}

/* --- a whole mapping --- */

/* What has no ELF addresses has no rows either. */
static void mapping_of(struct places *places, struct executable_ref ref, const struct mapping *row,
		       struct process_mapping *out)
{
	uint64_t shift;

	if (ref.index >= EXECUTABLE_ANONYMOUS ||
	    !executables_shift(places->executables, ref, row->file_offset, row->end - row->start,
			       &shift))
		return;
	out->executable = ref.index;
	out->base = row->start - row->file_offset - shift;
}

bool places_is_unseen(struct places *places, const struct mapping *row, uint64_t time_ns)
{
	const struct executable_ref ref = {row->executable, row->executable_index};

	return row->kind == MAPPING_FILE && (uint32_t)(time_ns / 1000000000) >= row->retry_s &&
	       !executables_get(places->executables, ref);
}

bool places_mapping(struct places *places, struct program *program, struct mapping *row,
		    uint64_t time_ns, bool may_look, struct process_mapping *out)
{
	bool is_unseen = places_is_unseen(places, row, time_ns);

	*out = (struct process_mapping){
		.start = row->start, .end = row->end, .executable = EXECUTABLE_ANONYMOUS};
	if (row->kind == MAPPING_FILE &&
	    ((is_unseen && !may_look) ||
	     find_executable(places, program, row, time_ns) != FILE_FOUND)) {
		out->executable = EXECUTABLE_NONE;
		return !is_unseen || may_look;
	}
	if (row->kind == MAPPING_FILE)
		mapping_of(places, (struct executable_ref){row->executable, row->executable_index},
			   row, out);
	else if (row->kind == MAPPING_UPROBE)
		out->executable = EXECUTABLE_NONE;
	else if (row->kind == MAPPING_VDSO && find_vdso(places, row))
		mapping_of(places, places->vdso, row, out);
	return true;
}
