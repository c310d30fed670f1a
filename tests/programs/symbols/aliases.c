/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: several names of one function, and versions of one name. */
int __GI_many(int x)
{
	return x + 11;
}
int __many(int) __attribute__((alias("__GI_many")));
int many(int) __attribute__((alias("__GI_many")));
int also_many(int) __attribute__((weak, alias("__GI_many")));

int old_shape(int x)
{
	return x + 12;
}
int new_shape(int x)
{
	return x + 13;
}
__asm__(".symver old_shape, shape@VERSION_1");
__asm__(".symver new_shape, shape@@VERSION_2");

static int resolved(int x)
{
	return x + 14;
}
static void *choose(void)
{
	return resolved;
}
int chosen(int) __attribute__((ifunc("choose")));
