/* SPDX-License-Identifier: Apache-2.0 */
/* Path shapes: docker, containerd, cri-o and podman documentation, and what runc and podman made on
 * a Debian 12 host; systemd's units as of systemd.slice(5). */
#include "node-agent/processes/container.h"

#include "tests/check.h"

#define ID   "3f4c8d0e5b6a79812233445566778899aabbccddeeff00112233445566778899"
#define UID  "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define UID_ "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"

/* Where it is, whoever of the lines names a container. */
static void test_places(void)
{
	static const struct {
		const char *text, *unit, *path;
	} cases[] = {
		{"0::/system.slice/cron.service\n", "cron.service", "/system.slice/cron.service"},
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service/part\n",
		 "shop.service",
		 "/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service/part"},
		{"0::/user.slice/user-0.slice/session-3.scope\n", "session-3.scope",
		 "/user.slice/user-0.slice/session-3.scope"},
		{"0::/\n", "", "/"},
		{"4:memory:/m\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service",
		 "/system.slice/a.service"},
		{"4:memory:/m\n1:name=systemd:/a.service\n0::/b.service\n", "b.service",
		 "/b.service"},
		{"4:memory:/m\n1:name=systemd:/\n", "", "/m"},
		{"nonsense\n", "", ""},
		{"", "", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct container container;

		container_read(cases[i].text, strlen(cases[i].text), &container);
		CHECK_TEXT(container.unit, cases[i].unit);
		CHECK_TEXT(container.path, cases[i].path);
	}
}

int main(void)
{
	static const struct {
		const char *text, *id, *service, *pod;
	} cases[] = {
		{"", "", "", ""},
		{"0::/\n", "", "", ""},
		{"garbage\n:\n::\n:::\n", "", "", ""},
		{"0::/system.slice/nginx.service\n", "", "nginx", ""},
		{"0::/system.slice/system-getty.slice/getty@tty1.service\n", "", "getty@tty1", ""},
		{"0::/user.slice/user-0.slice/user@0.service/app.slice/emacs.service\n", "",
		 "emacs", ""},
		{"0::/user.slice/user-0.slice/session-1.scope\n", "", "", ""},
		{"12:pids:/docker/" ID "\n0::/\n", ID, "", ""},
		{"0::/system.slice/docker-" ID ".scope\n", ID, "", ""},
		{"0::/docker.service/docker-" ID ".scope", ID, "", ""},
		{"4:memory:/libpod_parent/libpod-" ID "\n0::/libpod_parent/libpod-" ID "\n", ID, "",
		 ""},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", ""},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		 ".slice/cri-containerd-" ID ".scope\n",
		 ID, "", UID},
		{"0::/kubepods/besteffort/pod" UID "/" ID "\n", ID, "", UID},
		{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", ID, "", UID},
		{"9:cpu:/ecs/task/0123456789abcdef0123456789abcdef-1234567890\n",
		 "0123456789abcdef0123456789abcdef-1234567890", "", ""},
		/* 63 digits, capitals, something else around it: no container */
		{"0::/docker/f4c8d0e5b6a79812233445566778899aabbccddeeff00112233445566778899\n", "",
		 "", ""},
		{"0::/docker/0123456789abcdef0123456789abcdef-\n", "", "", ""},
		{"0::/build-x" ID "\n", "", "", ""},
		/* systemd's own hierarchy before another controller's */
		{"1:name=systemd:/system.slice/a.service\n2:cpu:/b.service\n", "", "a", ""},
		{"2:cpu:/b.service\n1:name=systemd:/system.slice/a.service\n", "", "a", ""},
		/* a pod's sandbox without a container's own part */
		{"0::/kubepods/pod" UID "\n", "", "", UID},
		{"0::/podcast/pod" UID "\n", "", "", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct container container;

		container_read(cases[i].text, strlen(cases[i].text), &container);
		CHECK_TEXT(container.id, cases[i].id);
		CHECK_TEXT(container.service, cases[i].service);
		CHECK_TEXT(container.pod, cases[i].pod);
	}
	test_places();
	return checks_done();
}
