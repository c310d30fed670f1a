/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* PyObjectArenaAllocator */
struct arena_allocator {
	void *context;
	void *(*alloc)(void *context, size_t bytes);
	void (*free)(void *context, void *arena, size_t bytes);
};

static struct arena_allocator next;
static void *(*arena_taken)(void *arena, size_t bytes, const void *from);
static void (*arena_given)(void *arena);

static int (*find_object)(void *address, struct dl_find_object *found); /* NULL: nobody asks */

static void *find(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	dlerror();
	return found;
}

bool python_is_there(void)
{
	if (find("Py_IsInitialized"))
		return true;
	*(void **)&find_object = find("_dl_find_object");
	return false;
}

bool python_calls(const void *from)
{
	static const char library[] = "libpython";
	struct dl_find_object object;
	const char *name;

	if (!find_object || find_object((void *)(uintptr_t)from, &object))
		return false;
	name = object.dlfo_link_map->l_name ? strrchr(object.dlfo_link_map->l_name, '/') : NULL;
	return name && !strncmp(name + 1, library, sizeof library - 1);
}

static void *python_arena(void *context, size_t bytes)
{
	void *arena = next.alloc(next.context, bytes);

	(void)context;
	arena = arena_taken(arena, bytes, __builtin_return_address(0));
	__asm__ volatile("" : "+r"(arena)); /* keeps the call a call: our outermost frame */
	return arena;
}

static void python_arena_free(void *context, void *arena, size_t bytes)
{
	(void)context;
	arena_given(arena);
	next.free(next.context, arena, bytes);
}

void python_watch_arenas(void *(*taken)(void *arena, size_t bytes, const void *from),
			 void (*given)(void *arena))
{
	struct arena_allocator ours = {.alloc = python_arena, .free = python_arena_free};
	void (*get)(struct arena_allocator *allocator);
	void (*set)(struct arena_allocator *allocator);

	*(void **)&get = find("PyObject_GetArenaAllocator");
	*(void **)&set = find("PyObject_SetArenaAllocator");
	if (!get || !set)
		return;
	arena_taken = taken;
	arena_given = given;
	get(&next);
	if (next.alloc && next.free)
		set(&ours);
}
