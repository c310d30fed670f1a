#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest: mounts what the agent looks at, profiles the programs of known shape for a
# few seconds, sends the result through the second serial port and switches the machine off.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mkdir -p /tmp /cgroup
mount -t cgroup2 cgroup /cgroup 2>/dev/null
hostname guest
step() { # WHAT: where a guest that does not come to its end stood, and since when
	echo "step $1 after $(cut -d' ' -f1 /proc/uptime) s"
}

echo "guest $(uname -r) up after $(cut -d' ' -f1 /proc/uptime) s"

step check
/farflame-agent --check
echo "check-status $?"
for program in chain_pie chain_static chain_thread; do
	/$program 200 &
done
/syscall_loop /tmp 200 &
for program in deep deep_static signals; do
	/$program 200 &
done
sleep 1
# Truth for kernel frames: where this guest's kallsyms says these functions begin and end.
awk '$3 == "_text" { print; next } wanted { print; wanted = 0 } $3 ~ /^(__(x64|arm64)_sys_getdents64|vfs_read|ksys_read)$/ && NF == 3 { print; wanted = 1 }' \
	/proc/kallsyms | sed 's/^/kallsyms /'
step on-cpu
/farflame-agent --output /profile.otlp --frequency 99 --duration 12s
echo "agent-status $?"
step off-cpu
/waits 14 >/tmp/waits.tally &
/farflame-agent --output /waits.otlp --profile on-cpu,off-cpu,waker,run-queue,still-blocked --off-cpu-budget 100% --duration 12s 2>/tmp/waits.log
echo "off-cpu-status $?"
sed 's/^/off-cpu-log /' /tmp/waits.log
if [ -x /go_labels ]; then
	step labels
	(while echo "work 100" && echo "waits 5 20"; do sleep 1; done) 2>/dev/null | /go_labels >/dev/null &
	labels=$!
	/farflame-agent --output /labels.otlp --profile on-cpu,off-cpu --pid "$labels" --duration 12s 2>/tmp/labels.log
	kill "$labels"
	sed 's/^/labels-log /' /tmp/labels.log
fi
step page-fault
(echo; sleep 60) | /touches 200000 >/tmp/touches.tally &
/farflame-agent --output /faults.otlp --profile page-fault --duration 8s 2>/tmp/faults.log
echo "page-fault-status $?"
sed 's/^/page-fault-log /' /tmp/faults.log
if [ -x /go_memory ]; then
	step memory
	(sleep 2; for i in $(seq 30); do echo 5; sleep 1; echo 5; echo free; done; sleep 60) | /go_memory 16384 /dev/null >/tmp/go_memory.tally &
	(sleep 3; echo; sleep 60) | /takes 300 300000 >/tmp/takes.tally &
	/farflame-agent --output /memory.otlp --profile mem-alloc,mem-inuse --mem-budget 100% --log-level debug --duration 80s 2>/tmp/memory.log &
	agent=$!
	# 20 s, and longer where this machine is so slow that no window of the program in C had its turn.
	sleep 20
	for i in $(seq 50); do
		! grep -q ' window .* stacks=[1-9]' /tmp/memory.log || break
		sleep 1
	done
	kill -TERM "$agent"
	wait "$agent"
	echo "memory-status $?"
	sed 's/^/memory-log /' /tmp/memory.log
fi
step result
stty -F /dev/ttyS1 raw 115200 2>/dev/null
[ -s /profile.otlp ] && gzip -c /profile.otlp | base64 >/dev/ttyS1
echo "guest-done"
sync
sleep 1
poweroff -f
