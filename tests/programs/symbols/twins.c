/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: functions of the same instructions, which a linker may fold into one. */
#ifdef FIRST
int twin_one(int x)
{
	return x * 31 + 17;
}
int _twin_zero(int x)
{
	return x * 31 + 17;
}
#else
int twin_two(int x)
{
	return x * 31 + 17;
}
int other(int x)
{
	return x * 5 + 1;
}
#endif
