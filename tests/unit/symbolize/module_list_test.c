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
	id = id_of(MODULES_MAX);
	CHECK(!module_list_add(&list, &id, 1));
	CHECK_NUMBER(list.refused, 1);
	while (module_list_take(&list, QUEUE_LOCAL))
		taken++;
	CHECK_NUMBER(taken, MODULES_MAX);
	printf("# %u modules added, queued and taken in %.2f s\n", taken, seconds() - begin);
	CHECK(seconds() - begin < 10); /* looked through one by one they took minutes */
	module_list_release(&list);
}

int main(void)
{
	worst_first();
	heaviest_first();
	as_many_as_there_may_be();
	return checks_done();
}
