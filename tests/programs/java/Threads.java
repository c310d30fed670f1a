// SPDX-License-Identifier: Apache-2.0
// Threads with names: "busy-N", with N of 6 parts of the work (1 to 3), each a turn of its own; "garbage", which makes
// some; and as many as asked for that sleep, "idle-N", one of which wakes now and then. Arguments: seconds, sleepers (500).
import java.util.concurrent.CountDownLatch;

public class Threads {
	private static volatile boolean isOver;
	private static volatile Object kept;

	static int busy(int weight) {
		int s = weight;
		for (int i = 0; i < weight * 200000; i++)
			s = s * 31 + (i ^ s >>> 7);
		return s;
	}

	static void work(int weight) {
		int s = 0;
		while (!isOver) {
			s += busy(weight);
			pause(5);
		}
		kept = s;
	}

	static void litter() {
		while (!isOver) {
			Object[] list = new Object[1000];
			for (int i = 0; i < list.length; i++)
				list[i] = new byte[1000];
			kept = list;
			pause(1);
		}
	}

	static void idle(CountDownLatch over, boolean isRestless) {
		try {
			while (isRestless && !isOver)
				Thread.sleep(10);
			over.await();
		} catch (InterruptedException end) {
			Thread.currentThread().interrupt();
		}
	}

	static void pause(long milliseconds) {
		try {
			Thread.sleep(milliseconds);
		} catch (InterruptedException end) {
			isOver = true;
		}
	}

	static void start(String name, Runnable what) {
		Thread thread = new Thread(null, what, name, 256 << 10);
		thread.setDaemon(true);
		thread.start();
	}

	public static void main(String[] arguments) throws Exception {
		CountDownLatch over = new CountDownLatch(1);
		int sleepers = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 500;
		for (int i = 0; i < sleepers; i++) {
			boolean isRestless = i == 0;
			start("idle-" + i, () -> idle(over, isRestless));
		}
		for (int i = 1; i <= 3; i++) {
			int weight = i;
			start("busy-" + i, () -> work(weight));
		}
		start("garbage", Threads::litter);
		System.out.println("ready");
		System.out.flush();
		Thread.sleep(1000L * Integer.parseInt(arguments[0]));
		isOver = true;
		over.countDown();
	}
}
