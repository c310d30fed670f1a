#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM at the worst moment of a SIGHUP: after the agent has looked whether it is to end, before it begins anew."""
import os
import signal
import subprocess

from harness import WORK, Agent, Server, check, equal, need_bpf, run, wait_for

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
int execv(const char *path, char *const arguments[])
{
	raise(SIGTERM);
	return ((int (*)(const char *, char *const *))dlsym(RTLD_NEXT, "execv"))(path, arguments);
}
"""


def test_it_is_not_forgotten():
    source, shim, config = (os.path.join(WORK, name) for name in ("shim.c", "shim.so", "agent.conf"))
    with open(source, "w") as file:
        file.write(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", shim, "-ldl"], check=True)
    with open(config, "w") as file:
        file.write("frequency = 19\n")
    server = Server()
    os.environ["LD_PRELOAD"] = shim
    agent = Agent("--config", config, "--report-interval", "1s", "--upload", "never", server=server)
    del os.environ["LD_PRELOAD"]
    begun = agent.text().count("info profiling")
    with open(config, "w") as file:
        file.write("frequency = 23\n")
    agent.process.send_signal(signal.SIGHUP)
    check(wait_for(lambda: agent.process.poll() is not None, 15), "SIGTERM between the look and execv() ends the agent",
          agent.text()[-800:])
    equal(agent.process.poll(), 0, "as one that comes at another time")
    check("options read again" in agent.text() and agent.text().count("info profiling") >= begun, "after SIGHUP was heard")
    server.stop()


need_bpf()
run(test_it_is_not_forgotten)
