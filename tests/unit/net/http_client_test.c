/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/net/http_client.h"

#include "tests/check.h"

static void test_addresses(void)
{
	static const struct {
		const char *address;
		bool is_public;
	} rows[] = {
		{"8.8.8.8", true},
		{"1.1.1.1", true},
		{"172.15.0.1", true},
		{"172.32.0.1", true},
		{"100.63.0.1", true},
		{"223.255.255.255", true},
		{"2600::1", true},
		{"2a00:1450::1", true},
		{"::ffff:8.8.8.8", true},
		{"127.0.0.1", false},
		{"10.1.2.3", false},
		{"172.16.0.1", false},
		{"172.31.255.255", false},
		{"192.168.1.1", false},
		{"169.254.169.254", false},
		{"100.64.0.1", false},
		{"0.0.0.0", false},
		{"224.0.0.1", false},
		{"255.255.255.255", false},
		{"198.18.0.1", false},
		{"::1", false},
		{"::", false},
		{"fe80::1", false},
		{"fd00:ec2::254", false},
		{"ff02::1", false},
		{"2001:db8::1", false},
		{"2002:7f00:1::", false},
		{"::ffff:127.0.0.1", false},
		{"64:ff9b::7f00:1", false},
		{"", false},
		{"localhost", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!CHECK(http_address_is_public(rows[i].address) == rows[i].is_public))
			printf("# %s\n", rows[i].address);
}

int main(void)
{
	test_addresses();
	return checks_done();
}
