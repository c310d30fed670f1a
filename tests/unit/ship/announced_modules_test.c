/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/ship/announced_modules.h"

static struct announced_modules list;

static struct ship_module module(const char *hex, uint64_t samples)
{
	struct ship_module made = {.fd = open("/dev/null", O_RDONLY), .samples = samples};

	build_id_parse(&made.id, hex, strlen(hex));
	snprintf(made.name, sizeof made.name, "lib %s", hex);
	return made;
}

static bool add(const char *hex, uint64_t samples, int64_t now_ms)
{
	struct ship_module made = module(hex, samples);
	bool over;

	return announced_modules_add(&list, &made, now_ms, &over);
}

static size_t announce(int64_t now_ms, char *text, size_t room)
{
	struct buffer out;
	size_t count;

	buffer_init(&out, 1 << 20);
	count = announced_modules_announce(&list, now_ms, &out);
	snprintf(text, room, "%.*s", (int)out.length, out.length ? (char *)out.bytes : "");
	buffer_release(&out);
	return count;
}

static size_t wanted(const char *text, int64_t now_ms)
{
	return announced_modules_take_wanted(
		&list, (struct bytes){(const uint8_t *)text, strlen(text)}, now_ms);
}

static void check_announce(void)
{
	char text[4096];

	CHECK(add("aa11aa11", 5, 1000));
	CHECK(add("bb22bb22", 9, 1000));
	CHECK(!add("aa11aa11", 50, 1000));
	CHECK_NUMBER(announce(1000, text, sizeof text), 2);
	CHECK_TEXT(text, "aa11aa11 gnu lib_aa11aa11\nbb22bb22 gnu lib_bb22bb22\n");
	CHECK_NUMBER(announce(1000, text, sizeof text), 0);
	CHECK_NUMBER(announced_modules_due_ms(&list), 1000 + ANNOUNCE_FIRST_MS);
	/* not arrived: again when told */
	announced_modules_announce_again(&list, 1000, 1500);
	CHECK_NUMBER(announce(1499, text, sizeof text), 0);
	CHECK_NUMBER(announce(1500, text, sizeof text), 2);
	CHECK_NUMBER(announce(1500 + ANNOUNCE_FIRST_MS, text, sizeof text), 2);
	CHECK_NUMBER(announced_modules_due_ms(&list), 1500 + 3 * ANNOUNCE_FIRST_MS);
}

static void check_wanted(void)
{
	struct known_module *first;

	CHECK_NUMBER(wanted("bb22bb22\r\nnothing\ncc33cc33\n\nAA11AA11", 2000), 2);
	first = announced_modules_wanted(&list);
	CHECK_TEXT(first ? first->module.name : "", "lib_aa11aa11");
	first->is_wanted = false;
	first->uploaded_ms = 2000;
	first->uploaded_presence = list.presence;
	first = announced_modules_wanted(&list);
	CHECK_TEXT(first ? first->module.name : "", "lib_bb22bb22");
	first->is_wanted = false;
	first->tries = UPLOAD_TRIES;
	CHECK(!announced_modules_wanted(&list));
	/* uploaded, and given up: neither is sent again because the server asks again … */
	CHECK_NUMBER(wanted("aa11aa11\nbb22bb22\n", 3000), 0);
	/* … until it was away */
	announced_modules_server_returned(&list, 4000);
	CHECK_NUMBER(announced_modules_due_ms(&list), 4000);
	CHECK_NUMBER(wanted("aa11aa11\nbb22bb22\n", 4000), 2);
}

static void check_without_content(void)
{
	struct ship_module made = module("dd44dd44", 1);
	bool over;

	close(made.fd);
	made.fd = -1;
	CHECK(announced_modules_add(&list, &made, 5000, &over));
	CHECK_NUMBER(wanted("dd44dd44\n", 5000), 0);
	/* a process that may read it has it now */
	CHECK(add("dd44dd44", 2, 5500));
	CHECK(!add("dd44dd44", 3, 5600));
	CHECK_NUMBER(wanted("dd44dd44\n", 5700), 1);
}

/* A large file with more samples does not go before a small one with some. */
static void check_large_last(void)
{
	struct ship_module large = module("ad44dd44", 1000), small = module("ae44dd44", 60);
	struct known_module *first;
	bool over;

	close(large.fd);
	large.fd = memfd_create("large", MFD_CLOEXEC);
	CHECK(!ftruncate(large.fd, 300 << 20));
	CHECK(announced_modules_add(&list, &large, 6000, &over));
	CHECK(announced_modules_add(&list, &small, 6000, &over));
	CHECK_NUMBER(wanted("ad44dd44\nae44dd44\n", 6000), 2);
	for (size_t i = 0; i < list.count; i++) /* what other checks left behind */
		list.modules[i].is_wanted &= list.modules[i].module.samples >= 60;
	first = announced_modules_wanted(&list);
	CHECK_TEXT(first ? first->module.name : "", "lib_ae44dd44");
}

/* Held until it is uploaded, or for some time; its place stays. */
static void check_let_go(void)
{
	struct ship_module one = module("a055dd44", 1), other = module("a066dd44", 1);
	struct known_module *first, *second;
	bool over;

	one.place.path = strdup("/one");
	other.place.path = strdup("/other");
	CHECK(announced_modules_add(&list, &one, 7000, &over));
	CHECK(announced_modules_add(&list, &other, 7500, &over));
	first = announced_modules_find(&list, &one.id);
	second = announced_modules_find(&list, &other.id);
	CHECK_NUMBER(announced_modules_let_go(&list, 7500), 7000 + HOLD_MS);
	first->uploaded_ms = 7600;
	CHECK_NUMBER(announced_modules_let_go(&list, 7600), 7500 + HOLD_MS);
	CHECK(first->module.fd < 0 && second->module.fd >= 0);
	second->is_sent = true;
	CHECK_NUMBER(announced_modules_let_go(&list, 7500 + HOLD_MS), INT64_MAX);
	CHECK(second->module.fd >= 0);
	second->is_sent = false;
	announced_modules_let_go(&list, 7500 + HOLD_MS);
	CHECK(second->module.fd < 0);
	CHECK_NUMBER(wanted("a066dd44\n", 40000), 1); /* it is opened again then */
	second->is_wanted = false;
}

static void check_limit(void)
{
	char hex[16];
	bool over = false;
	size_t taken = 0;

	for (unsigned i = 0; i < MODULES_MAX + 10; i++) {
		struct ship_module made;

		snprintf(hex, sizeof hex, "ee%06x", i);
		made = module(hex, i);
		close(made.fd);
		made.fd = -1;
		taken += announced_modules_add(&list, &made, 0, &over);
	}
	CHECK_NUMBER(list.count, MODULES_MAX);
	CHECK_NUMBER(taken, MODULES_MAX - 7);
	CHECK(over);
}

int main(void)
{
	announced_modules_init(&list);
	check_announce();
	check_wanted();
	check_without_content();
	check_large_last();
	check_let_go();
	check_limit();
	announced_modules_release(&list);
	CHECK_NUMBER(open("/dev/null", O_RDONLY), 3); /* every descriptor was closed */
	return checks_done();
}
