/* SPDX-License-Identifier: Apache-2.0 */
/* farflame-demo SECONDS: something to look at on an idle host. A make-believe shop that reads
 * orders, sorts them, adds up prices and prints receipts, with a second thread that packs an
 * archive. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ORDER_COUNT = 400, ARCHIVE_BYTES = 1 << 16 };

struct order {
	uint32_t customer, item, count;
	uint64_t price;
};

static time_t end_time;

static bool is_over(void)
{
	return time(NULL) >= end_time;
}

static __attribute__((noinline)) void read_orders(int fd, struct order *orders)
{
	if (read(fd, orders, ORDER_COUNT * sizeof(*orders)) < 0)
		memset(orders, 1, ORDER_COUNT * sizeof(*orders));
}

static inline bool comes_before(const struct order *a, const struct order *b)
{
	return a->customer != b->customer ? a->customer < b->customer : a->item < b->item;
}

static __attribute__((noinline)) void sort_orders(struct order *orders, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct order moving = orders[i];
		size_t at = i;

		for (; at && comes_before(&moving, &orders[at - 1]); at--)
			orders[at] = orders[at - 1];
		orders[at] = moving;
	}
}

static __attribute__((noinline)) uint64_t add_prices(const struct order *orders, size_t count)
{
	uint64_t sum = 0;

	for (int day = 0; day < 60; day++)
		for (size_t i = 0; i < count; i++)
			sum += orders[i].price % 10007 * (orders[i].count % 17 + (unsigned)day);
	return sum;
}

static __attribute__((noinline)) size_t print_receipts(const struct order *orders, size_t count)
{
	char line[96];
	size_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(line, sizeof(line), "%u x %u at %llu\n", orders[i].count,
					   orders[i].item, (unsigned long long)orders[i].price);
	return length;
}

static __attribute__((noinline)) uint64_t serve_customers(int fd)
{
	struct order orders[ORDER_COUNT];
	uint64_t sum;

	read_orders(fd, orders);
	sort_orders(orders, ORDER_COUNT);
	sum = add_prices(orders, ORDER_COUNT);
	return sum + print_receipts(orders, ORDER_COUNT);
}

static __attribute__((noinline)) uint32_t pack_archive(const uint8_t *bytes, size_t length)
{
	volatile size_t packed = 0; /* on the stack, so that gcc gives this leaf function a frame */
	uint32_t checksum = 0xffffffff;

	for (size_t i = 0; i < length; i++) {
		packed = i;
		checksum ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			checksum = checksum >> 1 ^ (checksum & 1 ? 0xedb88320 : 0);
	}
	return checksum + (uint32_t)packed;
}

static void *archive_main(void *argument)
{
	static uint8_t bytes[ARCHIVE_BYTES];
	volatile uint32_t checksum = 0;

	while (!is_over()) {
		checksum = checksum ^ pack_archive(bytes, sizeof(bytes));
		nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	}
	return argument;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	volatile uint64_t sum = 0;
	pthread_t archive;

	end_time = time(NULL) + (argc > 1 ? atol(argv[1]) : 10);
	if (fd < 0 || pthread_create(&archive, NULL, archive_main, NULL))
		return 1;
	while (!is_over())
		sum = sum + serve_customers(fd);
	pthread_join(archive, NULL);
	close(fd);
	return 0;
}
