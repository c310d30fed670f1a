/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which modules are taken, against sorting; and that many do not take long. */
#include "symbol-server/symbolize/module_list.h"

#include <stdlib.h>
#include <time.h>

#include "tests/check.h"

static struct build_id id_of(uint32_t number)
{
	struct build_id id = {.length = 20};

	memcpy(id.bytes, &number, sizeof(number));
	return id;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* No names before no lines before what is made anew. */
static void worst_first(void)
{
	static const enum symbol_quality qualities[] = {QUALITY_DWARF, QUALITY_SYMTAB,
							QUALITY_DYNSYM, QUALITY_NONE};
	struct module_list list;

	module_list_init(&list);
	for (uint32_t i = 0; i < 4; i++) {
		struct build_id id = id_of(i);
		struct module *module = module_list_add(&list, &id, 1);

		module->quality = qualities[i];
		module_list_weigh(&list, module, i == 0 ? 1000 : i);
		module_list_queue(&list, module, QUEUE_CONVERT);
	}
	CHECK_NUMBER(module_list_take(&list, QUEUE_CONVERT)->quality, QUALITY_NONE);
	CHECK_NUMBER(module_list_take(&list, QUEUE_CONVERT)->quality, QUALITY_DYNSYM);
	CHECK_NUMBER(module_list_take(&list, QUEUE_CONVERT)->quality, QUALITY_SYMTAB);
	CHECK_NUMBER(module_list_take(&list, QUEUE_CONVERT)->quality, QUALITY_DWARF);
	CHECK(!module_list_take(&list, QUEUE_CONVERT));
	module_list_release(&list);
}

/* The heaviest first; of those that weigh the same, who waits longest. */
static void heaviest_first(void)
{
	struct module_list list;
	struct module *module;
	uint64_t last = UINT64_MAX, order = 0;
	unsigned taken = 0;

	module_list_init(&list);
	srand(1);
	for (uint32_t i = 0; i < 1000; i++) {
		struct build_id id = id_of(i);

		module = module_list_add(&list, &id, 1);
		module_list_weigh(&list, module, (unsigned)rand() % 50);
		module_list_queue(&list, module, i % 5 ? QUEUE_LOCAL : QUEUE_FETCH);
	}
	/* samples that come while it waits move it forward */
	for (uint32_t i = 0; i < 1000; i++)
		module_list_weigh(&list, &list.modules[(unsigned)rand() % 1000],
				  (unsigned)rand() % 50);
	for (; (module = module_list_take(&list, QUEUE_LOCAL)) != NULL; taken++) {
		bool in_order = module->weight < last ||
				(module->weight == last && module->order > order);

		if (!in_order || module->queue != QUEUE_BUSY) {
			CHECK(in_order);
			CHECK_NUMBER(module->queue, QUEUE_BUSY);
		}
		last = module->weight;
		order = module->order;
	}
	CHECK_NUMBER(taken, 800);
	CHECK_NUMBER(list.queues[QUEUE_FETCH].count, 200);
	/* one that a thread has comes again */
	module = &list.modules[1];
	module_list_queue(&list, module, QUEUE_LOCAL);
	CHECK(module->is_again && !list.queues[QUEUE_LOCAL].count);
	module->queue = QUEUE_NONE;
	module_list_queue(&list, module, QUEUE_LOCAL);
	module_list_queue(&list, module, QUEUE_LOCAL);
	CHECK_NUMBER(list.queues[QUEUE_LOCAL].count, 1);
	CHECK(module_list_take(&list, QUEUE_LOCAL) == module && !module->is_again);
	module_list_release(&list);
}

static void as_many_as_there_may_be(void)
{
	struct module_list list;
	double begin = seconds();
	struct build_id id;
	unsigned taken = 0;

	module_list_init(&list);
	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		struct module *module;

		id = id_of(i);
		module = module_list_add(&list, &id, 1);
		if (!module)
			break;
		module_list_weigh(&list, module, (unsigned)rand());
		module_list_queue(&list, module, QUEUE_LOCAL);
	}
	while (module_list_take(&list, QUEUE_LOCAL))
		taken++;
	CHECK_NUMBER(taken, MODULES_MAX);
	printf("# %u modules added, queued and taken in %.2f s\n", taken, seconds() - begin);
	CHECK(seconds() - begin < 10); /* looked through one by one they took minutes */
	module_list_release(&list);
}

/* The list is full of what somebody announced or brought: what is met finds room, and what has a
 * table, an upload or a thread at work stays. */
static void room_is_made(void)
{
	struct module_list list;
	struct module *module;
	struct build_id id, ids[16];
	double begin = seconds();
	uint32_t kept = 0;

	module_list_init(&list);
	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		id = id_of(i);
		module = module_list_add(&list, &id, 1);
		module->is_stored = i % 3 == 0;
		module_list_meet(&list, module, i % 2, i % 4 == 1 ? 7 : i, 1000 + i);
		module->quality = i % 10 == 0 ? QUALITY_DYNSYM : QUALITY_NONE;
		module->is_uploaded = i % 10 == 1;
		module_list_queue(&list, module, QUEUE_LOCAL);
	}
	for (uint32_t i = 0; i < 2 * MODULES_MAX; i++) {
		id = id_of(MODULES_MAX + i);
		module = module_list_add(&list, &id, 1);
		if (!module)
			break;
		module_list_meet(&list, module, true, 99, 2000000 + i);
	}
	CHECK(module != NULL);
	CHECK_NUMBER(list.refused, 0);
	CHECK(list.evicted >= 2 * MODULES_MAX && list.count <= MODULES_MAX);
	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		id = id_of(i);
		module = module_list_find(&list, &id);
		kept += module != NULL;
		if (i % 10 < 2 && !(module && build_id_equal(&module->id, &id)))
			break;
	}
	CHECK(kept >= MODULES_MAX / 5);
	printf("# %u of %u older ones stayed, %.2f s\n", kept, MODULES_MAX, seconds() - begin);
	CHECK_NUMBER(module_list_take_forgotten(&list, ids, 16), 16);
	/* The queue still knows whom it means. */
	for (uint32_t taken = 0; (module = module_list_take(&list, QUEUE_LOCAL)); taken++)
		if (module_list_find(&list, &module->id) != module)
			CHECK(false);
	module_list_release(&list);
}

/* One sender brings more than a quarter: its own go first, others' stay. */
static void shares_of_senders(void)
{
	struct module_list list;
	struct module *module;
	struct build_id id;
	uint32_t honest = 0;

	module_list_init(&list);
	for (uint32_t i = 0; i < MODULES_MAX + 200000; i++) {
		bool is_honest = i < 20000;

		id = id_of(i);
		module = module_list_add(&list, &id, 1);
		module_list_meet(&list, module, true, is_honest ? 1 + i % 100 : 4000, 1000 + i);
	}
	for (uint32_t i = 0; i < 20000; i++) {
		id = id_of(i);
		honest += module_list_find(&list, &id) != NULL;
	}
	CHECK_NUMBER(honest, 20000);
	module_list_release(&list);
}

/* What is only announced takes a few thousand places at most. */
static void announced_only(void)
{
	struct module_list list;
	struct build_id id;

	module_list_init(&list);
	for (uint32_t i = 0; i < 50000; i++) {
		id = id_of(i);
		if (list.announced >= ANNOUNCED_MAX)
			module_list_make_room(&list, false);
		module_list_meet(&list, module_list_add(&list, &id, 1), false, 3, 1000 + i);
	}
	CHECK(list.count <= ANNOUNCED_MAX);
	CHECK_NUMBER(list.announced, list.count);
	CHECK_NUMBER(list.forgotten_count, 0);
	module_list_release(&list);
}

/* Nothing may go: the new one is refused, and counted. */
static void all_in_use(void)
{
	struct module_list list;
	struct build_id id;

	module_list_init(&list);
	for (uint32_t i = 0; i < MODULES_MAX; i++) {
		id = id_of(i);
		module_list_add(&list, &id, 1)->quality = QUALITY_DWARF;
	}
	id = id_of(MODULES_MAX);
	CHECK(!module_list_add(&list, &id, 1));
	CHECK_NUMBER(list.refused, 1);
	module_list_release(&list);
}

int main(void)
{
	worst_first();
	heaviest_first();
	as_many_as_there_may_be();
	room_is_made();
	shares_of_senders();
	announced_only();
	all_in_use();
	return checks_done();
}
