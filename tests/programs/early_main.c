/* SPDX-License-Identifier: Apache-2.0 */
int early_seven(void);

int main(void)
{
	return early_seven() == 7 ? 0 : 1;
}
