/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: calls that go through the PLT, by .plt and by .plt.got. */
extern int puts(const char *);
extern int rand(void);
extern void *malloc(__SIZE_TYPE__);
extern int far_a(int), far_b(int);
int (*volatile keep)(int) = far_a;

int stubs_entry(int x)
{
	puts("a");
	return far_a(x) + far_b(rand()) + (malloc(3) != 0);
}
