/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/parser_messages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PARTS_MAX = 5 };

union one_descriptor {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* --- the agent's side --- */

enum row_sent row_question_send(int socket, const struct row_question *question, int fd)
{
	struct iovec part = {(void *)question, sizeof *question};
	union one_descriptor control = {.header = {.cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS,
						   .cmsg_len = CMSG_LEN(sizeof fd)}};
	const struct msghdr message = {.msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = sizeof control};
	ssize_t sent;

	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent == sizeof *question)
		return ROW_SENT;
	/* The last: this user has too many descriptors on their way. */
	return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS
		       ? ROW_SENT_LATER
		       : ROW_SENT_NEVER;
}

static bool rule_is_sound(const struct unwind_rule *rule)
{
	if (rule->cfa >= UNWIND_CFA_COUNT || rule->fp >= UNWIND_FP_COUNT ||
	    rule->ra >= UNWIND_RA_COUNT || rule->cfa_register >= UNWIND_REGISTERS)
		return false;
	if (rule->ra == UNWIND_RA_IN_REGISTER &&
	    (rule->ra_offset < 0 || rule->ra_offset >= UNWIND_REGISTERS))
		return false;
	return !(rule->flags &
		 ~(UNWIND_RULE_SIGNAL | UNWIND_RULE_OTHER_STACK | UNWIND_RULE_GUESSED));
}

static bool rows_are_sound(const struct page_rows *rows)
{
	if (rows->rows[0].low != 0)
		return false;
	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->rows[i].rule >= rows->rule_count ||
		    (i && rows->rows[i].low <= rows->rows[i - 1].low))
			return false;
	for (uint32_t i = 0; i < rows->rule_count; i++)
		if (!rule_is_sound(&rows->rules[i]))
			return false;
	return true;
}

static bool page_is_sound(const struct row_answer *answer)
{
	if (!answer->executable)
		return false;
	if (answer->state == UNWIND_PAGE_LOADED)
		return answer->failure == ROW_FAILURE_NONE && answer->count &&
		       answer->count <= UNWIND_PAGE_ROWS_MAX && answer->rule_count &&
		       answer->rule_count <= PAGE_RULES_MAX;
	if (answer->count || answer->rule_count)
		return false;
	if (answer->state == UNWIND_PAGE_EMPTY)
		return answer->failure == ROW_FAILURE_NONE;
	return answer->state == UNWIND_PAGE_FAILED && answer->failure != ROW_FAILURE_NONE &&
	       answer->failure < ROW_FAILURE_COUNT;
}

static bool answer_is_sound(const struct row_answer *answer)
{
	switch (answer->kind) {
	case PARSER_MESSAGE_PAGE:
		return page_is_sound(answer);
	case PARSER_MESSAGE_FILE:
		return answer->executable && !answer->page && !answer->failure &&
		       !answer->rule_count && answer->state < ROW_FILE_STATES &&
		       answer->count <= (answer->state == ROW_FILE_ELF ? ELF_IMAGE_SEGMENTS : 0);
	case PARSER_MESSAGE_MEMORY:
		return answer->executable && !answer->page && !answer->state &&
		       !answer->rule_count && answer->failure <= 1 &&
		       answer->count <= (answer->failure ? 0 : MEMORY_PLACES_MAX);
	case PARSER_MESSAGE_TLS:
	case PARSER_MESSAGE_RUNTIME:
		return answer->executable && !answer->page && !answer->failure && !answer->state &&
		       !answer->count && !answer->rule_count;
	case PARSER_MESSAGE_JIT:
		return answer->executable && !answer->state && answer->failure <= 1 &&
		       answer->count <= (answer->failure ? 0 : JIT_ENTRIES_MAX) &&
		       answer->rule_count <= (answer->failure ? 0 : JIT_LINES_MAX) &&
		       answer->page <= (answer->failure ? 0 : JIT_TEXT_MAX);
	case PARSER_MESSAGE_FAREWELL:
		return answer->count < ROW_FAREWELL_MAX && !answer->rule_count;
	}
	return false;
}

static bool take_segments(const struct row_segment *segments, uint32_t count,
			  struct elf_image *image)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct row_segment *from = &segments[i];

		if (from->is_executable > 1 || from->offset + from->file_size < from->offset ||
		    from->address + from->memory_size < from->address)
			return false;
		image->segments[i] = (struct elf_segment){
			.offset = from->offset,
			.file_size = from->file_size,
			.address = from->address,
			.memory_size = from->memory_size,
			.is_executable = from->is_executable,
		};
	}
	image->segment_count = count;
	return true;
}

static bool take_file(const struct row_answer *answer, const struct row_file *file,
		      const struct row_segment *segments, struct file_content *content)
{
	struct elf_image *image = &content->image;

	memset(content, 0, sizeof *content);
	content->is_elf = answer->state == ROW_FILE_ELF;
	if (!build_id_set(&content->htlhash, file->htlhash, sizeof file->htlhash))
		return false;
	if (!content->is_elf)
		return true;
	if (file->gnu_length && (file->gnu_length > sizeof file->gnu ||
				 !build_id_set(&image->gnu, file->gnu, file->gnu_length)))
		return false;
	if (file->has_go > 1 || !memchr(file->go_id, '\0', sizeof file->go_id))
		return false;
	memcpy(image->go_id, file->go_id, sizeof image->go_id);
	image->has_go_pclntab = file->has_go;
	image->entry = file->entry;
	return take_segments(segments, answer->count, image);
}

static bool tls_is_sound(const struct tls_symbol *tls)
{
	if (tls->is_defined > 1 || tls->is_program > 1 || tls->slot_count > TLS_SLOTS_MAX ||
	    (tls->is_defined &&
	     (!tls->block_alignment || tls->block_alignment & (tls->block_alignment - 1))) ||
	    tls->go.is_defined > 1 || tls->go.is_list > 1)
		return false;
	for (uint32_t i = 0; i < tls->slot_count; i++)
		if (tls->slots[i].kind >= TLS_SLOT_KINDS)
			return false;
	return true;
}

static bool hotspot_is_sound(const struct runtime_symbols *runtime)
{
	for (uint32_t i = 0; i < HOTSPOT_SYMBOL_COUNT; i++)
		if (!runtime->hotspot[i])
			return false;
	return !runtime->loop_count;
}

static bool runtime_is_sound(const struct runtime_symbols *runtime)
{
	if (!runtime->language)
		return !runtime->loop_count;
	if (runtime->language == RUNTIME_HOTSPOT)
		return hotspot_is_sound(runtime);
	if (runtime->language != RUNTIME_CPYTHON || !runtime->loop_count ||
	    runtime->loop_count > RUNTIME_LOOP_PARTS_MAX ||
	    runtime->state + runtime->state_bytes < runtime->state ||
	    runtime->lock + runtime->lock_bytes < runtime->lock)
		return false;
	for (uint32_t i = 0; i < runtime->loop_count; i++)
		if (runtime->loop[i].start >= runtime->loop[i].end)
			return false;
	return true;
}

static ssize_t receive(int socket, struct iovec *parts, size_t count, int flags)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t length;
	int tries = 0;

	/* ECONNRESET is said once, before what the other side had sent until then. */
	do
		length = recvmsg(socket, &message, flags | MSG_DONTWAIT | MSG_TRUNC);
	while (length < 0 && (errno == EINTR || (errno == ECONNRESET && !tries++)));
	return length;
}

/* What follows the answer. */
struct reply_parts {
	struct row_file file;
	struct row_memory memory;
	struct row_segment segments[ELF_IMAGE_SEGMENTS];
};

static void set_jit_parts(const struct row_answer *answer, struct jit_chunk *chunk,
			  struct iovec parts[PARTS_MAX])
{
	parts[1] = (struct iovec){&chunk->head, sizeof chunk->head};
	parts[2] = (struct iovec){chunk->entries, answer->count * sizeof *chunk->entries};
	parts[3] = (struct iovec){chunk->lines, answer->rule_count * sizeof *chunk->lines};
	parts[4] = (struct iovec){chunk->text, answer->page};
}

static void set_parts(const struct row_answer *answer, struct row_reply *reply,
		      struct reply_parts *room, struct iovec parts[PARTS_MAX])
{
	struct page_rows *rows = &reply->rows;

	memset(parts + 1, 0, (PARTS_MAX - 1) * sizeof *parts);
	if (answer->kind == PARSER_MESSAGE_FAREWELL) {
		parts[1] = (struct iovec){reply->farewell, answer->count};
	} else if (answer->kind == PARSER_MESSAGE_PAGE) {
		parts[1] = (struct iovec){rows->rows, answer->count * sizeof *rows->rows};
		parts[2] = (struct iovec){rows->rules, answer->rule_count * sizeof *rows->rules};
	} else if (answer->kind == PARSER_MESSAGE_MEMORY) {
		if (!answer->failure)
			parts[1] = (struct iovec){&room->memory, sizeof room->memory};
		parts[2] = (struct iovec){reply->places.items,
					  answer->count * sizeof *reply->places.items};
	} else if (answer->kind == PARSER_MESSAGE_JIT) {
		if (!answer->failure)
			set_jit_parts(answer, &reply->jit, parts);
	} else if (answer->kind == PARSER_MESSAGE_TLS) {
		parts[1] = (struct iovec){&reply->tls, sizeof reply->tls};
	} else if (answer->kind == PARSER_MESSAGE_RUNTIME) {
		parts[1] = (struct iovec){&reply->runtime, sizeof reply->runtime};
	} else if (answer->state != ROW_FILE_UNREADABLE) {
		parts[1] = (struct iovec){&room->file, sizeof room->file};
		parts[2] = (struct iovec){room->segments, answer->count * sizeof *room->segments};
	}
}

static enum row_received take_page(const struct row_answer *answer, struct page_rows *rows)
{
	rows->executable = answer->executable;
	rows->page = answer->page;
	rows->state = answer->state;
	rows->failure = answer->failure;
	rows->count = answer->count;
	rows->rule_count = answer->rule_count;
	return answer->state != UNWIND_PAGE_LOADED || rows_are_sound(rows) ? ROW_RECEIVED_ANSWER
									   : ROW_RECEIVED_WRONG;
}

static enum row_received take_places(const struct row_answer *answer,
				     const struct row_memory *memory, struct row_reply *reply)
{
	reply->file = answer->executable;
	reply->is_readable = !answer->failure;
	reply->places.count = answer->count;
	reply->places.refused = 0;
	reply->places.nameless.length = 0;
	if (!reply->is_readable)
		return ROW_RECEIVED_MEMORY;
	reply->places.refused = memory->refused;
	if (memory->refused > MEMORY_FUNCTIONS_MAX || memory->id_length > sizeof memory->id ||
	    (memory->id_length &&
	     !build_id_set(&reply->places.nameless, memory->id, memory->id_length)))
		return ROW_RECEIVED_WRONG;
	for (uint32_t i = 0; i < answer->count; i++)
		if (reply->places.items[i].kind >= MEMORY_PLACE_KINDS)
			return ROW_RECEIVED_WRONG;
	return ROW_RECEIVED_MEMORY;
}

static enum row_received take_chunk(const struct row_answer *answer, struct row_reply *reply)
{
	struct jit_head *head = &reply->jit.head;

	reply->file = answer->executable;
	reply->is_readable = !answer->failure;
	if (!reply->is_readable)
		return ROW_RECEIVED_JIT;
	return head->count == answer->count && head->line_count == answer->rule_count &&
			       head->text_bytes == answer->page && jit_chunk_is_sound(&reply->jit)
		       ? ROW_RECEIVED_JIT
		       : ROW_RECEIVED_WRONG;
}

enum row_received row_reply_receive(int socket, struct row_reply *reply)
{
	struct row_answer answer;
	struct reply_parts room;
	struct iovec parts[PARTS_MAX] = {{&answer, sizeof answer}};
	/* Its beginning says where the rest belongs; the length is the whole message's. */
	ssize_t length = receive(socket, parts, 1, MSG_PEEK);
	size_t expected = sizeof answer;

	if (length < 0 && (errno == EAGAIN || errno == ENOMEM))
		return ROW_RECEIVED_NOTHING;
	if (length <= 0)
		return ROW_RECEIVED_END;
	if ((size_t)length < sizeof answer || !answer_is_sound(&answer))
		return ROW_RECEIVED_WRONG;
	set_parts(&answer, reply, &room, parts);
	for (int i = 1; i < PARTS_MAX; i++)
		expected += parts[i].iov_len;
	if ((size_t)length != expected || receive(socket, parts, PARTS_MAX, 0) != length)
		return ROW_RECEIVED_WRONG;
	reply->cpu_ms = answer.cpu_ms;
	if (answer.kind == PARSER_MESSAGE_PAGE)
		return take_page(&answer, &reply->rows);
	if (answer.kind == PARSER_MESSAGE_FAREWELL) {
		reply->farewell[answer.count] = '\0';
		return ROW_RECEIVED_FAREWELL;
	}
	if (answer.kind == PARSER_MESSAGE_MEMORY)
		return take_places(&answer, &room.memory, reply);
	if (answer.kind == PARSER_MESSAGE_JIT)
		return take_chunk(&answer, reply);
	reply->file = answer.executable;
	if (answer.kind == PARSER_MESSAGE_TLS)
		return tls_is_sound(&reply->tls) ? ROW_RECEIVED_TLS : ROW_RECEIVED_WRONG;
	if (answer.kind == PARSER_MESSAGE_RUNTIME)
		return runtime_is_sound(&reply->runtime) ? ROW_RECEIVED_RUNTIME
							 : ROW_RECEIVED_WRONG;
	reply->is_readable = answer.state != ROW_FILE_UNREADABLE;
	return !reply->is_readable || take_file(&answer, &room.file, room.segments, &reply->content)
		       ? ROW_RECEIVED_FILE
		       : ROW_RECEIVED_WRONG;
}

/* --- the child's side --- */

bool row_question_receive(int socket, struct row_question *question, int *fd)
{
	struct iovec part = {question, sizeof *question};
	union one_descriptor control = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	const struct cmsghdr *header;
	ssize_t length;

	do
		length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	if (length >= 0)
		errno = 0;
	if (length != sizeof *question)
		return false;
	*fd = -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof *fd))
		memcpy(fd, CMSG_DATA(header), sizeof *fd);
	return true;
}

static bool send_parts(int socket, struct iovec *parts, size_t count)
{
	const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t sent;

	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

bool row_answer_send(int socket, const struct page_rows *rows, uint16_t cpu_ms)
{
	struct row_answer answer = {.kind = PARSER_MESSAGE_PAGE,
				    .executable = rows->executable,
				    .page = rows->page,
				    .state = rows->state,
				    .failure = rows->failure,
				    .cpu_ms = cpu_ms};
	struct iovec parts[] = {{&answer, sizeof answer},
				{(void *)rows->rows, rows->count * sizeof *rows->rows},
				{(void *)rows->rules, rows->rule_count * sizeof *rows->rules}};

	if (rows->state == UNWIND_PAGE_LOADED) {
		answer.count = rows->count;
		answer.rule_count = rows->rule_count;
		if (send_parts(socket, parts, 3))
			return true;
		if (errno != EMSGSIZE) /* a host that allows its sockets little memory */
			return false;
		answer.count = answer.rule_count = 0;
		answer.state = UNWIND_PAGE_FAILED;
		answer.failure = ROW_FAILURE_LIMIT;
	}
	return send_parts(socket, parts, 1);
}

bool row_file_send(int socket, uint32_t number, const struct file_content *content, uint16_t cpu_ms)
{
	struct row_answer answer = {
		.kind = PARSER_MESSAGE_FILE, .executable = number, .cpu_ms = cpu_ms};
	struct reply_parts room = {0};
	struct iovec parts[] = {{&answer, sizeof answer}, {&room.file, sizeof room.file}, {0}};
	const struct elf_image *image = content ? &content->image : NULL;

	if (!image)
		return send_parts(socket, parts, 1);
	answer.state = content->is_elf ? ROW_FILE_ELF : ROW_FILE_RAW;
	answer.count = image->segment_count;
	room.file.entry = image->entry;
	room.file.has_go = image->has_go_pclntab;
	room.file.gnu_length = image->gnu.length;
	memcpy(room.file.gnu, image->gnu.bytes, image->gnu.length);
	memcpy(room.file.htlhash, content->htlhash.bytes, sizeof room.file.htlhash);
	memcpy(room.file.go_id, image->go_id, sizeof room.file.go_id);
	for (uint32_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *from = &image->segments[i];

		room.segments[i] = (struct row_segment){from->offset, from->file_size,
							from->address, from->memory_size,
							from->is_executable};
	}
	parts[2] = (struct iovec){room.segments, answer.count * sizeof *room.segments};
	return send_parts(socket, parts, 3);
}

bool row_memory_send(int socket, uint32_t number, const struct memory_places *places,
		     uint16_t cpu_ms)
{
	struct row_answer answer = {.kind = PARSER_MESSAGE_MEMORY,
				    .executable = number,
				    .failure = !places,
				    .cpu_ms = cpu_ms,
				    .count = places ? places->count : 0};
	struct row_memory memory = {0};
	struct iovec parts[] = {{&answer, sizeof answer}, {&memory, sizeof memory}, {0}};

	if (!places)
		return send_parts(socket, parts, 1);
	memory.refused = places->refused;
	memory.id_length = places->nameless.length;
	memcpy(memory.id, places->nameless.bytes, memory.id_length);
	parts[2] = (struct iovec){(void *)places->items, answer.count * sizeof *places->items};
	return send_parts(socket, parts, 3);
}

bool row_tls_send(int socket, uint32_t executable, const struct tls_symbol *tls, uint16_t cpu_ms)
{
	struct row_answer answer = {
		.kind = PARSER_MESSAGE_TLS, .executable = executable, .cpu_ms = cpu_ms};
	struct iovec parts[] = {{&answer, sizeof answer}, {(void *)tls, sizeof *tls}};

	return send_parts(socket, parts, 2);
}

bool row_runtime_send(int socket, uint32_t executable, const struct runtime_symbols *runtime,
		      uint16_t cpu_ms)
{
	struct row_answer answer = {
		.kind = PARSER_MESSAGE_RUNTIME, .executable = executable, .cpu_ms = cpu_ms};
	struct iovec parts[] = {{&answer, sizeof answer}, {(void *)runtime, sizeof *runtime}};

	return send_parts(socket, parts, 2);
}

bool row_jit_send(int socket, uint32_t number, const struct jit_chunk *chunk, uint16_t cpu_ms)
{
	struct row_answer answer = {.kind = PARSER_MESSAGE_JIT,
				    .executable = number,
				    .failure = !chunk,
				    .cpu_ms = cpu_ms};
	struct iovec parts[PARTS_MAX] = {{&answer, sizeof answer}};

	if (chunk) {
		answer.count = chunk->head.count;
		answer.rule_count = chunk->head.line_count;
		answer.page = chunk->head.text_bytes;
		set_jit_parts(&answer, (struct jit_chunk *)chunk, parts);
		if (send_parts(socket, parts, PARTS_MAX))
			return true;
		if (errno != EMSGSIZE) /* as with rows */
			return false;
		answer.count = answer.rule_count = answer.page = 0;
		answer.failure = 1;
	}
	return send_parts(socket, parts, 1);
}

void row_farewell_send(int socket, const char *text)
{
	size_t length = strnlen(text, ROW_FAREWELL_MAX - 1);
	struct row_answer answer = {.kind = PARSER_MESSAGE_FAREWELL, .count = (uint32_t)length};
	struct iovec parts[] = {{&answer, sizeof answer}, {(void *)text, length}};

	send_parts(socket, parts, 2);
}
