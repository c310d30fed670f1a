/* SPDX-License-Identifier: Apache-2.0 */
/* What a parser that a file has taken over may answer: what passes the check can be used. */
#include "node-agent/file_parser/parser_messages.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node-agent/unwind/row_pages.h"
#include "tests/fuzz/fuzz.h"

static void use(struct row_pages *pages, const struct page_rows *rows)
{
	struct unwind_rule rule;

	if (!row_pages_put(pages, rows, 1))
		abort(); /* an empty table has room for any page */
	if (rows->state != UNWIND_PAGE_LOADED)
		return;
	for (uint32_t low = 0; low < 0x10000; low += 0xff) {
		uint64_t address = (uint64_t)rows->page << UNWIND_PAGE_BITS | low;

		if (!row_pages_rule(pages, rows->executable, address, &rule) ||
		    rule.cfa >= UNWIND_CFA_COUNT || rule.cfa_register >= UNWIND_REGISTERS)
			abort();
	}
}

/* Its words can be told on, and every byte of the file has one address at most a segment. */
static void use_content(const struct file_content *content)
{
	const struct elf_image *image = &content->image;
	uint64_t address;

	if (content->htlhash.length != FILE_HASH_BYTES || image->gnu.length > BUILD_ID_MAX ||
	    image->segment_count > ELF_IMAGE_SEGMENTS ||
	    strnlen(image->go_id, sizeof image->go_id) == sizeof image->go_id)
		abort();
	if (!content->is_elf && (image->segment_count || image->gnu.length))
		abort();
	for (unsigned i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segments[i];

		if (segment->file_size &&
		    !elf_image_address(image, segment->offset + segment->file_size - 1, &address))
			abort();
	}
}

static void use_reply(struct row_pages *pages, const struct row_reply *reply,
		      enum row_received received)
{
	if (received == ROW_RECEIVED_ANSWER)
		use(pages, &reply->rows);
	if (received == ROW_RECEIVED_FILE && reply->is_readable)
		use_content(&reply->content);
	if (received == ROW_RECEIVED_MEMORY && (reply->places.count > MEMORY_PLACES_MAX ||
						reply->places.refused > MEMORY_FUNCTIONS_MAX ||
						reply->places.nameless.length > BUILD_ID_MAX))
		abort();
	for (uint32_t i = 0; received == ROW_RECEIVED_MEMORY && i < reply->places.count; i++)
		if (reply->places.items[i].kind >= MEMORY_PLACE_KINDS)
			abort();
	if (received == ROW_RECEIVED_RUNTIME &&
	    (!reply->runtime.language != !reply->runtime.loop_count ||
	     reply->runtime.loop_count > RUNTIME_LOOP_PARTS_MAX))
		abort();
	if (received == ROW_RECEIVED_FAREWELL &&
	    strnlen(reply->farewell, ROW_FAREWELL_MAX) == ROW_FAREWELL_MAX)
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const struct row_pages_options options = {-1, -1, -1, 1 << 20};
	struct row_pages *pages;
	struct row_reply *reply;
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
		return;
	reply = malloc(sizeof *reply);
	pages = row_pages_new(&options, NULL);
	if (reply && pages && send(sockets[1], bytes, length, MSG_DONTWAIT) == (ssize_t)length)
		use_reply(pages, reply, row_reply_receive(sockets[0], reply));
	row_pages_free(pages);
	free(reply);
	close(sockets[0]);
	close(sockets[1]);
}
